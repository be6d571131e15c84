#include "planner/recipes/model_names.hpp"

#include <algorithm>
#include <array>

#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

// torchtitan 0.2.2 models/*/__init__.py; Megatron-Bridge 0.3.1 recipes/*/*.py; Hugging Face.
constexpr std::array kModels{
    ModelNames{"dbrx", "", "", "databricks/dbrx-base"},
    ModelNames{"deepseek-v2-lite", "deepseek_v3/16B", "deepseek_v2_lite_pretrain_config",
               "deepseek-ai/DeepSeek-V2-Lite"},
    ModelNames{"deepseek-v3", "deepseek_v3/671B", "deepseek_v3_pretrain_config", "deepseek-ai/DeepSeek-V3"},
    ModelNames{"falcon-180b", "", "", "tiiuae/falcon-180B"},
    ModelNames{"falcon-7b", "", "", "tiiuae/falcon-7b"},
    ModelNames{"glm-4.5-air", "", "glm45_air_106b_pretrain_config", "zai-org/GLM-4.5-Air"},
    ModelNames{"gpt-neo-125m", "", "", "EleutherAI/gpt-neo-125m"},
    ModelNames{"gpt2", "", "", "openai-community/gpt2"},
    ModelNames{"gpt-oss-120b", "gpt_oss/120b", "gpt_oss_120b_pretrain_config", "openai/gpt-oss-120b"},
    ModelNames{"gpt-oss-20b", "gpt_oss/20b", "gpt_oss_20b_pretrain_config", "openai/gpt-oss-20b"},
    ModelNames{"kimi-k2", "", "", "moonshotai/Kimi-K2-Base"},
    ModelNames{"llama3-405b", "llama3/405B", "llama31_405b_pretrain_config", "meta-llama/Llama-3.1-405B"},
    ModelNames{"llama3-8b", "llama3/8B", "llama31_8b_pretrain_config", "meta-llama/Llama-3.1-8B"},
    ModelNames{"llama3-8b", "", "", "meta-llama/Meta-Llama-3-8B"},
    ModelNames{"llama4-maverick", "llama4/17bx128e", "", "meta-llama/Llama-4-Maverick-17B-128E"},
    ModelNames{"llama4-scout", "llama4/17bx16e", "", "meta-llama/Llama-4-Scout-17B-16E"},
    ModelNames{"mixtral-8x7b", "", "", "mistralai/Mixtral-8x7B-v0.1"},
    ModelNames{"mpt-7b", "", "", "mosaicml/mpt-7b"},
    ModelNames{"nemotron-3-nano-30b-a3b", "", "nemotron_3_nano_pretrain_config",
               "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"},
    ModelNames{"olmoe-1b-7b", "", "olmoe_7b_pretrain_config", "allenai/OLMoE-1B-7B-0924"},
    ModelNames{"opt-2.7b", "", "", "facebook/opt-2.7b"},
    ModelNames{"qwen3-235b-a22b", "qwen3/235B-A22B", "qwen3_235b_a22b_pretrain_config", "Qwen/Qwen3-235B-A22B"},
    ModelNames{"qwen3-30b-a3b", "qwen3/30B-A3B", "qwen3_30b_a3b_pretrain_config", "Qwen/Qwen3-30B-A3B"},
    ModelNames{"qwen3-next-80b-a3b", "", "qwen3_next_80b_a3b_pretrain_config", "Qwen/Qwen3-Next-80B-A3B-Instruct"},
};

/// What a name stands for: all but a benchmark's forced routing.
std::string shape_of(ModelSpec model) {
  model.router.forced = RouterSpec::Forced::none;
  YAML::Emitter out;
  model_to_yaml(model, out);
  return out.c_str();
}

/// A repository's name without its owner, and without the suffix of a variant with the same shape.
std::string bare(const std::string& repository) {
  std::string out = lower(repository.substr(repository.rfind('/') + 1));
  for (const char* ending : {"-base", "-instruct", "-chat", "-0924", "-hf"})
    if (out.ends_with(ending)) out.resize(out.size() - std::string(ending).size());
  return out;
}

}  // namespace

const ModelNames* names_of(const ModelSpec& model) {
  const auto found = std::ranges::find_if(kModels, [&](const ModelNames& m) { return m.preset == model.name; });
  if (found == kModels.end() || shape_of(read_model(found->preset)) != shape_of(model)) return nullptr;
  return &*found;
}

std::string preset_named(const char* ModelNames::*kind, const std::string& name) {
  const bool repository = kind == &ModelNames::hugging_face;
  for (const ModelNames& model : kModels) {
    const std::string known = model.*kind;
    if (!known.empty() && (repository ? bare(known) == bare(name) : known == name)) return model.preset;
  }
  return "";
}

}  // namespace wt
