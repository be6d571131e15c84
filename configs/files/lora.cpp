#include "configs/files/lora.hpp"

#include <algorithm>
#include <set>

#include "configs/base/yaml.hpp"
#include "configs/files/limits.hpp"

namespace wt {

bool LoraSpec::targets(const std::string& module) const {
  return std::ranges::any_of(
      target_modules, [&](const std::string& target) { return module == target || module.ends_with("." + target); });
}

LoraSpec read_peft_config(YamlMap at) {
  const std::set<std::string> of_other_adapters{"use_dora", "use_rslora", "rank_pattern", "alpha_pattern",
                                                "modules_to_save"};
  for (const std::string& key : at.keys())
    if (of_other_adapters.contains(key))
      at.fail(key, "found it, allowed are adapters of one rank and one alpha beside frozen weights; take it out");
  at.choice("peft_type", {"LORA"}, "LORA");
  at.choice("task_type", {"CAUSAL_LM"}, "CAUSAL_LM");
  at.choice("bias", {"none"}, "none");
  LoraSpec out;
  if (at.has("r")) out.rank = at.integer("r", 1, limits::kWidth);
  out.alpha = at.number_or("lora_alpha", out.alpha);
  if (!(out.alpha > 0)) at.fail("lora_alpha", "found a number that is not above 0, needs one, as 2 r");
  if (at.number_or("lora_dropout", 0) != 0)
    at.fail("lora_dropout", "found dropout, allowed is 0; set lora_dropout: 0.0");
  out.target_modules = at.texts("target_modules");
  if (out.target_modules.empty())
    at.fail("target_modules", "found no module, needs names as the family has them, as [q_proj, v_proj] or [Wqkv]");
  at.finish();
  return out;
}

void write_peft_config(YAML::Emitter& out, const LoraSpec& spec) {
  out << YAML::Key << "peft_config" << YAML::Value << YAML::BeginMap << YAML::Key << "peft_type" << YAML::Value
      << "LORA" << YAML::Key << "r" << YAML::Value << spec.rank << YAML::Key << "lora_alpha" << YAML::Value
      << fmt::format("{}", spec.alpha) << YAML::Key << "target_modules" << YAML::Value << YAML::Flow
      << spec.target_modules << YAML::EndMap;
}

}  // namespace wt
