// Closed forms for recovery policies: the value of spares, shrinking, replicas as the unit of failure, local copies and
// kept saves. They assume that nothing fails during a stall and that a repair starts at once. Otherwise only the
// simulation (sim/months) is right. Times are in one unit; M is the job's mean time between failures.
//
// O16, O17 and O20 are the labels that the tests use for their golden vectors.
#pragma once
#include <cstdint>

namespace wt {

/// O16: checkpoints on two levels.
struct TwoLevels {
  double mtbf = 0;
  double local_interval = 0;       ///< work between saves of either level
  std::int64_t locals_a_save = 1;  ///< every so many local saves one is persisted
  double blocking = 0;             ///< of a save of either level
  double survival = 0;             ///< share of failures that leave local copies intact
  double downtime = 0;             ///< detect and reschedule
  double local_reload = 0, reload = 0;
};
/// Goodput, exact for exponential failures, none of them in downtime or reload.
double two_level_goodput(const TwoLevels& levels);

/// O17: availability of one of `replicas`, 1 / (1 + recover / (replicas M)), for any distribution of the time away.
double replica_availability(std::int64_t replicas, double mtbf, double recover);
/// O17: goodput with replicas as the unit of failure, without saves: the mean speed (replica_step_factor) over a
/// binomial number of replicas, divided by 1 + availability x stall / M for the stalls.
double replica_goodput(std::int64_t replicas, double mtbf, double recover, double stall, std::int64_t microbatches);
/// O20: probability that none of `kept` saves is older than a silent error that is found after an exponential time of
/// mean `latency`: (l/tau)(e^(-(K-1) tau/l) - e^(-K tau/l)).
double no_clean_save(double interval, double latency, std::int64_t kept);

// Break-evens: what an input that nobody knows must be for a policy to pay, beside a restart from storage.

/// Least share of failures that local copies must survive: q (tau/2 + P + R - tau_l/2 - R_l) / M > C_l (1/tau_l -
/// 1/tau), as a save leaves a copy, too. Above 1: local copies never pay.
double survival_that_pays(double interval, double persist, double reload, double mtbf, double local_interval,
                          double local_blocking, double local_reload);
/// Largest stall + recover (1 - 1/f) of a lost replica with which continuing without it pays, for a steady overhead and
/// a step f times as long without it: D + R + tau/2 - overhead M.
double replica_loss_that_pays(double downtime, double reload, double interval, double overhead, double mtbf);
/// Longest activation of a hot spare with which `standbys` idle nodes pay, compared with a cold spare, which takes
/// `cold`: (cold - ready) nodes / M > standbys. At most 0: they never pay.
double activation_that_pays(double cold, double mtbf, std::int64_t nodes, std::int64_t standbys);
/// Largest mean time between silent errors at which a verification before each save pays. An unverified error is found
/// after a mean `latency`, and loses that and tau/2 (O20). A verified one loses tau. So (latency - tau/2) / M_s > V /
/// tau. At most 0: it never pays.
double silent_mtbf_that_pays(double interval, double latency, double verify);
/// The latency above which verification pays, with silent errors `silent` apart.
double latency_that_pays(double interval, double silent, double verify);
/// Goodput without verification, given the `goodput` without silent errors. Of M_s + latency trained, M_s - tau/2 is
/// kept; the rest is younger than the error or than the save before it. A recovery of `down` follows. At least 0.
double unchecked_goodput(double goodput, double interval, double latency, double silent, double down);
}  // namespace wt
