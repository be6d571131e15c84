#include "planner/explain/changes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "configs/base/error.hpp"
#include "configs/files/study.hpp"

namespace wt {
namespace {

constexpr double kWorthSaying = 0.01;

struct Variant {
  std::string what;
  RunSpec run;
};

/// A degree doubled or halved, where GPUs of another axis make room for it.
void add_degree(std::vector<Variant>& out, const RunSpec& run, const char* name, std::int64_t Layout::*degree,
                bool in_shard) {
  const std::int64_t now = run.layout.*degree;
  for (const bool more : {true, false}) {
    if (!more && now % 2 != 0) continue;
    Variant v{"", run};
    Layout& l = v.run.layout;
    l.*degree = more ? 2 * now : now / 2;
    if (!in_shard) {
      std::int64_t& room = l.shard > 1 ? l.shard : l.replicate;
      if (more && room % 2 != 0) continue;
      room = more ? room / 2 : room * 2;
    }
    if (l.tensor == 1) l.sequence_parallel = false;
    if (l.pipeline == 1) l.virtual_stages = 1, l.schedule = Schedule::one_f_one_b, l.chunk_layers.clear();
    v.what = fmt::format("{} {}, not {}", name, l.*degree, now);
    out.push_back(std::move(v));
  }
}

std::vector<Variant> variants(const RunSpec& run) {
  std::vector<Variant> out;
  const auto add = [&](const std::string& what, const std::function<void(RunSpec&)>& change) {
    Variant v{what, run};
    change(v.run);
    out.push_back(std::move(v));
  };
  const Layout& l = run.layout;
  const std::int64_t own = run.global_batch / l.data_ranks();
  for (const std::int64_t each : {2 * l.microbatch, l.microbatch / 2})
    if (each > 0 && own % each == 0)
      add(fmt::format("microbatch {}, not {}", each, l.microbatch), [&](RunSpec& r) { r.layout.microbatch = each; });
  if (!(l.recompute == Recompute::none)) add("no recompute", [](RunSpec& r) { r.layout.recompute = Recompute::none; });
  if (!(l.recompute == Recompute::block))
    add("recompute of whole layers", [](RunSpec& r) { r.layout.recompute = Recompute::block; });
  if (!l.resident_weights() && l.shard > 1)
    add(l.reshard_after_forward ? "weights stay gathered from forward to backward" : "weights gathered twice a layer",
        [](RunSpec& r) { r.layout.reshard_after_forward = !r.layout.reshard_after_forward; });
  if (run.microbatches() > 1)
    add(l.reduce_every_microbatch ? "gradients reduced once a step" : "gradients reduced after each microbatch",
        [](RunSpec& r) { r.layout.reduce_every_microbatch = !r.layout.reduce_every_microbatch; });
  if (l.shard % 2 == 0 && l.shard > l.expert && l.shard > l.context)
    add(fmt::format("{} replicas of {} GPUs, not {} of {}", 2 * l.replicate, l.shard / 2, l.replicate, l.shard),
        [](RunSpec& r) { r.layout.replicate *= 2, r.layout.shard /= 2; });
  if (l.replicate % 2 == 0)
    add(fmt::format("{} replicas of {} GPUs, not {} of {}", l.replicate / 2, 2 * l.shard, l.replicate, l.shard),
        [](RunSpec& r) { r.layout.replicate /= 2, r.layout.shard *= 2; });
  if (run.model.experts > 0) add_degree(out, run, "expert degree", &Layout::expert, true);
  add_degree(out, run, "tensor degree", &Layout::tensor, false);
  if (l.pipeline > 1) add_degree(out, run, "pipeline stages", &Layout::pipeline, false);
  return out;
}

/// Standard normal distribution.
double below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

}  // namespace

std::vector<Change> best_changes(const SimulateQuestion& question, const SimulatedRun& as_is, double spread_within) {
  std::vector<Change> out;
  for (Variant& variant : variants(as_is.run)) {
    SimulateQuestion changed = question;
    if (changed.routing.empty()) changed.routing = routing_for_model(variant.run.model);  // not balanced loads as well
    changed.run = std::move(variant.run);
    try {
      check_run(changed.run, question.run_file);
      const SimulatedRun step = simulated_run(changed);
      const double gain = 1 - step.replay.step_s / as_is.replay.step_s;
      const MemoryUse memory = fullest_memory(step);
      if (gain < kWorthSaying || !memory.fits()) continue;
      const double logs = -std::log1p(-gain);
      out.push_back({variant.what, step.replay.step_s, gain,
                     spread_within > 0 ? below(logs / (std::sqrt(2.0) * spread_within)) : 0.5, memory.runs_out()});
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;  // a layout that this model or stack does not allow
    }
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &Change::gain);
  return out;
}

}  // namespace wt
