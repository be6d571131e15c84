// The checkpoint interval, its cost, and the number of spare nodes: the closed forms of cadence_formulas.hpp applied to
// one run. Every number of the result has its evidence. Assumes exponential failures. simulate_runs (sim/months) checks
// the result, with what the formulas leave out (planned stops, waiting for spares, Weibull).
#pragma once
#include <cstdint>
#include <optional>

#include "configs/files/failures.hpp"
#include "configs/files/study.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

struct CadenceInput {
  SourcedNumber step_s;
  SourcedNumber mtbf_s;      ///< of the job, FailurePreset::job_mtbf_s
  SourcedNumber blocking_s;  ///< part of a save that stops training
  SourcedNumber persist_s;   ///< background part; one persist at a time, so no interval is shorter
  SourcedNumber slowdown;    ///< relative loss of training speed during a persist (O11)
  RecoveryTimes recovery;
  std::int64_t nodes = 1;
  SourcedNumber repair_s;  ///< until a failed node is back; determines the spares
  double spare_confidence = 0.99;
  double asked_interval_s = 0;  ///< requested work between saves; 0 = the best
  /// Only simulated runs have these. The closed forms ignore them.
  SourcedNumber planned_mean_s;  ///< between planned stops, from the failure preset; 0 = none
  SourcedTime planned_stop_s;    ///< of one stop, without save, restart and reload
  std::optional<StragglerRates> stragglers;
  MaintenanceSpec maintenance;
  /// Local saves and silent errors change the interval to first order (O7, O8).
  LocalCheckpoints local;
  SilentErrors silent;
  ReplicaTolerance tolerance;  ///< raises the goodput (O17, O14) and does not change the interval
  /// Training time lost to a save.
  double save_s() const { return blocking_s.value + slowdown.value * persist_s.value; }
};

struct CadencePlan {
  std::int64_t interval_steps = 0;  ///< steps between saves
  SourcedNumber interval_s;         ///< useful work between saves
  SourcedNumber goodput;            ///< long-run productive step time over wall time
  SourcedNumber spares;             ///< nodes; more are in repair at most 1 - confidence of the time
  bool persist_bound = false;       ///< the persist time limits the interval: faster storage would help
};

/// The relative loss of goodput that an interval may have in order to write less.
inline constexpr double kGoodputForLessWriting = 1e-3;

/// The interval of O3, at least the persist time, rounded to the better whole number of steps. Then the longest
/// interval with 99.9 % of its goodput, which writes least. A save costs its blocking part and the training lost while
/// it persists.
/// With local saves: the nearest multiple of their interval. The cost of a save beyond a local one is weighed against
/// failures that local copies do not survive. Silent errors and verification depend on the local interval alone.
/// Without local saves: a silent error counts twice, because it loses the whole interval. Verification is part of the
/// save.
/// A requested interval is used, rounded to whole steps or local saves. Losses of replicas do not change it.
/// Throws Error{usage} unless step, MTBF > 0, all times are finite and >= 0, nodes >= 1, and some failures destroy
/// local saves.
CadencePlan choose_cadence(const CadenceInput& input);

/// Work between saves before rounding to whole steps and multiples of local saves.
double wanted_interval_s(const CadenceInput& input);

/// Long-run goodput with this interval and MTBF: O6 with exponential failures; O17 and O14 with replicas as the unit of
/// failure.
double goodput_at(const CadenceInput& input, double interval_s, double mtbf_s);

}  // namespace wt
