// Closed forms for checkpoint cadence and recovery. Symbols: tau is the useful work between saves. C is the part of a
// save that blocks training, P the background part. M is the job's mean time between failures. D is downtime without
// failures (detect, reschedule). R is restart and reload, which can fail. All times are in the same unit.
//
// The tests name their golden vectors O1, O2, ...
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace wt {

/// O1, Young 1974: sqrt(2 C M).
double young_interval(double blocking, double mtbf);
/// O2, Daly 2006, eq. 37: the higher-order estimate for C < 2M, else M.
double daly_interval(double blocking, double mtbf);
/// O3: the exact optimum of O4 for exponential failures, M (1 + W0(-exp(-C/M - 1))). C = 0 gives 0.
double exact_interval(double blocking, double mtbf);

/// The longest interval whose goodput in O4 and O6 is at most `share` below that of `best`, which must be the optimum
/// or longer. In both, goodput is proportional to tau / (e^((tau+C)/M) - 1).
double longest_interval(double blocking, double mtbf, double best, double share);

/// O4: expected time for `work` with blocking saves; failures in work, save and R but not in D:
/// (W/tau) e^(R/M) (M + D) (e^((tau+C)/M) - 1).
double expected_time(double work, double interval, double blocking, double downtime, double reload, double mtbf);

/// O5: expected time lost to a failure inside a span of length x: M - x / (e^(x/M) - 1).
double expected_lost(double span, double mtbf);

/// O6: long-run goodput with a background persist, for failures of any distribution whose clock starts anew at each
/// restart: tau * sum over k >= 1 of S(R + k (tau + C) + P) / (E[X] + D). S is the survival function, and E[X] = mean.
/// S must fall to 0; the sum ends when terms become negligible.
double persisted_goodput(const std::function<double(double)>& survival, double mean, double interval, double blocking,
                         double persist, double downtime, double reload);
/// O6 for exponential failures: tau e^(-(R+P)/M) / ((M + D) (e^((tau+C)/M) - 1)).
double persisted_goodput(double mtbf, double interval, double blocking, double persist, double downtime, double reload);

/// One level of checkpoints: the blocking time of its save beyond that of the level below, and the mean time between
/// failures for which it is the fastest surviving level.
struct CheckpointLevel {
  double blocking, mtbf;
};
/// O7, Benoit et al.: the least overhead of levels with independent periods (young_interval of each), to first order:
/// sum of sqrt(2 C_l / M_l). The productive share of time is 1 / (1 + overhead).
double multilevel_overhead(const std::vector<CheckpointLevel>& levels);

/// O8, Aupy et al. (arXiv 1310.8486): expected time of a segment of `interval` work that ends with a verification and a
/// save. Silent errors are `silent` apart on average: (tau+V) e^(tau/M) + C + R (e^(tau/M) - 1).
double verified_segment(double interval, double verify, double blocking, double reload, double silent);
/// The best interval of O8 to first order, also with failures (mtbf may be infinite): sqrt((V + C) / (1/M_s + 1/(2
/// M_f))).
double verified_interval(double verify, double blocking, double silent, double mtbf);

/// O14: mean time between moments with fewer than half of the replicas, up to 1e15 s. Lost replicas are customers of an
/// M/G/inf queue. Their number is Poisson with mean away/M, for any distribution of the time away (Erlang's
/// insensitivity).
double replicas_lost_mtbf(std::int64_t replicas, double mtbf, double away);

/// O10, Meta (HPCA'25): E[ETTR] ~ (1 - N r_f (u0 + dt/2)) / (1 + w/dt), with 1/(N r_f) = mtbf, restart overhead u0,
/// save w and interval dt. A first-order estimate: below 0 if failures outpace progress.
double meta_ettr(double mtbf, double restart, double save, double interval);
/// The optimum of O10, dt = sqrt(2 w / (N r_f)).
double meta_interval(double mtbf, double save);

/// O12: the least number of spare nodes with P(nodes in repair <= spares) >= confidence. Nodes in repair are Poisson
/// with mean nodes x failures per node-second x repair seconds. Throws Error{usage} unless 0 < confidence < 1.
std::int64_t spares_needed(std::int64_t nodes, double failures_per_node_s, double repair_s, double confidence);

/// Survival function of a Weibull law with this mean. Shape 1 = exponential.
std::function<double(double)> weibull_survival(double mean, double shape);

}  // namespace wt
