#include "planner/validate/published_plans.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/cluster.hpp"
#include "configs/files/data_sheet.hpp"
#include "configs/files/find.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/program/routing/named_routing.hpp"

namespace wt {
namespace {

/// Of a GPU, from the shipped cluster that has it.
double usable_memory_bytes(const std::string& gpu) {
  const auto wanted = data_sheet(gpu);
  if (wanted)
    for (const std::string& name : preset_names("clusters")) {
      const ClusterSpec cluster = read_cluster(name);
      if (cluster.shared_cores()) continue;
      if (const auto sheet = data_sheet(cluster.gpu_name); sheet && sheet->name == wanted->name)
        return cluster.usable_memory_bytes;
    }
  throw_usage("published plans: found a run on {}, needs a GPU of a cluster in configs/clusters", gpu);
}

PredictedPlan predicted(const SearchProblem& problem, const Layout& layout) {
  return {layout, simulate_layout(problem, layout), step_memory(problem, layout).needed()};
}

}  // namespace

std::map<std::string, RunRow> published_rows() {
  std::map<std::string, RunRow> rows;
  const std::filesystem::path tables = configs_folder() / "measurements";
  for (RunRow& row : published_training_runs(tables)) rows.emplace(row.id, std::move(row));
  for (RunRow& row : read_run_rows(tables / "large_runs.csv")) rows.emplace(row.id, std::move(row));
  return rows;
}

std::vector<PublishedPlan> read_published_plans(const std::filesystem::path& file,
                                                const std::map<std::string, RunRow>& rows) {
  YamlMap map = YamlMap::from_file(file);
  const std::int64_t simulations = map.integer("simulations", 1);
  std::vector<PublishedPlan> out;
  std::vector<YamlMap> entries = map.maps("plans");
  if (entries.empty()) map.fail("plans", "found an empty list, needs a run or more: {run: ROW_ID, good: WHY}");
  for (YamlMap& entry : entries) {
    const auto row = rows.find(entry.text("run"));
    if (row == rows.end())
      entry.fail("run", fmt::format("found '{}', needs a row_id of the tables of runs in configs/measurements",
                                    entry.text("run")));
    if (!row->second.unusable.empty())
      entry.fail("run",
                 fmt::format("found '{}', of which nothing can be predicted: {}", row->first, row->second.unusable));
    out.push_back({row->second, entry.text("stack", ""), entry.text("good"), {}});
    bool own = false;
    if (entry.has("search")) {
      own = entry.map("search").has("simulations");
      out.back().search = search_from_yaml(entry.map("search"));
    }
    if (!own) out.back().search.simulations = simulations;
    entry.finish();
  }
  map.finish();
  return out;
}

StepTerms terms_of(const Simulated& step) {
  StepTerms out;
  for (const OpClassTotal& total : step.totals) {
    (total.action == Action::exchange_stages ? out.stages : out.communication) += total.exposed_s;
    if (total.direction == Direction::recompute && total.lane == Lane::compute && total.exposed_s == 0)
      out.recompute += total.busy_s;
  }
  out.computation = step.step_s - out.recompute - out.communication - out.stages;
  return out;
}

RunFiles files_of(const PublishedPlan& plan, const std::vector<StackSpec>& stacks) {
  return run_files(plan.run, plan.stack.empty() ? stack_of(plan.run.framework, stacks) : read_stack(plan.stack));
}

SearchProblem question_of(const PublishedPlan& plan, const RunFiles& files, const OpCost& cost) {
  return {.model = plan.run.model,
          .cluster = files.cluster,
          .cost = cost,
          .gpus = plan.run.gpus,
          .seq = plan.run.seq,
          .global_batch = plan.run.global_batch,
          .precision = files.run.precision,
          .space = plan.search,
          .stack = files.stack,
          .precisions = files.run.precisions};
}

PublishedComparison judge_plan(const PublishedPlan& plan, const PublishedTimes& published,
                               const SearchProgress& progress) {
  const RunRow& run = plan.run;
  const std::string& origin = published.stack_fit().origin_of(run);
  RunFiles files = files_of(plan, published.stacks());
  if (!published.without(origin).benchmarks.collectives->knows_fabric(files.cluster.fabric))
    files.cluster.fabric.clear();
  // Times and intervals that saw nothing of the run's origin.
  const StepTimes& times = published.without(origin);
  const StackCost stack_cost(files.cluster, files.stack, times.stacks->model(), times.benchmarks, files.run.precisions);
  const RememberedCost cost(stack_cost);
  const StackMemory memory = published.memory(origin).of(files.stack, run.gpus);
  SearchProblem problem = question_of(plan, files, cost);
  problem.memory_limit_bytes = usable_memory_bytes(run.gpu);
  problem.memory = &memory;
  problem.scenarios = read_scenarios(files.routing, run.model);
  problem.peak_flops = data_sheet(run.gpu)->flops;
  problem.intervals = {published.step_bounds(origin), files.cluster, files.stack, times.stacks->model(),
                       times.benchmarks};
  PublishedComparison out{.plan = plan, .stack = files.stack.name, .memory_limit_bytes = problem.memory_limit_bytes};
  out.member = find_in_space(problem, files.run.layout);
  out.published = predicted(problem, files.run.layout);
  Layout even = files.run.layout;
  even.chunk_layers.clear();
  out.deals_layers_differently = with_stack_chunks(problem, even).layers_of_chunks(run.model.layers) !=
                                 with_stack_chunks(problem, files.run.layout).layers_of_chunks(run.model.layers);
  problem.memory_limit_bytes = std::max(problem.memory_limit_bytes, out.published.memory_bytes);
  SearchResult found = search_layouts(problem, progress);
  Candidate& chosen = found.candidates[found.chosen];
  out.ours = {chosen.layout, *chosen.result, chosen.memory_bytes};
  out.certificate = found.certificate;
  return out;
}

}  // namespace wt
