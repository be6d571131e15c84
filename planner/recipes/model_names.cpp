#include "planner/recipes/model_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>

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
    ModelNames{"Qwen/Qwen3-0.6B", "qwen3/0.6B", "qwen3_600m_pretrain_config"},
    ModelNames{"Qwen/Qwen3-1.7B", "qwen3/1.7B", "qwen3_1p7b_pretrain_config"},
    ModelNames{"Qwen/Qwen3-4B", "qwen3/4B", "qwen3_4b_pretrain_config"},
    ModelNames{"Qwen/Qwen3-8B", "qwen3/8B", "qwen3_8b_pretrain_config"},
    ModelNames{"Qwen/Qwen3-14B", "qwen3/14B", "qwen3_14b_pretrain_config"},
    ModelNames{"Qwen/Qwen3-32B", "qwen3/32B", "qwen3_32b_pretrain_config"},
    ModelNames{"meta-llama/Llama-3.1-70B", "llama3/70B", "llama31_70b_pretrain_config"},
    ModelNames{"meta-llama/Meta-Llama-3-70B", "", "llama3_70b_pretrain_config"},
    ModelNames{"meta-llama/Llama-2-7b-hf", "", "llama2_7b_pretrain_config"},
    ModelNames{"meta-llama/Llama-3.2-1B", "", "llama32_1b_pretrain_config"},
    ModelNames{"meta-llama/Llama-3.2-3B", "", "llama32_3b_pretrain_config"},
    ModelNames{"Qwen/Qwen2.5-0.5B", "", "qwen25_500m_pretrain_config"},
    ModelNames{"Qwen/Qwen2.5-1.5B", "", "qwen25_1p5b_pretrain_config"},
    ModelNames{"Qwen/Qwen2.5-7B", "", "qwen25_7b_pretrain_config"},
    ModelNames{"Qwen/Qwen2.5-14B", "", "qwen25_14b_pretrain_config"},
    ModelNames{"Qwen/Qwen2.5-32B", "", "qwen25_32b_pretrain_config"},
    ModelNames{"Qwen/Qwen2.5-72B", "", "qwen25_72b_pretrain_config"},
    ModelNames{"deepseek-ai/DeepSeek-V2", "deepseek_v3/236B", "deepseek_v2_pretrain_config"},
    ModelNames{"moonshotai/Moonlight-16B-A3B", "", "moonlight_16b_pretrain_config"},
    ModelNames{"zai-org/GLM-4.5", "", "glm45_355b_pretrain_config"},
    ModelNames{"google/gemma-2-2b", "", "gemma2_2b_pretrain_config"},
    ModelNames{"google/gemma-2-9b", "", "gemma2_9b_pretrain_config"},
    ModelNames{"google/gemma-2-27b", "", "gemma2_27b_pretrain_config"},
    ModelNames{"google/gemma-3-1b-pt", "", "gemma3_1b_pretrain_config"},
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
  const auto found = std::ranges::find_if(kModels, [&](const ModelNames& m) {
    return std::string_view(m.preset).substr(std::string_view(m.preset).rfind('/') + 1) == model.name;
  });
  if (found == kModels.end() || shape_of(read_model(found->preset)) != shape_of(model)) return nullptr;
  return &*found;
}

std::string preset_named(const char* ModelNames::*kind, const std::string& name) {
  for (const ModelNames& model : kModels)
    if (const std::string known = model.*kind; !known.empty() && known == name) return model.preset;
  return "";
}

std::string repository_named(const ModelSpec& model) {
  const std::string described = repository_of(model.name);
  const std::string repository = described.empty() ? hub_repository(model.name) : described;
  return !repository.empty() && shape_of(read_model(repository)) == shape_of(model) ? repository : "";
}

}  // namespace wt
