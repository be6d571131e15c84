// Which checkpoint interval, what it costs, and how many spare nodes: the closed forms of cadence_formulas.hpp put to
// work on one run. Every number of the answer carries its evidence. Assumes exponential failures; simulate_runs
// (sim/run) confirms the answer and covers what the formulas leave out (planned stops, waiting for spares, Weibull).
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
  SourcedNumber persist_s;   ///< background part; one at a time, so no interval is shorter
  SourcedNumber slowdown;    ///< share of that time which training loses to the traffic of the save (O11)
  RecoveryTimes recovery;
  std::int64_t nodes = 1;
  SourcedNumber repair_s;  ///< until a failed node is back; sizes the spares
  double spare_confidence = 0.99;
  double asked_interval_s = 0;  ///< work between saves that somebody wants; 0 = the best
  /// Only simulated runs have these; the closed forms leave them out.
  SourcedNumber planned_mean_s;  ///< between announced stops, as the failure preset has them; 0 = none
  SourcedTime planned_stop_s;    ///< of one, beside save, restart and reload
  std::optional<StragglerRates> stragglers;
  MaintenanceSpec maintenance;
  /// These, too; local saves and silent errors move the interval, to first order (O7, O8).
  LocalCheckpoints local;
  SilentErrors silent;
  ReplicaTolerance tolerance;  ///< raises the goodput (O17, O14) and leaves the interval as it is
  /// What a save takes from training.
  double save_s() const { return blocking_s.value + slowdown.value * persist_s.value; }
};

struct CadencePlan {
  std::int64_t interval_steps = 0;  ///< a save after every so many steps
  SourcedNumber interval_s;         ///< useful work between saves
  SourcedNumber goodput;            ///< productive step time / wall time, in the long run
  SourcedNumber spares;             ///< nodes, so that repairs outnumber spares at most 1 - confidence of the time
  bool persist_bound = false;       ///< the persist time is above what is best or asked: faster storage would help
};

/// How much of the best goodput an interval may give up to write less.
inline constexpr double kGoodputForLessWriting = 1e-3;

/// Interval from O3, at least the persist time, the better of the two neighbouring whole numbers of steps; then the
/// longest that has 99.9 % of its goodput, which writes least. What a save costs is its blocking part and what training
/// loses while it persists. With local
/// saves it is the nearest multiple of theirs, at least one, and weighs what a save costs beyond a local one against
/// failures that these do not survive; silent errors and verification go with the local interval and do not move it.
/// Without, a silent error, which loses the whole interval, counts twice, and verification belongs to the save.
/// An interval that is asked for is taken, to the nearest whole step or local save. Tolerated losses of replicas do not
/// move it. Throws Error{usage} unless step, MTBF > 0, all times are finite and
/// >= 0, nodes >= 1, and local saves do not survive all failures.
CadencePlan choose_cadence(const CadenceInput& input);

/// Work between saves before it is rounded to whole steps and multiples of local saves.
double wanted_interval_s(const CadenceInput& input);

/// Long-run goodput of the input with this interval and MTBF (O6, exponential; O17 and O14 where losses of replicas are
/// tolerated).
double goodput_at(const CadenceInput& input, double interval_s, double mtbf_s);

}  // namespace wt
