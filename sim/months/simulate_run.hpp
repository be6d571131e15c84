// A training run of weeks or months with failures, slow nodes and planned stops: jumps from event to event, so that a
// thousand runs of 90 days take well under a second. Failures are of the job, independent of each other, and the clock
// of the failure law starts anew at each restart; or every node has a clock of its own (FailureLaw::nodes). Nothing
// fails while a failure is detected and nodes are exchanged.
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
  /// 0: the law is of the job, all of which starts anew. Else it is of each of so many nodes, new when the run begins,
  /// of which a failure renews one alone; a node's mean is nodes * mean_s, so that mean_s is what the job comes to in
  /// the end. It begins with a Weibull law of mean_s * nodes^(1 - 1/shape), and ends nearly exponential where nodes are
  /// many.
  std::int64_t nodes = 0;
};

/// Nodes that become slow for a while. The job waits for its slowest node, so that one costs as much as several.
struct StragglerLaw {
  double mean_s = 0;      ///< mean running time of the job until the next one (exponential), 0 = never
  double factor = 1;      ///< step time with one slow node over step time without, >= 1
  double duration_s = 0;  ///< running time until it recovers by itself, or is found
  /// Found slow nodes, all at once, are exchanged in a stop: a save, reschedule (or wait for a spare), restart, reload.
  bool exchanged = false;
};

/// A second, faster level of checkpoints between the saves. Every save leaves such a copy, too.
struct LocalCheckpoints {
  std::int64_t interval_steps = 0;  ///< divides the run's interval_steps; 0 = none
  double blocking_s = 0;            ///< of a local save
  double reload_s = 0;              ///< in place of RunScenario::reload_s
  double survival = 0;              ///< share of failures that leave the copies intact
};

/// Computations that go wrong without an error message.
struct SilentErrors {
  double mean_s = 0;      ///< mean time in training steps until the next one (exponential), 0 = never
  double verify_s = 0;    ///< of the verification before each save of either level, which finds them all
  bool verified = false;  ///< so it is although none is drawn: of those that a trace has
};

/// Data-parallel replicas as the unit of failure (HSDP). Productive time counts tokens in proportion to replicas alive.
/// Those that are left do the step under way again.
struct ReplicaTolerance {
  std::int64_t replicas = 0;  ///< G; 0 = a failure stops the job
  double recover_s = 0;       ///< wall time after the stall until it is back, plus waiting for a spare node
  double stall_s = 0;         ///< of the job after a loss, before it goes on; losses meanwhile add none
  /// Of a replica in a step: those of lost ones are done by the others in whole microbatches, ceil(G m / alive) / m of
  /// the step; 0 = cut at will.
  std::int64_t microbatches = 0;
};

/// How far times are spread around their means: the sigma of the logarithm of a lognormal law, 0 = constant.
struct TimeSpread {
  double detect = 0, reschedule = 0, restart = 0, reload = 0, repair = 0;
};

/// Step time with `alive` of `replicas` over that with all, where the global batch is kept and each replica has
/// `microbatches` of it: ceil(replicas m / alive) / m; microbatches = 0: replicas / alive, the batch cut at will.
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
  double reload_s = 0;        ///< checkpoint; not at the first start
  double startup_s = 0;       ///< what the first step after a start takes beyond an average one
  double planned_mean_s = 0;  ///< mean running time between planned stops (exponential), 0 = none
  double planned_stop_s = 0;  ///< how long one lasts
  StragglerLaw stragglers;
  LocalCheckpoints local;
  SilentErrors silent;
  ReplicaTolerance tolerance;
  double maintenance_every_s = 0;  ///< wall time between maintenance windows, known beforehand; 0 = none
  double maintenance_s = 0;        ///< how long one lasts; one that comes due while the job is down needs no save
  std::int64_t spares = -1;        ///< nodes ready to take over, -1 = always enough
  double repair_s = 0;             ///< a failed node is away so long; with no spare left the job waits for it
  TimeSpread spread;               ///< of detect_s and on; simulate_run has constant repairs
  double wall_limit_s = 0;         ///< give up then, 0 = after 50 times the undisturbed time
};

struct RunOutcome {
  bool finished = false;  ///< false = gave up at the wall limit
  std::int64_t wall_ns = 0;
  BucketTimes buckets_ns{};        ///< sums to wall_ns exactly
  std::int64_t failures = 0;       ///< with losses of a replica
  std::int64_t planned_stops = 0;  ///< with maintenance windows
  std::int64_t stragglers = 0;     ///< nodes that became slow
  std::int64_t silent_errors = 0;  ///< found; one that a failure undid is not
  std::int64_t without_spare = 0;  ///< failures after which no node stood by; of replayed traces alone
  double wall_s() const { return static_cast<double>(wall_ns) * 1e-9; }
  double bucket_s(Bucket b) const { return static_cast<double>(buckets_ns[static_cast<std::size_t>(b)]) * 1e-9; }
  double goodput() const { return bucket_s(Bucket::productive) / wall_s(); }
};

/// One run. The same scenario and seed give the same run on every machine: failure times are
/// mean / Gamma(1 + 1/shape) * (-log(1 - u))^(1/shape), u = the upper 53 bits of std::mt19937_64(seed) / 2^53; planned
/// stops, stragglers, silent errors and what local copies survive draw from engines of their own, so that they do not
/// shift the failures. Throws Error{usage} unless steps, step_s and interval_steps > 0, times are finite, >= 0 and sum
/// to less than 70 years, shape > 0, factor >= 1, maintenance is shorter than the time between its windows, the local
/// interval divides the other, 0 <= survival <= 1, and replicas are none or at least 2.
RunOutcome simulate_run(const RunScenario& scenario, std::uint64_t seed);
namespace detail {
/// By another way through the uptimes than jump_uptime: for references that simulate_run is compared with.
RunOutcome simulate_run_by(const RunExecution& execution, const RunScenario& scenario, std::uint64_t seed);
}  // namespace detail

struct RunDistribution {
  std::int64_t runs = 0;
  std::int64_t finished = 0;               ///< runs that did not give up
  double p50_s = 0, p90_s = 0, p95_s = 0;  ///< of the finish; the wall limit where too few runs finished
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

/// Of run `run` of simulate_runs.
std::uint64_t run_seed(std::uint64_t seed, std::int64_t run);
/// Run `run` of many of a scenario. Throws as simulate_run.
using NumberedRun = std::function<RunOutcome(const RunScenario& scenario, std::int64_t run)>;
/// Those of simulate_run with seeds drawn from `seed`: run i of two scenarios has the same failure clock, so that
/// differences between them are less noisy than either.
NumberedRun seeded_runs(std::uint64_t seed);
/// Runs 0..n-1. Throws Error{usage} when n < 1.
RunDistribution simulate_runs(const RunScenario& scenario, std::int64_t n, const NumberedRun& one);
RunDistribution simulate_runs(const RunScenario& scenario, std::int64_t n, std::uint64_t seed);

}  // namespace wt
