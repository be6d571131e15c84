#include "planner/cli/rehearse/rehearsal_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "planner/cli/parts/cells.hpp"
#include "reports/render/program_words.hpp"

namespace wt {
namespace {

Cell mebibytes(double bytes) { return {bytes / kMiB_bytes, fmt::format("{:.1f}", bytes / kMiB_bytes)}; }

Table op_table(const Rehearsal& r) {
  Table t{.title = "Computation, milliseconds of one op",
          .columns = {"op", numeric("in the plan"), numeric("run"), numeric("measured here", "ms"),
                      numeric("predicted here", "ms"), numeric("", "%"), numeric("measured x in the plan", "ms"),
                      numeric("the plan's", "ms")}};
  std::vector<RehearsedOp> ops = r.ops;
  const auto weight = [](const RehearsedOp& op) { return op.measured_s * static_cast<double>(op.planned); };
  std::ranges::stable_sort(ops, [&](const auto& a, const auto& b) { return weight(a) > weight(b); });
  for (const RehearsedOp& op : ops) {
    const auto plan_s =
        r.figures ? r.figures->op_s.find(to_string(op.key)) : std::map<std::string, double>::const_iterator{};
    t.rows.push_back({op_words(op.key.action, op.key.direction, op.key.group), whole(op.planned), whole(op.rehearsed),
                      milliseconds(op.measured_s), op.predicted ? milliseconds(op.predicted->seconds) : Cell("-"),
                      op.predicted ? signed_percent(op.predicted->seconds / op.measured_s - 1) : Cell("-"),
                      milliseconds(weight(op)),
                      r.figures && plan_s != r.figures->op_s.end() ? milliseconds(plan_s->second) : Cell("-")});
  }
  const auto predicted = r.predicted_s();
  t.rows.push_back(
      {"all of what was run", "", "", milliseconds(r.measured_s()), predicted ? milliseconds(*predicted) : Cell("-"),
       predicted ? signed_percent(*predicted / r.measured_s() - 1) : Cell("-"), milliseconds(r.extrapolated_s()), "-"});
  const bool cpu = r.run.device == DeviceKind::cpu;
  t.note = fmt::format(
      "Measured: {}, median of {} steps. Ops of a kind are alike: what was run stands for all that the plan has.",
      cpu ? "CPU time of the computing thread" : "time on the device, by events", r.steps);
  if (r.cores_used_by_others >= 0.1)
    t.note += fmt::format(" Other programs kept {:.1f} cores busy meanwhile.", r.cores_used_by_others);
  if (!r.figures)
    t.note += " No plan.json beside the run file: the plan's column is empty.";
  else if (cpu)
    t.note += fmt::format(" The plan's column is for {} at full size: a CPU's seconds are not compared with it.",
                          r.figures->cluster);
  return t;
}

Table memory_table(const Rehearsal& r) {
  Table t{.title = "Peak tensor memory", .columns = {"of", numeric("", "MiB"), numeric("", "%"), "at op"}};
  t.rows.push_back({"this rank, measured", mebibytes(r.measured_peak_bytes), "-", r.measured_peak_op});
  const Status judged = r.peak_holds() ? Status::good : Status::bad;
  Cell error = signed_percent(r.replayed_peak_bytes / r.measured_peak_bytes - 1);
  error.status = judged;
  t.rows.push_back({"memory replay of what was run", mebibytes(r.replayed_peak_bytes), error, r.replayed_peak_op});
  t.rows.push_back({"memory replay of the whole plan, this rank's routing", mebibytes(r.plan_replay_bytes), "-", "-"});
  if (r.figures)
    t.rows.push_back({fmt::format("plan.json, p99 routing (limit {})", format_bytes(r.figures->limit_bytes)),
                      mebibytes(r.figures->peak_bytes), "-", "-"});
  if (r.run.device == DeviceKind::cpu)
    t.note =
        "What was run holds the scratch of Gloo's gathers and reductions, as training on this device does; the plan's "
        "two rows are for NCCL, which has none in tensor memory. ";
  t.note += "Held to: 2 % or 4 MiB.";
  return t;
}

KeyValues facts(const Rehearsal& r) {
  KeyValues out{.title = "What was run"};
  const ModelSpec &m = r.run.model, &p = r.plan.model;
  const auto of = [](std::int64_t a, std::int64_t b) {
    return a == b ? fmt::format("{}", a) : fmt::format("{} of {}", a, b);
  };
  double bytes = 0;
  std::string collectives;
  for (const auto& [kind, sum] : r.collectives) {
    std::string name = to_string(kind);
    std::ranges::replace(name, '_', '-');
    collectives += fmt::format("{}{} {}", collectives.empty() ? "" : ", ", sum.first, name);
    bytes += sum.second;
  }
  out.entries = {
      {"rank", fmt::format("{} of {} ({}); the others' data is faked", r.run.rehearsal.rank, r.plan.layout.world(),
                           r.plan.layout.name())},
      {"width", r.run.rehearsal.width_divisor == 1
                    ? "full"
                    : fmt::format("1/{}: d_model {} of {}, FFN {} of {}, heads {} of {}, vocabulary {} of {}",
                                  r.run.rehearsal.width_divisor, m.d_model, p.d_model, m.ffn, p.ffn, m.heads, p.heads,
                                  m.vocab, p.vocab)},
      {"layers", of(m.layers, p.layers)},
      {"tokens a sequence", of(r.run.seq, r.plan.seq)},
      {"microbatches a step", of(r.run.microbatches(), r.plan.microbatches())},
      {"routing", r.routing},
      {"tokens", r.tokens},
      {"collectives", collectives.empty() ? "none"
                                          : fmt::format("{}, {} a step; kind, axis, bytes and order are the program's",
                                                        collectives, format_bytes(bytes))},
      {"loss",
       {r.loss, fmt::format("{:.3f}: finite, and no more than that (weights of other ranks are made up)", r.loss)}}};
  return out;
}

}  // namespace

std::string reduction(const RunSpec& plan, const RunSpec& run) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "at " : ", ") + part; };
  if (run.rehearsal.width_divisor > 1)
    add(fmt::format("1/{} of the plan's width (d_model {} of {})", run.rehearsal.width_divisor, run.model.d_model,
                    plan.model.d_model));
  if (run.model.layers != plan.model.layers) add(fmt::format("{} of {} layers", run.model.layers, plan.model.layers));
  if (run.seq != plan.seq) add(fmt::format("{} of {} tokens a sequence", run.seq, plan.seq));
  if (run.microbatches() != plan.microbatches())
    add(fmt::format("{} of {} microbatches", run.microbatches(), plan.microbatches()));
  return out;
}

Report rehearsal_report(const Rehearsal& r) {
  Report report;
  const std::string reduced = reduction(r.plan, r.run);
  report.title = fmt::format("Rehearsal of {}", r.plan.name);
  report.answer = fmt::format(
      "Rank {} of {} ranks computes {} a step here{}, and holds {} at its peak: the memory replay says {:+.2f} %.",
      r.run.rehearsal.rank, r.plan.layout.world(), format_seconds(r.measured_s()),
      reduced.empty() ? "" : ", " + reduced, format_bytes(r.measured_peak_bytes),
      100 * (r.replayed_peak_bytes / r.measured_peak_bytes - 1));
  if (const auto predicted = r.predicted_s())
    report.answer_range = fmt::format("{} predicted for the same shapes ({:+.1f} %)", format_seconds(*predicted),
                                      100 * (*predicted / r.measured_s() - 1));
  report.status = r.peak_holds() ? Status::none : Status::bad;
  Section section{"rehearsal", "Result", {}, {facts(r), op_table(r), memory_table(r)}};
  if (!reduced.empty())
    section.items.insert(section.items.begin(),
                         Callout{Status::warn, "Smaller than the plan",
                                 "This machine ran the plan's program " + reduced +
                                     ". Ops, order, collectives and the memory replay are checked by it; times and "
                                     "bytes of the plan itself are not measured."});
  report.sections.push_back(std::move(section));
  report.payload = to_json(r);
  return report;
}

}  // namespace wt
