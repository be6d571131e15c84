// Closed forms for checkpoint cadence and recovery. Symbols: tau is the useful work between saves. C is the part of a
// save that blocks training, P the background part. M is the job's mean time between failures. D is downtime without
// failures (detect, reschedule). R is restart and reload, which can fail. All times are in the same unit.
//
// The tests name their golden vectors O1, O2, ...
#pragma once
#include <cstdint>

namespace wt {

/// O3: the exact minimiser of the time that work takes with blocking saves and exponential failures, which goes as
/// (e^((tau+C)/M) - 1) / tau (O4): M (1 + W0(-exp(-C/M - 1))). C = 0 gives 0.
double exact_interval(double blocking, double mtbf);

/// The longest interval whose goodput in O4 and O6 is at most `share` below that of `best`, which must be the optimum
/// or longer. In both, goodput is proportional to tau / (e^((tau+C)/M) - 1).
double longest_interval(double blocking, double mtbf, double best, double share);

/// O6 for exponential failures in closed form: tau e^(-(R+P)/M) / ((M + D) (e^((tau+C)/M) - 1)).
double persisted_goodput(double mtbf, double interval, double blocking, double persist, double downtime, double reload);

/// O14: mean time between moments at which fewer than half of the replicas are left, up to 1e15 s. Replicas away are
/// customers of M/G/inf: Poisson with mean away/M whatever the law of the time they are away (Erlang's insensitivity).
double replicas_lost_mtbf(std::int64_t replicas, double mtbf, double away);

/// O12: the least number of spare nodes with P(nodes in repair <= spares) >= confidence, nodes in repair being Poisson
/// with mean nodes x failures per node-second x repair seconds. Throws Error{usage} unless 0 < confidence < 1.
std::int64_t spares_needed(std::int64_t nodes, double failures_per_node_s, double repair_s, double confidence);

}  // namespace wt
