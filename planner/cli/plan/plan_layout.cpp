// The chosen layout by axis, and the candidates: for the terminal and the report.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/files/layout_words.hpp"
#include "configs/files/model_words.hpp"
#include "planner/cli/parts/throughput.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/cli/plan/plan_sections.hpp"

namespace wt {
namespace {

KeyValues step_facts(const PlanInputs& inputs, const Plan& plan) {
  const Simulated& step = plan.step;
  KeyValues facts{.title = "Its step"};
  facts.entries = {{"step time", Cell(step.step_s,
                                      fmt::format("{} ({} to {}, 80 % interval)", format_seconds(step.step_s),
                                                  format_seconds(step.low_s), format_seconds(step.high_s)),
                                      Evidence::derived)},
                   {"exposed communication", Cell(step.exposed_s, format_seconds(step.exposed_s), Evidence::derived)},
                   {"slowed by communication", Cell(step.slowed_s, format_seconds(step.slowed_s), Evidence::derived)},
                   {"expert load, max/mean",
                    Cell(plan.imbalance, fmt::format("{:.2f} (memory is sized for {:.2f}, p99 over {})", plan.imbalance,
                                                     plan.imbalance_p99, p99_basis(inputs)))}};
  facts.entries.emplace_back(inputs.study.cluster.shared_cores() ? "tokens/s/rank" : "tokens/s/GPU",
                             Cell(step.tokens_per_s_per_gpu, format_number(step.tokens_per_s_per_gpu)));
  if (step.mfu > 0)
    facts.entries.emplace_back("MFU", mfu_cell({.flops_per_token = inputs.study.flops_per_token(),
                                                .tokens_per_s_per_gpu = step.tokens_per_s_per_gpu,
                                                .peak_flops = inputs.peak_flops}));
  facts.entries.emplace_back("parameters", Cell(parameters_text(inputs.study.model)));
  if (const std::string what = approximations_text(inputs.study.model); !what.empty())
    facts.entries.emplace_back("approximated", Cell(what));
  return facts;
}

std::string microbatches_text(const Microbatches& n) {
  return fmt::format("through each rank at once; {} a step{}",
                     n.count == 1 ? "1 microbatch" : fmt::format("{} microbatches", n.count),
                     n.even() ? "" : fmt::format(", the last of {}", n.last));
}

}  // namespace

Table layout_table(const PlanInputs& inputs, const Plan& plan) {
  const Layout& l = plan.layout;
  const ModelSpec& model = inputs.study.model;
  const char* rank = inputs.study.cluster.shared_cores() ? "rank" : "GPU";
  Table table{.title = "The layout", .columns = {"axis", "value", "what it means"}};
  const auto row = [&](const char* axis, std::string value, std::string meaning) {
    table.rows.push_back({axis, std::move(value), std::move(meaning)});
  };
  row("replicas", std::to_string(l.replicate), "copies of the model, each with its share of the batch");
  row("shard", counted(l.shard, rank),
      l.shard > 1 ? "hold one copy of weights, gradients and optimizer state together"
                  : "holds a whole copy of weights, gradients and optimizer state");
  if (l.optimizer_shard > 1)
    row("optimizer", counted(l.shard * l.optimizer_shard, rank), "share the optimizer's state");
  if (l.pipeline > 1)
    row("pipeline",
        fmt::format("{}, {}{}", counted(l.pipeline, "stage"), to_string(l.schedule),
                    l.virtual_stages > 1 ? fmt::format(", {} chunks each", l.virtual_stages) : ""),
        "each has its share of the layers");
  if (l.tensor > 1)
    row("tensor", counted(l.tensor, rank),
        l.sequence_parallel ? "share every product of a layer, and its norms by tokens"
                            : "share every product of a layer");
  if (l.context > 1)
    row("context", counted(l.context, rank),
        l.context_ring ? "share each sequence; keys and values go round"
                       : "share each sequence; keys and values are gathered");
  if (model.experts > 0)
    row("experts", "over " + counted(l.expert, rank),
        l.expert > 1 ? fmt::format("each computes {} of a layer's {}{}", l.slots_per_rank(model),
                                   l.slots(model) > model.experts
                                       ? fmt::format("{} slots, which {} experts and their copies share",
                                                     l.slots(model), model.experts)
                                       : fmt::format("{} experts", model.experts),
                                   l.placement.empty() ? "" : ", placed by recorded loads")
                     : "each computes all experts of a layer");
  if (l.expert > 1)
    row("token dispatcher", to_string(l.dispatcher),
        l.exchange_overlap ? "rows travel while another microbatch computes" : "takes rows to their experts and back");
  if (l.pipeline == 1) {
    row("gathered weights", l.reshard_after_forward ? "given back" : "kept",
        l.reshard_after_forward ? "after forward, and gathered again for backward" : "from forward to backward");
    row("gradients", l.reduce_every_microbatch ? "each microbatch" : "once a step", "summed over the ranks");
  }
  const Microbatches n = Microbatches::split(inputs.study.global_batch / l.data_ranks(), l.microbatch);
  row("microbatch", counted(n.each, "sequence"), microbatches_text(n));
  row("recompute", to_string(l.recompute), "is computed again in backward instead of kept");
  const CadencePlan& cadence = plan.schedule.cadence;
  row("save every",
      fmt::format("{} ({})", format_seconds(cadence.interval_s.value), counted(cadence.interval_steps, "step")),
      fmt::format("training stands still for {} each time", format_seconds(plan.schedule.input.blocking_s.value)));
  row("spare nodes", fmt::format("{:.0f}", cadence.spares.value), "in reserve for those that fail");
  if (const std::string words = layout_words(l, inputs.stack); words != l.name())
    table.note = fmt::format("As {} says it: {}.", inputs.stack.name, words);
  return table;
}

Table candidate_table(const PlanInputs& inputs, const Plan& plan, std::size_t rows) {
  Table table{.title = "Fastest layouts",
              .columns = {"layout", "recompute", numeric("microbatch"), numeric("step", "s"),
                          numeric("80 % interval", "s"), numeric("bound", "s"), numeric("exposed", "s"),
                          numeric("tokens/s/GPU"), numeric("MFU", "%"), numeric("memory, up to", "GiB"), ""}};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < plan.search.candidates.size(); ++i)
    if (plan.search.candidates[i].fate != Fate::infeasible) order.push_back(i);
  const auto key = [&](std::size_t i) {  // simulated ones by time, then the others by bound
    const Candidate& c = plan.search.candidates[i];
    return std::pair(!c.result, c.result ? c.result->step_s : c.bound_s);
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  // Among candidates with the same computation and communication, keeps the best.
  std::set<std::string> shown;
  std::erase_if(order, [&](std::size_t i) {
    Layout alike = plan.search.candidates[i].layout;
    alike.shard = alike.replicate = alike.optimizer_shard = 1;
    return !shown
                .insert(fmt::format("{} {} {} {} {}", alike.name(), to_string(alike.recompute), alike.microbatch,
                                    alike.reshard_after_forward, alike.reduce_every_microbatch))
                .second;
  });
  order.resize(std::min(order.size(), rows));
  std::erase(order, plan.search.chosen);
  order.insert(order.begin(), plan.search.chosen);
  for (std::size_t i : order) {
    const Candidate& c = plan.search.candidates[i];
    const auto number = [&](double value) { return c.result ? Cell(value) : Cell("-"); };
    const Simulated r = c.result.value_or(Simulated{});
    table.rows.push_back({layout_label(c.layout, inputs.stack), to_string(c.layout.recompute),
                          Cell(as_double(c.layout.microbatch), std::to_string(c.layout.microbatch)), number(r.step_s),
                          c.result ? Cell(format_range(r.low_s, r.high_s)) : Cell("-"), Cell(c.bound_s),
                          number(r.exposed_s), number(r.tokens_per_s_per_gpu),
                          r.mfu > 0 ? Cell(100 * r.mfu) : Cell("-"),
                          c.memory_bytes > 0 ? Cell(c.memory_bytes / kGiB_bytes) : Cell("-"),
                          i == plan.search.chosen ? Cell("chosen", Status::good) : Cell(c.result ? "" : "bounded")});
  }
  table.note = fmt::format(
      "Memory limit: {:.1f} GiB a {}. ", plan.memory_limit_bytes / kGiB_bytes,
      inputs.memory ? fmt::format("process. A layout takes more than the column says with a probability of {:g} %",
                                  100 * inputs.study.search.memory_risk)
                    : "rank");
  if (inputs.peak_flops > 0) table.note += "MFU: " + mfu_definition(inputs) + ". ";
  const Layout& chosen = plan.search.candidates[plan.search.chosen].layout;
  if (layout_label(chosen, inputs.stack) == chosen.name())
    table.note += fmt::format("{}x{}: {} of {}. ", chosen.replicate, chosen.shard, counted(chosen.replicate, "replica"),
                              counted(chosen.shard, inputs.study.cluster.shared_cores() ? "rank" : "GPU"));
  table.note +=
      "Bound: no such step is shorter. Exposed: communication that nothing hides. Of layouts that differ in replicas "
      "and shards alone one is shown, and always the chosen one.";
  return table;
}

Section layout_section(const PlanInputs& inputs, const Plan& plan) {
  return {"layout", "The plan", plan_doubts(inputs, plan), {layout_table(inputs, plan), step_facts(inputs, plan)}};
}

namespace {

Table replacement_table(const ReplacementStudy& study) {
  Table table{.title = "Experts placed anew while loads drift",
              .columns = {numeric("every", "steps"), numeric("moves"), numeric("largest over mean load"),
                          numeric("step", "s"), numeric("a move", "s"), numeric("step with moves", "s"), ""}};
  for (std::size_t i = 0; i < study.options.size(); ++i) {
    const ReplacementOption& o = study.options[i];
    table.rows.push_back({o.every_steps > 0 ? Cell(as_double(o.every_steps)) : Cell("never"), Cell(as_double(o.moves)),
                          Cell(o.load), Cell(o.step_s), o.moves > 0 ? Cell(o.move_s) : Cell("-"), Cell(o.with_moves_s),
                          i == study.chosen ? Cell("chosen", Status::good) : Cell("")});
  }
  return table;
}

}  // namespace

Section search_section(const PlanInputs& inputs, const Plan& plan) {
  const Certificate& c = plan.search.certificate;
  std::int64_t infeasible = 0;
  std::string reasons;
  for (const auto& [reason, count] : c.infeasible) {
    infeasible += count;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", reason, count);
  }
  Section s{.id = "search", .title = "Why this layout"};
  s.paragraphs.push_back(plan_scope(inputs) + ".");
  s.paragraphs.push_back(fmt::format("Of {} layouts {} do not fit ({}), {} were bounded away and {} simulated: {}.",
                                     c.enumerated, infeasible, reasons.empty() ? "none" : reasons, c.bounded,
                                     c.simulated, proof_words(c)));
  if (!plan.robust.sentence.empty()) s.paragraphs.push_back(plan.robust.sentence + ".");
  if (const std::string simple = simple_sentence(inputs, plan); !simple.empty()) s.paragraphs.push_back(simple);
  s.paragraphs.push_back(plan.placement_note);
  if (!plan.drift_note.empty()) s.paragraphs.push_back(plan.drift_note);
  s.items.push_back(candidate_table(inputs, plan, 12));
  if (!inputs.formats.empty()) s.items.push_back(format_table(inputs));
  if (plan.replacement) s.items.push_back(replacement_table(*plan.replacement));
  return s;
}

}  // namespace wt
