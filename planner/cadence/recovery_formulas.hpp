// Closed forms for recovery policies: what spares, shrinking, lost replicas, local copies and kept saves are worth
// inside their assumptions. Nothing fails during a stall, and a repair starts at once. Outside of that only the
// simulation (sim/months) is right. Times in one unit; M job mean time between failures.
//
// O16, O17 and O20 are the labels that the tests use for their golden vectors.
#pragma once
#include <cstdint>

namespace wt {

/// O16: checkpoints on two levels.
struct TwoLevels {
  double mtbf = 0;
  double local_interval = 0;       ///< work between saves of either level
  std::int64_t locals_a_save = 1;  ///< every so many of them is persisted
  double blocking = 0;             ///< of each
  double survival = 0;             ///< share of failures that leave local copies intact
  double downtime = 0;             ///< detect and reschedule
  double local_reload = 0, reload = 0;
};
/// Goodput, exact for exponential failures; nothing fails in downtime and reload.
double two_level_goodput(const TwoLevels& levels);

/// O17: availability of one of `replicas`, 1 / (1 + recover / (replicas M)), whatever the law of the time away.
double replica_availability(std::int64_t replicas, double mtbf, double recover);
/// O17: goodput with replicas as the unit of failure, without saves: mean speed (replica_step_factor) over a binomial
/// number of them, over that availability x stall / M more for the stalls.
double replica_goodput(std::int64_t replicas, double mtbf, double recover, double stall, std::int64_t microbatches);
/// O20: probability that none of `kept` saves is older than a silent error that is found after an exponential time of
/// mean `latency`: (l/tau)(e^(-(K-1) tau/l) - e^(-K tau/l)).
double no_clean_save(double interval, double latency, std::int64_t kept);

// Break-evens: what an input that nobody knows must be for a policy to pay, beside a restart from storage.

/// Share of failures that local copies have to survive: q (tau/2 + P + R - tau_l/2 - R_l) / M > C_l (1/tau_l - 1/tau),
/// as a save leaves a copy, too. Above 1: they never pay.
double survival_that_pays(double interval, double persist, double reload, double mtbf, double local_interval,
                          double local_blocking, double local_reload);
/// What the stall and the time away of a lost replica may come to, stall + recover (1 - 1/f) where a step without it
/// takes f times as long, so that going on without it pays at a steady overhead: below D + R + tau/2 - overhead M.
double replica_loss_that_pays(double downtime, double reload, double interval, double overhead, double mtbf);
/// How soon a hot spare must be ready so that `standbys` idle nodes pay beside a cold spare, which takes `cold`:
/// (cold - ready) nodes / M > standbys. At most 0: they never pay.
double activation_that_pays(double cold, double mtbf, std::int64_t nodes, std::int64_t standbys);
/// Mean time between silent errors below which a check before each save pays. Unchecked an error is found after a mean
/// `latency`, which loses that and tau/2 (O20); checked it loses tau: (latency - tau/2) / M_s > V / tau. At most 0:
/// never.
double silent_mtbf_that_pays(double interval, double latency, double verify);
/// The latency above which it pays, silent errors being `silent` apart.
double latency_that_pays(double interval, double silent, double verify);
/// Goodput left of `goodput` where nothing checks: of M_s + latency trained, M_s - tau/2 are kept (the rest is younger
/// than the error, or than the save before it), and a recovery of `down` follows. At least 0.
double unchecked_goodput(double goodput, double interval, double latency, double silent, double down);
}  // namespace wt
