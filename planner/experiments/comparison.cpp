#include "planner/experiments/comparison.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/statistics.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/program/timeline_json.hpp"
#include "sim/question/step_program.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {

static void to_json(nlohmann::json& out, const RankFigures& f) {
  out = {{"step_s", f.step_s}, {"exposed_communication_s", f.exposed_s}, {"peak_tensor_bytes", f.peak_bytes}};
}

namespace {

using nlohmann::json;

bool same_op_ids(const std::vector<StepTimeline>& a, const std::vector<StepTimeline>& b) {
  if (a.size() != b.size() || a.empty()) return false;
  for (std::size_t r = 0; r < a.size(); ++r)
    if (a[r].rank != b[r].rank || !std::equal(a[r].ops.begin(), a[r].ops.end(), b[r].ops.begin(), b[r].ops.end(),
                                              [](const OpRecord& x, const OpRecord& y) { return x.id == y.id; }))
      return false;
  return true;
}

double slowest(const std::vector<RankFigures>& ranks) {
  double out = 0;
  for (const RankFigures& rank : ranks) out = std::max(out, rank.step_s);
  return out;
}

/// The first measured step whose routing is recorded.
std::int64_t first_recorded(const RunSpec& run, std::int64_t measured_steps) {
  return run.steps - std::min(measured_steps, kRecordedSteps) + 1;
}

/// A rank's highest memory replay over the measured steps: it depends on each step's routing.
double highest_peak(const ProgramSet& programs, const RunSpec& run, const RoutingSource& routing, std::int64_t rank,
                    std::int64_t steps) {
  const Mesh mesh(run.layout);
  const auto sources = mesh.members(Axis::expert, mesh.group_index(Axis::expert, rank));
  const std::size_t own = static_cast<std::size_t>(mesh.coordinate(Axis::expert, rank));
  const Program& program =
      programs.programs[static_cast<std::size_t>(programs.class_of_rank[static_cast<std::size_t>(rank)])];
  double peak = 0;
  for (std::int64_t step = first_recorded(run, steps); step <= run.steps; ++step)
    peak = std::max(peak, replay_memory(program, [&](int microbatch, int layer) {
                            std::vector<std::vector<double>> counts;
                            for (std::int64_t source : sources)
                              counts.push_back(routing.counts(step, microbatch, layer, source));
                            return rows_received(counts, run.layout, layer)[own];
                          }).peak_bytes);
  return peak;
}

}  // namespace

double mean_exposed_s(const std::vector<RankFigures>& ranks) {
  double sum = 0;
  for (const RankFigures& rank : ranks) sum += rank.exposed_s;
  return sum / static_cast<double>(ranks.size());
}

ClusterSpec this_machine(std::int64_t ranks) {
  ClusterSpec cluster = read_cluster("local-2core");
  cluster.name = "this machine";
  cluster.gpus_per_node = ranks;
  cluster.cores = static_cast<double>(std::thread::hardware_concurrency());
  cluster.memory_bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  cluster.usable_memory_bytes = 0.75 * cluster.memory_bytes / static_cast<double>(ranks);
  cluster.sources["host"] = {{Evidence::measured, "cores and memory of the machine that compares"}};
  return cluster;
}

double RunComparison::predicted_step_s() const { return slowest(predicted); }
double RunComparison::measured_step_s() const { return slowest(measured); }
double RunComparison::step_error() const { return predicted_step_s() / measured_step_s() - 1; }
double RunComparison::exposed_error() const {
  return (mean_exposed_s(predicted) - mean_exposed_s(measured)) / measured_step_s();
}
double RunComparison::peak_error() const {
  double worst = 0;
  for (std::size_t r = 0; r < measured.size(); ++r)
    if (const double error = predicted[r].peak_bytes / measured[r].peak_bytes - 1;
        std::isnan(error) || std::abs(error) > std::abs(worst))  // NaN is kept
      worst = error;
  return worst;
}

RunComparison compare_run(const RunSpec& run, const std::filesystem::path& folder, const ClusterSpec& cluster,
                          const OpCost& cost) {
  RunComparison out;
  out.name = run.name;
  out.layout = run.layout.name();
  const json summary = read_json(folder / kSummaryFile), timelines = read_json(folder / kTimelineFile);
  out.measured_steps = summary.at("measured_steps");
  out.cores_used_by_others = summary.at("cores_used_by_others");
  for (const json& rank : summary.at("ranks"))
    out.measured.push_back({rank.at("step_s"), rank.at("exposed_communication_s"), rank.at("peak_tensor_bytes")});
  for (const json& timeline : timelines)
    out.measured_timelines.push_back(timeline_from_json(timeline, (folder / kTimelineFile).string()));

  const auto routing = recorded_routing(folder / kRoutingFile, run.model, run.tokens());
  const ProgramSet programs = step_program(run, read_stack("windtunnel-train"), cluster.shared_cores()).build();
  ReplayOptions options;
  options.fold = false;  // every rank has its own figures
  options.vary = true;   // as in measured steps
  const auto replay_step = [&](std::int64_t step) {
    options.step = step;
    return replay(programs, run.layout, run.model, cluster, cost, *routing, options);
  };
  const ReplayResult shown = replay_step(out.measured_timelines.front().step);
  out.predicted_timelines = shown.timelines;
  out.evidence_s = shown.evidence_s;
  if (shown.timelines.size() != out.measured.size())
    throw_runtime("{}: simulated {} ranks, measured {}; the run folder is of another layout", run.name,
                  shown.timelines.size(), out.measured.size());
  std::vector<double> low_s, high_s;
  std::vector<std::vector<double>> step_s(out.measured.size()), exposed_s(out.measured.size());  // by rank
  for (std::int64_t step = first_recorded(run, out.measured_steps); step <= run.steps; ++step) {
    const ReplayResult result = replay_step(step);
    low_s.push_back(result.low_s), high_s.push_back(result.high_s);
    for (std::size_t r = 0; r < result.timelines.size(); ++r) {
      step_s[r].push_back(result.timelines[r].step_s);
      exposed_s[r].push_back(result.timelines[r].exposed_s);
    }
  }
  out.predicted_low_s = median(low_s), out.predicted_high_s = median(high_s);
  for (std::size_t r = 0; r < step_s.size(); ++r)
    out.predicted.push_back({median(step_s[r]), median(exposed_s[r]),
                             highest_peak(programs, run, *routing, shown.timelines[r].rank, out.measured_steps)});
  out.same_ops = same_op_ids(out.predicted_timelines, out.measured_timelines);
  return out;
}

std::vector<HeldToBar> held_to_bars(const RunComparison& c) {
  return {{"step time", c.step_error(), kStepErrorBar, true},
          {"exposed communication", c.exposed_error(), kExposedErrorBar, true},
          {"peak memory", c.peak_error(), kPeakErrorBar, false}};
}

json to_json(const RunComparison& c) {
  return {{"run", c.name},
          {"layout", c.layout},
          {"calibrated_on", c.calibrated_on},
          {"measured_steps", c.measured_steps},
          {"cores_used_by_others", c.cores_used_by_others},
          {"predicted_step_s", c.predicted_step_s()},
          {"predicted_low_s", c.predicted_low_s},
          {"predicted_high_s", c.predicted_high_s},
          {"measured_step_s", c.measured_step_s()},
          {"step_error", c.step_error()},
          {"exposed_error", c.exposed_error()},
          {"peak_error", c.peak_error()},
          {"same_op_ids", c.same_ops},
          {"predicted", c.predicted},
          {"measured", c.measured}};
}

}  // namespace wt
