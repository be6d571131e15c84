// The cost of one simulated DBRX step, of a bound and of a thousand simulated runs, with Google Benchmark:
//   bench_simulator --benchmark_out=new.json --benchmark_out_format=json --benchmark_repetitions=9
// `windtunnel gate` compares two such files; planner/benchmarks/plot.py draws the chart of docs/simulator.md.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>

#include "planner/search/layout_space.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/bounds/bounds.hpp"
#include "sim/cost/op_times.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/months/simulate_run.hpp"
#include "sim/program/routing/named_routing.hpp"

namespace {

using namespace wt;

constexpr std::int64_t kSeq = 4096, kShard = 64, kExpert = 8;

/// DBRX on `gpus` GPUs in replicas of 64, experts over a node, routed as a recorded histogram says.
struct Step {
  ModelSpec model = read_model("dbrx");
  ClusterSpec cluster = read_cluster("dbrx-3072-h100");
  Layout layout;
  std::int64_t microbatches;
  std::unique_ptr<RoutingSource> routing;

  explicit Step(std::int64_t gpus, std::int64_t microbatch_count = 1, std::int64_t layers = 0)
      : microbatches(microbatch_count) {
    cluster.nodes = gpus / cluster.gpus_per_node;
    if (layers > 0) model.layers = layers;
    layout.shard = std::min(kShard, gpus), layout.replicate = gpus / layout.shard,
    layout.expert = std::min(kExpert, gpus);
    layout.recompute = recompute_from_string("attention+experts");
    routing = read_routing({"dbrx-proxy-c4"}, model, {microbatches, kSeq, kSeq}, 1).source;
  }
  ProgramSet programs() const {
    return build_program_set(model, layout, {kSeq, microbatches, Precision::bf16, false, 0});
  }
};

const OpCost& times() {
  static const MachineTimes made = make_times({}, read_cluster("hgx-h100"), 3072);
  return *made.cost;
}

/// Of this process and of the largest simulation it has started; run larger ones later.
double resident_MB() {
  rusage self{}, children{};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  return static_cast<double>(std::max(self.ru_maxrss, children.ru_maxrss)) / 1e3;  // kB
}

/// Counts "cpu_s": CPU seconds a pass, from here to the end of the scope, of this process and of the simulations that
/// it started. Other programs hardly stretch them, as they stretch the time that passes.
class CpuTime {
 public:
  explicit CpuTime(benchmark::State& state) : state_(state), begin_s_(now_s()) {}
  ~CpuTime() { state_.counters["cpu_s"] = benchmark::Counter(now_s() - begin_s_, benchmark::Counter::kAvgIterations); }
  CpuTime(const CpuTime&) = delete;
  CpuTime& operator=(const CpuTime&) = delete;

 private:
  static double now_s() {
    double s = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
      rusage used{};
      getrusage(who, &used);
      for (const timeval& time : {used.ru_utime, used.ru_stime})
        s += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
    return s;
  }
  benchmark::State& state_;
  double begin_s_;
};

void simulate(benchmark::State& state, const Step& step, bool fold) {
  ReplayResult result;
  times();
  {
    const CpuTime cpu(state);
    for (auto _ : state)
      result =
          replay(step.programs(), step.layout, step.model, step.cluster, times(), *step.routing, {0, fold, false, {}});
  }
  const auto ops = static_cast<std::int64_t>(unroll(step.programs().programs[0]).size());
  state.counters["ops"] = static_cast<double>(ops * result.simulated_ranks);
  state.counters["simulated_ranks"] = static_cast<double>(result.simulated_ranks);
  state.counters["step_s"] = result.step_s;
  state.counters["resident_MB"] = resident_MB();
}

void step_by_gpus(benchmark::State& state) { simulate(state, Step(state.range(0)), true); }
BENCHMARK(step_by_gpus)
    ->ArgName("gpus")
    ->RangeMultiplier(2)
    ->Range(64, 2048)
    ->Arg(3072)
    ->Arg(4096)
    ->Arg(8192)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void step_by_microbatches(benchmark::State& state) { simulate(state, Step(3072, state.range(0)), true); }
BENCHMARK(step_by_microbatches)
    ->ArgName("microbatches")
    ->RangeMultiplier(2)
    ->Range(1, 32)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void step_by_layers(benchmark::State& state) { simulate(state, Step(3072, 1, state.range(0)), true); }
BENCHMARK(step_by_layers)
    ->ArgName("layers")
    ->RangeMultiplier(2)
    ->Range(10, 320)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// The layouts that a plan of DBRX on 3,072 GPUs compares, in the search's order; each pass starts with no time
/// remembered.
struct Space {
  ModelSpec model = read_model("dbrx");
  SearchProblem problem{.model = model,
                        .cluster = read_cluster("dbrx-3072-h100"),
                        .cost = times(),
                        .gpus = 3072,
                        .seq = kSeq,
                        .global_batch = 3072,
                        .scenarios = read_scenarios({"dbrx-proxy-c4"}, read_model("dbrx"))};
  struct Case {
    Layout layout;
    ProgramSet set;
    std::unique_ptr<RoutingSource> routing;
    std::vector<RoutingFloor> floors;
  };
  std::vector<Case> cases;

  Space() {
    for (const Layout& layout : all_layouts(problem)) {
      Case each{
          layout, build_program_set(model, layout, program_options(problem, layout)), routing_of(problem, layout), {}};
      each.floors = routing_floors(each.set.programs[0], layout, problem.cluster, *each.routing, 0, 0);
      cases.push_back(std::move(each));
    }
  }
  void count(benchmark::State& state) const {
    const double n = static_cast<double>(cases.size());
    state.counters["layouts"] = n;
    state.counters["layouts_per_s"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * n, benchmark::Counter::kIsRate);
  }
};
const Space& space() {
  static const Space made;
  return made;
}

void bound0_of_space(benchmark::State& state) {
  space();
  const CpuTime cpu(state);
  for (auto _ : state) {
    const RememberedCost cost(times());
    for (const Space::Case& c : space().cases)
      benchmark::DoNotOptimize(bound0(c.set.programs[0], c.layout, space().problem.cluster, cost, c.floors));
  }
  space().count(state);
}
BENCHMARK(bound0_of_space)->Unit(benchmark::kMicrosecond);

/// CPU seconds of this thread.
double thread_s() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// The bound alone, of a program that has just been built, as the search asks for it: it is in the caches still.
void bound0_just_built(benchmark::State& state) {
  const SearchProblem& p = space().problem;
  double least_s = 1e300;
  for (auto _ : state) {
    const RememberedCost cost(times());
    double bounds_s = 0;
    for (const Space::Case& c : space().cases) {
      const ProgramSet set = build_program_set(p.model, c.layout, program_options(p, c.layout));
      const double begin_s = thread_s();
      benchmark::DoNotOptimize(bound0(set.programs[0], c.layout, p.cluster, cost, c.floors));
      bounds_s += thread_s() - begin_s;
    }
    state.SetIterationTime(bounds_s);
    least_s = std::min(least_s, bounds_s);
  }
  space().count(state);
  state.counters["cpu_s"] = least_s;
}
BENCHMARK(bound0_just_built)->UseManualTime()->Unit(benchmark::kMicrosecond);

void bound1_of_space(benchmark::State& state) {
  space();
  const CpuTime cpu(state);
  for (auto _ : state) {
    const RememberedCost cost(times());
    for (const Space::Case& c : space().cases)
      benchmark::DoNotOptimize(bound1(c.set, c.layout, space().problem.cluster, cost, *c.routing));
  }
  space().count(state);
}
BENCHMARK(bound1_of_space)->Unit(benchmark::kMicrosecond);

/// With everything that a layout of a search needs before its bound: its program, its busiest rank, its floors.
void bound_with_program(benchmark::State& state) {
  for (auto _ : state) {
    const RememberedCost cost(times());
    const SearchProblem& p = space().problem;
    const SearchProblem problem{.model = p.model,
                                .cluster = p.cluster,
                                .cost = cost,
                                .gpus = p.gpus,
                                .seq = p.seq,
                                .global_batch = p.global_batch,
                                .scenarios = p.scenarios};
    for (const Space::Case& c : space().cases)
      benchmark::DoNotOptimize(state.range(0) == 0 ? lane_bound(problem, c.layout, *c.routing)
                                                   : path_bound(problem, c.layout, *c.routing));
  }
  space().count(state);
}
BENCHMARK(bound_with_program)->ArgName("bound")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

/// Ninety days of steps, a failure every four hours (about Llama 3's rate at 16,384 GPUs), a save every five minutes.
RunScenario ninety_days() {
  RunScenario s;
  s.step_s = 4, s.steps = static_cast<std::int64_t>(90 * 86400 / s.step_s), s.interval_steps = 75;
  s.blocking_s = 0.5, s.persist_s = 40, s.startup_s = 30, s.failures = {4 * 3600.0, 1};
  s.detect_s = 60, s.reschedule_s = 120, s.restart_s = 120, s.reload_s = 60, s.spares = 8, s.repair_s = 12 * 3600.0;
  return s;
}

void thousand_runs(benchmark::State& state) {
  double failures = 0;
  const CpuTime cpu(state);
  for (auto _ : state) failures = simulate_runs(ninety_days(), 1000, 1).failures;
  state.counters["failures_a_run"] = failures;
}
BENCHMARK(thousand_runs)->Unit(benchmark::kMillisecond);

/// With local saves after every five steps, with a verification before each save, with replicas that may be lost.
void thousand_runs_with(benchmark::State& state, void (*change)(RunScenario&)) {
  RunScenario s = ninety_days();
  change(s);
  for (auto _ : state) benchmark::DoNotOptimize(simulate_runs(s, 1000, 1));
}
BENCHMARK_CAPTURE(thousand_runs_with, local_saves, [](RunScenario& s) {
  s.local = {5, 0.5, 5, 0.8};
})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(thousand_runs_with, silent_errors, [](RunScenario& s) {
  s.silent = {9 * 86400.0, 10};
})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(thousand_runs_with, replica_loss, [](RunScenario& s) {
  s.tolerance = {16, 600, 180};
})->Unit(benchmark::kMillisecond);

// Last: their memory stays the largest.
/// Every one of 3,072 GPUs, with another cluster or layout: more or other transfers share pools.
void step_unfolded_with(benchmark::State& state, void (*change)(Step&)) {
  Step step(3072);
  change(step);
  simulate(state, step, false);
}
#define WT_UNFOLDED_WITH(name, ...) \
  BENCHMARK_CAPTURE(step_unfolded_with, name, __VA_ARGS__)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1)
WT_UNFOLDED_WITH(slow_node, [](Step& step) { step.cluster.degraded.push_back({17, 0.9, 0.8, 1}); });
WT_UNFOLDED_WITH(oversubscription_2, [](Step& step) { step.cluster.oversubscription = 2; });
WT_UNFOLDED_WITH(replicas_of_512, [](Step& step) { step.layout.shard = 512, step.layout.replicate = 6; });
WT_UNFOLDED_WITH(experts_over_two_nodes, [](Step& step) { step.layout.expert = 16; });

void step_unfolded(benchmark::State& state) { simulate(state, Step(state.range(0)), false); }
BENCHMARK(step_unfolded)
    ->ArgName("gpus")
    ->RangeMultiplier(2)
    ->Range(64, 1024)
    ->Arg(3072)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace

BENCHMARK_MAIN();
