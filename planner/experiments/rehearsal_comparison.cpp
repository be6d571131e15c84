#include "planner/experiments/rehearsal_comparison.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/number.hpp"
#include "configs/base/statistics.hpp"
#include "planner/experiments/reduced_run.hpp"
#include "sim/program/timeline_json.hpp"

namespace wt {

WT_TO_JSON(PlanFigures, cluster, step_s, peak_bytes, limit_bytes)

namespace {

using nlohmann::json;

OpKey key_of(const Op& op) { return {op.action, op.direction, op.group}; }

/// The compute lane's own work. Collectives are faked, so their times mean nothing.
bool computes(const Op& op) { return !op.asynchronous() && !op.work.empty(); }

std::map<OpKey, std::int64_t> counts_of(const Program& program) {
  std::map<OpKey, std::int64_t> out;
  for (const OpInstance& op : unroll(program))
    if (computes(*op.op)) ++out[key_of(*op.op)];
  return out;
}

std::vector<StepTimeline> timelines_in(const json& steps, const std::string& origin,
                                       const std::vector<OpInstance>& ops) {
  std::vector<StepTimeline> out;
  for (const json& step : steps) {
    out.push_back(timeline_from_json(step.at("timeline"), origin));
    const auto& records = out.back().ops;
    if (!std::equal(records.begin(), records.end(), ops.begin(), ops.end(),
                    [](const OpRecord& a, const OpInstance& b) { return a.id == b.id(); }))
      throw_runtime(
          "{}: holds other ops than the step program of this run; rehearse again with both programs of one build",
          origin);
  }
  if (out.empty()) throw_usage("{}: holds no steps, needs at least one; rehearse again", origin);
  return out;
}

}  // namespace

std::optional<PlanFigures> read_plan_figures(const std::filesystem::path& run_file, const RunSpec& run) {
  const std::filesystem::path file = run_file.parent_path() / "plan.json";
  if (!std::filesystem::exists(file)) return {};
  const json document = read_json(file);
  const JsonReader root(document, file.string());
  if (root.at("schema").string() != "windtunnel.plan/1")
    root.at("schema").fail("'" + root.at("schema").string() + "'", "windtunnel.plan/1");
  const JsonReader layout = root.at("layout");
  const Layout& l = run.layout;
  if (layout.at("replicate").integer() != l.replicate || layout.at("shard").integer() != l.shard ||
      layout.at("expert").integer() != l.expert || layout.at("microbatch").integer() != l.microbatch ||
      layout.at("recompute").string() != to_string(l.recompute))
    return {};
  PlanFigures out;
  out.cluster = root.at("study").at("cluster").string();
  out.step_s = root.at("step").at("step_s").non_negative();
  out.peak_bytes = root.at("memory").at("peak_bytes").non_negative();
  out.limit_bytes = root.at("memory").at("limit_bytes").non_negative();
  out.routing = root.at("study").at("routing").strings();
  if (root.has("ops"))
    for (const JsonReader& op : root.at("ops").elements())
      out.op_s[op.at("op").string()] =
          op.at("busy_s").non_negative() / static_cast<double>(std::max<std::int64_t>(1, op.at("count").integer()));
  return out;
}

bool Rehearsal::reduced() const {
  return run.model.d_model != plan.model.d_model || run.model.layers != plan.model.layers || run.seq != plan.seq ||
         run.microbatches() != plan.microbatches();
}

double Rehearsal::measured_s() const {
  double sum = 0;
  for (const RehearsedOp& op : ops) sum += op.measured_s * static_cast<double>(op.rehearsed);
  return sum;
}

double Rehearsal::extrapolated_s() const {
  double sum = 0;
  for (const RehearsedOp& op : ops) sum += op.measured_s * static_cast<double>(op.planned);
  return sum;
}

std::optional<double> Rehearsal::predicted_s() const {
  double sum = 0;
  for (const RehearsedOp& op : ops) {
    if (!op.predicted) return {};
    sum += op.predicted->seconds * static_cast<double>(op.rehearsed);
  }
  return sum;
}

bool Rehearsal::peak_holds() const {
  return std::abs(replayed_peak_bytes - measured_peak_bytes) <= std::max(0.02 * measured_peak_bytes, 4 * kMiB_bytes);
}

Rehearsal read_rehearsal_result(const RunSpec& plan, const RunSpec& run, const std::filesystem::path& folder,
                                const RoutingSource& source, const RoutingSource& plan_source, const OpCost* times) {
  Rehearsal out;
  out.plan = plan, out.run = run;
  const std::string origin = (folder / "rehearsal.json").string();
  const json document = read_json(origin);
  out.device = document.at("device"), out.routing = source.description(), out.tokens = document.at("tokens");
  const Program program = rank_program(run);
  const std::vector<OpInstance> ops = unroll(program);
  const std::vector<StepTimeline> steps = timelines_in(document.at("steps"), origin, ops);
  out.cores_used_by_others = document.at("cores_used_by_others");
  out.steps = static_cast<std::int64_t>(steps.size());
  out.loss = document.at("steps").back().at("loss");

  const RankRouting rows(run, source), plan_rows(plan, plan_source);
  for (const StepTimeline& t : steps) {
    for (const OpRecord& op : t.ops)
      if (op.peak_bytes > out.measured_peak_bytes)
        out.measured_peak_bytes = op.peak_bytes, out.measured_peak_op = op.id;
    if (const MemoryReplay replay = replay_memory(program, rows.rows(t.step));
        replay.peak_bytes > out.replayed_peak_bytes)
      out.replayed_peak_bytes = replay.peak_bytes, out.replayed_peak_op = replay.peak_id;
  }
  RunSpec on_gpus = plan;
  on_gpus.device = DeviceKind::cuda;
  const Program planned = rank_program(on_gpus);
  out.plan_replay_bytes = replay_memory(planned, plan_rows.rows(1)).peak_bytes;

  const bool cpu = run.device == DeviceKind::cpu;
  std::map<OpKey, std::vector<double>> measured;  // sums by step
  std::map<OpKey, TimeEstimate> predicted;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = *ops[i].op;
    if (op.asynchronous()) {
      auto& [count, bytes] = out.collectives[op.kind];
      ++count, bytes += op.collective.bytes.at(steps.back().ops[i].rows);
    }
    if (!computes(op)) continue;
    auto& sums = measured.try_emplace(key_of(op), steps.size(), 0.0).first->second;
    for (std::size_t s = 0; s < steps.size(); ++s)
      sums[s] += cpu ? steps[s].ops[i].thread_cpu_s : steps[s].ops[i].done_s - steps[s].ops[i].issued_s;
    if (!times) continue;
    const TimeEstimate estimate = times->segment(op, steps.back().ops[i].rows);
    if (const auto [at, fresh] = predicted.try_emplace(key_of(op), estimate); !fresh) at->second += estimate;
  }
  const auto planned_counts = counts_of(planned);
  for (const auto& [key, count] : counts_of(program)) {
    RehearsedOp op{key, planned_counts.contains(key) ? planned_counts.at(key) : 0, count, 0, {}};
    op.measured_s = median(measured.at(key)) / static_cast<double>(count);
    if (times) (op.predicted = predicted.at(key)).value() *= 1.0 / static_cast<double>(count);
    out.ops.push_back(op);
  }
  return out;
}

json to_json(const Rehearsal& r) {
  json ops = json::array(), collectives = json::object();
  for (const RehearsedOp& op : r.ops) {
    const std::string name = to_string(op.key);
    json one{{"op", name}, {"planned", op.planned}, {"rehearsed", op.rehearsed}, {"measured_s", op.measured_s}};
    one["predicted_s"] = op.predicted ? json(op.predicted->seconds) : json(nullptr);
    one["plan_s"] = r.figures && r.figures->op_s.contains(name) ? json(r.figures->op_s.at(name)) : json(nullptr);
    ops.push_back(std::move(one));
  }
  for (const auto& [kind, sum] : r.collectives)
    collectives[to_string(kind)] = {{"count", sum.first}, {"bytes", sum.second}};
  json out{{"run", r.plan.name},
           {"layout", r.plan.layout.name()},
           {"rank", r.run.rehearsal.rank},
           {"device", r.device},
           {"routing", r.routing},
           {"tokens", r.tokens},
           {"reduced", r.reduced()},
           {"width_divisor", r.run.rehearsal.width_divisor},
           {"layers", {{"plan", r.plan.model.layers}, {"rehearsed", r.run.model.layers}}},
           {"max_seq_len", {{"plan", r.plan.seq}, {"rehearsed", r.run.seq}}},
           {"microbatches", {{"plan", r.plan.microbatches()}, {"rehearsed", r.run.microbatches()}}},
           {"measured_steps", r.steps},
           {"cores_used_by_others", r.cores_used_by_others},
           {"ops", ops},
           {"collectives", collectives},
           {"compute",
            {{"measured_s", r.measured_s()}, {"extrapolated_s", r.extrapolated_s()}, {"predicted_s", r.predicted_s()}}},
           {"memory",
            {{"measured_peak_bytes", r.measured_peak_bytes},
             {"measured_peak_op", r.measured_peak_op},
             {"replayed_peak_bytes", r.replayed_peak_bytes},
             {"replayed_peak_op", r.replayed_peak_op},
             {"plan_replay_bytes", r.plan_replay_bytes},
             {"holds", r.peak_holds()}}}};
  if (r.figures) out["plan"] = *r.figures;
  return out;
}

}  // namespace wt
