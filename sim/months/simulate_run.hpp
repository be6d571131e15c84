// A training run of weeks or months with failures, slow nodes and planned stops. It jumps from event to event: a
// thousand runs of 90 days take well under a second. Failures are independent of each other. They stop the job, and the
// clock of the failure law starts anew at each restart. Alternatively each node has its own clock (FailureLaw::nodes).
// Nothing fails while the job is down.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/months/uptime.hpp"

namespace wt {

/// Time between failures of the job, counted while it runs.
struct FailureLaw {
  double mean_s = 0;   ///< 0 = never
  double shape = 1.0;  ///< of a Weibull law; 1 = exponential, below 1 = failures cluster after a restart
  /// 0: one clock for the whole job. Else each of `nodes` nodes has its own clock. All are new when the run begins, and
  /// a failure renews only its node's clock. A node's mean is nodes * mean_s, so the job's long-run mean is mean_s. At
  /// first the job sees a Weibull law of mean mean_s * nodes^(1 - 1/shape), later a nearly exponential one if there are
  /// many nodes.
  std::int64_t nodes = 0;
};

/// Nodes that become slow for a while. The job waits for its slowest node, so several cost as much as one.
struct StragglerLaw {
  double mean_s = 0;      ///< mean running time until the next one (exponential), 0 = never
  double factor = 1;      ///< step time with a slow node over step time without, >= 1
  double duration_s = 0;  ///< running time until the node recovers, or is detected
  /// Detected slow nodes are exchanged together, in a stop: save, reschedule (or wait for a spare), restart, reload.
  bool exchanged = false;
};

/// A second, faster level of checkpoints, in host memory, between the saves. Every save leaves such a copy, too.
struct LocalCheckpoints {
  std::int64_t interval_steps = 0;  ///< divides the run's interval_steps; 0 = none
  double blocking_s = 0;            ///< of a local save
  double reload_s = 0;              ///< replaces RunScenario::reload_s
  double survival = 0;              ///< share of failures that leave the copies intact
};

/// Wrong results without an error message.
struct SilentErrors {
  double mean_s = 0;      ///< mean step time until the next one (exponential), 0 = never
  double verify_s = 0;    ///< of the verification before each save of either level, which finds all errors
  bool verified = false;  ///< verify even if mean_s is 0: for the silent errors of a trace
};

/// Data-parallel replicas as the unit of failure (HSDP). Productive time counts tokens in proportion to the replicas
/// alive. The surviving replicas repeat the step in progress.
struct ReplicaTolerance {
  std::int64_t replicas = 0;  ///< G; 0 = a failure stops the job
  /// Wall time from the end of the stall until the replica is back, without the wait for a spare node.
  double recover_s = 0;
  double stall_s = 0;  ///< of the job after a loss; losses during a stall add none
  /// Of a replica in a step. Survivors take over the microbatches of lost replicas whole: a step takes ceil(G m /
  /// alive) / m as long. 0 = the batch is split evenly.
  std::int64_t microbatches = 0;
};

/// Spread of times around their means: sigma of the logarithm of a lognormal law, 0 = constant.
struct TimeSpread {
  double detect = 0, reschedule = 0, restart = 0, reload = 0, repair = 0;
};

/// Step time with `alive` of `replicas` replicas over that with all. The global batch is kept. ceil(replicas m / alive)
/// / m for m `microbatches` a replica; replicas / alive for m = 0, where the batch is split evenly.
double replica_step_factor(std::int64_t replicas, std::int64_t alive, std::int64_t microbatches);

struct RunScenario {
  std::int64_t steps = 0;           ///< to train
  double step_s = 0;                ///< wall time of one step without saves, from the step simulator or a measurement
  std::int64_t interval_steps = 0;  ///< steps between saves
  double blocking_s = 0;            ///< of a save
  double persist_s = 0;             ///< of a save, in the background
  FailureLaw failures;
  double detect_s = 0;
  double reschedule_s = 0;
  double restart_s = 0;       ///< processes and communicators; also at the first start
  double reload_s = 0;        ///< reload of the checkpoint; not at the first start
  double startup_s = 0;       ///< additional time of the first step after a start
  double planned_mean_s = 0;  ///< mean running time between planned stops (exponential), 0 = none
  double planned_stop_s = 0;  ///< duration of a planned stop
  StragglerLaw stragglers;
  LocalCheckpoints local;
  SilentErrors silent;
  ReplicaTolerance tolerance;
  double maintenance_every_s = 0;  ///< wall time between maintenance windows, known in advance; 0 = none
  double maintenance_s = 0;  ///< duration of a window; a window that comes due while the job is down needs no save
  std::int64_t spares = -1;  ///< standby nodes, -1 = always enough
  double repair_s = 0;       ///< of a failed node; without a spare the job waits for it
  TimeSpread spread;         ///< of the detection and recovery times; simulate_run has constant repairs
  double wall_limit_s = 0;   ///< the run gives up then; 0 = after 50 times the undisturbed time
};

struct RunOutcome {
  bool finished = false;  ///< false = gave up at the wall limit
  std::int64_t wall_ns = 0;
  BucketTimes buckets_ns{};        ///< sums to wall_ns exactly
  std::int64_t failures = 0;       ///< with losses of replicas
  std::int64_t planned_stops = 0;  ///< with maintenance windows
  std::int64_t stragglers = 0;     ///< nodes that became slow
  std::int64_t silent_errors = 0;  ///< those found; a failure may undo one before
  std::int64_t without_spare = 0;  ///< failures with no standby node left; only from replay_trace
  double wall_s() const { return static_cast<double>(wall_ns) * 1e-9; }
  double bucket_s(Bucket b) const { return static_cast<double>(buckets_ns[static_cast<std::size_t>(b)]) * 1e-9; }
  double goodput() const { return bucket_s(Bucket::productive) / wall_s(); }
};

/// One run. The same scenario and seed give the same run on every machine. Failure times are mean / Gamma(1 + 1/shape)
/// * (-log(1 - u))^(1/shape), u = the upper 53 bits of std::mt19937_64(seed) / 2^53. Planned stops, stragglers, silent
/// errors and the survival of local copies have engines of their own, so they do not shift the failures.
/// Throws Error{usage} unless steps, step_s and interval_steps > 0, times are finite, >= 0 and sum to less than 70
/// years, shape > 0, factor >= 1, maintenance is shorter than the time between its windows, the local interval divides
/// interval_steps, 0 <= survival <= 1, and replicas are 0 or at least 2.
RunOutcome simulate_run(const RunScenario& scenario, std::uint64_t seed);
namespace detail {
/// By another way through the uptimes than jump_uptime: for references that simulate_run is compared with.
RunOutcome simulate_run_by(const RunExecution& execution, const RunScenario& scenario, std::uint64_t seed);
}  // namespace detail

struct RunDistribution {
  std::int64_t runs = 0;
  std::int64_t finished = 0;               ///< runs that did not give up
  double p50_s = 0, p90_s = 0, p95_s = 0;  ///< quantiles of the finish; the wall limit where too few runs finished
  double mean_s = 0;
  double goodput = 0;                            ///< mean over runs
  double goodput_p05 = 0;                        ///< 95 % of runs do better
  std::array<double, kBuckets> bucket_mean_s{};  ///< sums to mean_s
  double failures = 0;                           ///< mean per run
  double planned_stops = 0;
  double stragglers = 0;
  double silent_errors = 0;
  std::vector<double> wall_s;  ///< of each run
};

/// The seed of run `run` of simulate_runs.
std::uint64_t run_seed(std::uint64_t seed, std::int64_t run);
/// Run number `run` of a scenario. Throws as simulate_run.
using NumberedRun = std::function<RunOutcome(const RunScenario& scenario, std::int64_t run)>;
/// Runs of simulate_run with seeds drawn from `seed`. Run i of two scenarios has the same failure clock, so the
/// difference of two scenarios is less noisy than either.
NumberedRun seeded_runs(std::uint64_t seed);
/// Runs 0..n-1. Throws Error{usage} when n < 1.
RunDistribution simulate_runs(const RunScenario& scenario, std::int64_t n, const NumberedRun& one);
RunDistribution simulate_runs(const RunScenario& scenario, std::int64_t n, std::uint64_t seed);

}  // namespace wt
