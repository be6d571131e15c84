// Recompute of torchtitan 0.2.2: distributed/activation_checkpoint.py.
#include <algorithm>

#include "planner/recipes/torchtitan.hpp"

namespace wt {
namespace {

/// Recompute of layers n, 2n, ... of a rank, counted through all its chunks (activation_checkpoint.py,
/// _apply_layer_sac).
Recompute titan_layers(std::int64_t n, const Layout& l, std::int64_t layers) {
  using Which = Recompute::Blocks::Which;
  if (n <= 1) return Recompute::block;
  Recompute::Rule rule{Module::block, {{Which::every, n, 0}}};
  const std::vector<std::int64_t> chunks = l.layers_of_chunks(layers);
  if (std::ranges::any_of(chunks, [&](std::int64_t chunk) { return chunk > 0 && chunk < n; })) {
    rule.blocks.clear();
    std::vector<std::int64_t> passed(static_cast<std::size_t>(l.pipeline));
    std::int64_t layer = 0;
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk)
      for (std::int64_t i = 0; i < chunks[chunk]; ++i, ++layer)
        if (++passed[static_cast<std::size_t>(l.stage_of(static_cast<std::int64_t>(chunk)))] % n == 0)
          rule.blocks.push_back({Which::range, layer, layer + 1});
    if (rule.blocks.empty()) return Recompute::none;
  }
  Recompute out;
  out.add(std::move(rule));
  return out;
}

/// The n of such a policy, else 0.
std::int64_t titan_step(const RunSpec& run) {
  for (std::int64_t n = 2; n <= run.model.layers; ++n)
    if (run.layout.recompute == titan_layers(n, run.layout, run.model.layers))
      return run.layout.recompute.any() ? n : 0;
  return 0;
}

}  // namespace

void write_titan_recompute(RecipeDraft& draft) {
  const Recompute& recompute = draft.run.layout.recompute;
  const std::int64_t n = titan_step(draft.run);
  const std::string mode = recompute == Recompute::block ? "full" : recompute.any() ? "selective" : "none";
  draft.out.put("activation_checkpoint.mode", mode);
  draft.out.put("activation_checkpoint.selective_ac_option", n > 0 ? std::to_string(n) : "op");
  draft.why["fsdp_config.activation_checkpointing_target"] =
      "its modes are none, full, every n-th layer, and every second product (op)";
}

void read_titan_recompute(RecipeReading& reading) {
  const std::string mode = reading.in.text("activation_checkpoint.mode", "selective"),
                    option = reading.in.text("activation_checkpoint.selective_ac_option", "2");
  Recompute& out = reading.run.layout.recompute;
  if (mode == "none") return;
  if (mode == "full") {
    out = Recompute::block;
  } else if (mode == "memory_budget") {
    reading.in.fail("activation_checkpoint.mode",
                    "found memory_budget {}, whose choice is the compiler's; needs none, full or selective, whichever "
                    "comes near",
                    reading.in.number("activation_checkpoint.memory_budget", 0.5));
  } else if (mode != "selective") {
    reading.in.fail("activation_checkpoint.mode", "found {}, needs none, full or selective", mode);
  } else if (option == "op") {
    out = recompute_of({Module::products});
  } else {
    const Settings::Value n = scalar_of_word(option);
    if (!n.is_number_integer() || n < 0)
      reading.in.fail("activation_checkpoint.selective_ac_option", "found {}, needs op or a whole number", option);
    out = titan_layers(n.get<std::int64_t>(), reading.run.layout, reading.run.model.layers);
  }
}

}  // namespace wt
