#include "planner/recipes/model_names.hpp"

#include <algorithm>
#include <array>

#include "configs/base/yaml.hpp"
#include "configs/files/hub_models.hpp"

namespace wt {
namespace {

// torchtitan 0.2.2 models/*/__init__.py; Megatron-Bridge 0.3.1 recipes/*/*.py.
constexpr std::array kModels{
    ModelNames{"dbrx", "", ""},
    ModelNames{"deepseek-v2-lite", "deepseek_v3/16B", "deepseek_v2_lite_pretrain_config"},
    ModelNames{"deepseek-v3", "deepseek_v3/671B", "deepseek_v3_pretrain_config"},
    ModelNames{"falcon-180b", "", ""},
    ModelNames{"falcon-7b", "", ""},
    ModelNames{"glm-4.5-air", "", "glm45_air_106b_pretrain_config"},
    ModelNames{"gpt-neo-125m", "", ""},
    ModelNames{"gpt2", "", ""},
    ModelNames{"gpt-oss-120b", "gpt_oss/120b", "gpt_oss_120b_pretrain_config"},
    ModelNames{"gpt-oss-20b", "gpt_oss/20b", "gpt_oss_20b_pretrain_config"},
    ModelNames{"kimi-k2", "", ""},
    ModelNames{"llama3-405b", "llama3/405B", "llama31_405b_pretrain_config"},
    ModelNames{"llama3-8b", "llama3/8B", "llama31_8b_pretrain_config"},
    ModelNames{"llama4-maverick", "llama4/17bx128e", ""},
    ModelNames{"llama4-scout", "llama4/17bx16e", ""},
    ModelNames{"mixtral-8x7b", "", ""},
    ModelNames{"mpt-7b", "", ""},
    ModelNames{"nemotron-3-nano-30b-a3b", "", "nemotron_3_nano_pretrain_config"},
    ModelNames{"olmoe-1b-7b", "", "olmoe_7b_pretrain_config"},
    ModelNames{"opt-2.7b", "", ""},
    ModelNames{"qwen3-235b-a22b", "qwen3/235B-A22B", "qwen3_235b_a22b_pretrain_config"},
    ModelNames{"qwen3-30b-a3b", "qwen3/30B-A3B", "qwen3_30b_a3b_pretrain_config"},
    ModelNames{"qwen3-next-80b-a3b", "", "qwen3_next_80b_a3b_pretrain_config"},
};

/// What a name stands for: all but a benchmark's forced routing and words for people.
std::string shape_of(ModelSpec model) {
  model.router.forced = RouterSpec::Forced::none;
  model.approximations.clear(), model.name.clear();
  YAML::Emitter out;
  model_to_yaml(model, out);
  return out.c_str();
}

}  // namespace

const ModelNames* names_of(const ModelSpec& model) {
  const auto found = std::ranges::find_if(kModels, [&](const ModelNames& m) { return m.preset == model.name; });
  if (found == kModels.end() || shape_of(read_model(found->preset)) != shape_of(model)) return nullptr;
  return &*found;
}

std::string preset_named(const char* ModelNames::*kind, const std::string& name) {
  for (const ModelNames& model : kModels)
    if (const std::string known = model.*kind; !known.empty() && known == name) return model.preset;
  return "";
}

std::string repository_named(const ModelSpec& model) {
  if (const ModelNames* names = names_of(model)) return repository_of(names->preset);
  const std::string repository = hub_repository(model.name);
  return !repository.empty() && shape_of(read_model(repository)) == shape_of(model) ? repository : "";
}

}  // namespace wt
