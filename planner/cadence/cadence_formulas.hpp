// Closed forms for checkpoint cadence and recovery. Symbols: tau useful work between saves, C the part of a save that
// blocks training, P the rest that runs in the background, M job mean time between failures, D downtime in which
// nothing can fail (detect, reschedule), R restart and reload, which can themselves fail. All times in one unit.
//
// O1, O2, ... are the labels the tests use for their golden vectors.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace wt {

/// O1, Young 1974: sqrt(2 C M).
double young_interval(double blocking, double mtbf);
/// O2, Daly 2006, eq. 37: the higher-order estimate for C < 2M, else M.
double daly_interval(double blocking, double mtbf);
/// O3: the exact minimiser of O4 for exponential failures, M (1 + W0(-exp(-C/M - 1))). C = 0 gives 0.
double exact_interval(double blocking, double mtbf);

/// The longest interval whose goodput in O4 and O6 is within `share` of that of `best`, which is the optimum or above
/// it; both have the goodput tau / (e^((tau+C)/M) - 1) but for a factor.
double longest_interval(double blocking, double mtbf, double best, double share);

/// O4: expected time for `work` with blocking saves; failures in work, save and R but not in D:
/// (W/tau) e^(R/M) (M + D) (e^((tau+C)/M) - 1).
double expected_time(double work, double interval, double blocking, double downtime, double reload, double mtbf);

/// O5: expected time lost to a failure, given that it falls inside a span of length x: M - x / (e^(x/M) - 1).
double expected_lost(double span, double mtbf);

/// O6: long-run goodput with background persist, clock reset at each restart, for failures of any distribution:
/// tau * sum over k >= 1 of S(R + k (tau + C) + P) / (E[X] + D), S the survival function and E[X] = mean.
/// S must fall to 0; the sum stops where a term no longer counts.
double persisted_goodput(const std::function<double(double)>& survival, double mean, double interval, double blocking,
                         double persist, double downtime, double reload);
/// O6 for exponential failures in closed form: tau e^(-(R+P)/M) / ((M + D) (e^((tau+C)/M) - 1)).
double persisted_goodput(double mtbf, double interval, double blocking, double persist, double downtime, double reload);

/// One level of checkpoints: what a save of it blocks beyond the level below, and the mean time between the failures
/// that it is the fastest level to survive.
struct CheckpointLevel {
  double blocking, mtbf;
};
/// O7, Benoit et al.: the least overhead of levels with periods of their own (young_interval of each), to first order:
/// sum of sqrt(2 C_l / M_l). Productive time is 1 / (1 + overhead) of the whole.
double multilevel_overhead(const std::vector<CheckpointLevel>& levels);

/// O8, Aupy et al. (arXiv 1310.8486): expected time of a segment of `interval` work that ends with a verification and a
/// save; silent errors strike the work every `silent` on average: (tau+V) e^(tau/M) + C + R (e^(tau/M) - 1).
double verified_segment(double interval, double verify, double blocking, double reload, double silent);
/// Its best interval to first order, with failures, too (mtbf may be infinite): sqrt((V + C) / (1/M_s + 1/(2 M_f))).
double verified_interval(double verify, double blocking, double silent, double mtbf);

/// O14: mean time between moments at which fewer than half of the replicas are left, up to 1e15 s. Replicas away are
/// customers of M/G/inf: Poisson with mean away/M whatever the law of the time they are away (Erlang's insensitivity).
double replicas_lost_mtbf(std::int64_t replicas, double mtbf, double away);

/// O10, Meta (HPCA'25): E[ETTR] ~ (1 - N r_f (u0 + dt/2)) / (1 + w/dt), with 1/(N r_f) = mtbf, u0 the restart overhead,
/// w the save and dt the interval. A first-order estimate: below 0 where failures outpace progress.
double meta_ettr(double mtbf, double restart, double save, double interval);
/// Its optimal dt = sqrt(2 w / (N r_f)).
double meta_interval(double mtbf, double save);

/// O12: the least number of spare nodes with P(nodes in repair <= spares) >= confidence, nodes in repair being Poisson
/// with mean nodes x failures per node-second x repair seconds. Throws Error{usage} unless 0 < confidence < 1.
std::int64_t spares_needed(std::int64_t nodes, double failures_per_node_s, double repair_s, double confidence);

/// Survival function of a Weibull law with this mean and shape (shape 1 = exponential).
std::function<double(double)> weibull_survival(double mean, double shape);

}  // namespace wt
