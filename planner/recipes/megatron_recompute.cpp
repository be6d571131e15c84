// Recompute in Megatron-Core: full (by layers) or selective (by modules).
#include <algorithm>

#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

const RecipeWords<Module> kMegatronModules{{"core_attn", Module::core},
                                           {"layernorm", Module::norm},
                                           {"moe", Module::moe},
                                           {"moe_act", Module::moe_act},
                                           {"mla_up_proj", Module::mla_up_proj},
                                           {"mlp", Module::mlp},
                                           {"shared_experts", Module::shared_experts}};

/// The nearest module words. Megatron-Core either keeps the other parts of attention and experts, or recomputes all of
/// them.
std::vector<std::string> module_words(const Recompute& recompute) {
  std::vector<std::string> out;
  const auto add = [&out](const std::string& word) {
    if (std::ranges::find(out, word) == out.end()) out.push_back(word);
  };
  for (const Module module : modules_of(recompute)) {
    const std::string otherwise = module == Module::experts ? "moe" : "core_attn";
    add(word_of(kMegatronModules, module, otherwise));
  }
  if (std::ranges::find(out, "moe") != out.end())  // it includes the two below
    std::erase_if(out, [](const std::string& word) { return word == "moe_act" || word == "shared_experts"; });
  return out;
}

/// The n for which exactly the first n layers of each chunk recompute everything, else 0.
std::int64_t first_blocks(const Layout& layout) {
  using Which = Recompute::Blocks::Which;
  const auto& rules = layout.recompute.rules();
  if (rules.size() != 1 || rules[0].module != Module::block || rules[0].blocks.size() != 1) return 0;
  const Recompute::Blocks& blocks = rules[0].blocks[0];
  const bool first = blocks.which == Which::chunk || (layout.pipeline == 1 && blocks.which == Which::first);
  return first ? blocks.a : 0;
}

/// Recompute of the first n layers of each chunk.
Recompute first_of_chunks(const Layout& layout, std::int64_t n) {
  using Which = Recompute::Blocks::Which;
  Recompute out;
  if (n > 0) out.add({Module::block, {{layout.pipeline > 1 ? Which::chunk : Which::first, n, 0}}});
  return out;
}

/// Megatron-Core ignores modules that a model does not have; a run file refuses them.
bool has_module(const RunSpec& run, Module module) {
  const ModelSpec& m = run.model;
  const bool experts = m.moe_layers() > 0;
  if (module == Module::moe || module == Module::moe_act) return experts;
  if (module == Module::shared_experts) return experts && m.shared_ffn > 0;
  if (module == Module::mlp) return m.moe_layers() < m.blocks();
  if (module == Module::mla_up_proj) return m.attention.mla.on() && run.layout.context == 1;
  return true;
}

void read_selective(RecipeReading& reading, MegatronKeys& keys) {
  std::vector<std::string> words = keys.texts("recompute_modules");
  if (words.empty()) words = {"core_attn"};
  const bool moe = std::ranges::find(words, "moe") != words.end();
  for (const std::string& word : words) {
    const auto module = meaning_of(kMegatronModules, word);
    if (!module)
      keys.fail("recompute_modules",
                "found {}, needs core_attn, layernorm, moe, moe_act, mla_up_proj, mlp or shared_experts", word);
    const bool inside = moe && (word == "moe_act" || word == "shared_experts");
    if (inside || !has_module(reading.run, *module))
      reading.assume("{}: found {}, which {}", keys.key("recompute_modules"), word,
                     inside ? "moe has in it" : "this run has not");
    else if (!reading.run.layout.recompute.has(*module))
      reading.run.layout.recompute.add({*module, {}});
  }
}

}  // namespace

void write_megatron_recompute(RecipeDraft& draft, MegatronKeys keys) {
  const Recompute& recompute = draft.run.layout.recompute;
  const std::int64_t first = first_blocks(draft.run.layout);
  const bool full = recompute.has(Module::block);
  draft.why["fsdp_config.activation_checkpointing_target"] =
      "Megatron-Core recomputes whole layers, all or the first of each chunk, or modules of its own in every layer";
  const bool any = recompute.any(), selective = any && !full;
  keys.put_if(any, "recompute_granularity", full ? "full" : "selective");
  keys.put_if(full, "recompute_method", first > 0 ? "block" : "uniform");
  keys.put_if(full, "recompute_num_layers", std::max<std::int64_t>(1, std::min(first, draft.run.model.layers)));
  keys.put_if(selective, "recompute_modules", module_words(recompute));
}

void read_megatron_recompute(RecipeReading& reading, MegatronKeys keys) {
  const bool usual = keys.flags() && keys.flag("recompute_activations", false);
  const std::string granularity = keys.text("recompute_granularity", usual ? "selective" : "none");
  if (granularity == "none") return;
  if (granularity == "selective") return read_selective(reading, keys);
  if (granularity != "full") keys.fail("recompute_granularity", "found {}, needs full or selective", granularity);
  const std::string method = keys.text("recompute_method", "uniform");
  const std::int64_t layers = keys.integer("recompute_num_layers", 1, 0);
  Layout& l = reading.run.layout;
  if (method == "block") {
    l.recompute = first_of_chunks(l, layers);
    return;
  }
  if (method != "uniform") keys.fail("recompute_method", "found {}, needs uniform or block", method);
  l.recompute = Recompute::block;
  if (layers > 1)
    reading.assume("{}: found {}, whose inputs alone are kept; taken as those of each layer",
                   keys.key("recompute_num_layers"), layers);
}

}  // namespace wt
