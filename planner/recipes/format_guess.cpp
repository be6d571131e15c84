#include "planner/recipes/format_guess.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "configs/base/error.hpp"
#include "planner/recipes/foreign_formats.hpp"
#include "planner/recipes/job_command.hpp"
#include "planner/recipes/megatron_yaml.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {
namespace {

constexpr std::array kMegatronFlags{"num-layers",
                                    "hidden-size",
                                    "num-attention-heads",
                                    "micro-batch-size",
                                    "global-batch-size",
                                    "seq-length",
                                    "train-iters",
                                    "train-samples",
                                    "tensor-model-parallel-size",
                                    "pipeline-model-parallel-size",
                                    "use-mcore-models",
                                    "use-distributed-optimizer"};
constexpr std::array kBridgeKeys{"model.tensor_model_parallel_size", "model.pipeline_model_parallel_size",
                                 "train.micro_batch_size", "train.global_batch_size", "ddp.use_distributed_optimizer"};
constexpr std::array kRunKeys{
    "run_name", "model", "max_duration", "max_seq_len", "global_train_batch_size", "device_train_microbatch_size"};
constexpr std::array kTitanSections{"model", "training", "parallelism", "job", "optimizer", "activation_checkpoint"};

template <typename Keys>
bool has_any(const Settings& settings, const Keys& keys) {
  return std::ranges::any_of(keys, [&](const char* key) { return settings.mentions(key); });
}

RecipeFormat format_of_shell(const std::string& text, const std::string& origin, const RecipeSource& source) {
  if (is_titan_command(text)) return RecipeFormat::torchtitan;
  if (is_automodel_command(text)) return RecipeFormat::automodel;
  const Settings settings = settings_from_shell(text, origin, source);
  if (settings.entries().empty())
    throw_usage("{}: found no flags, needs a command line, YAML or TOML of a trainer; give --from with one of {}",
                origin, fmt::join(recipe_format_names(), ", "));
  if (settings.has("recipe") || has_any(settings, kBridgeKeys)) return RecipeFormat::megatron_bridge;
  if (has_any(settings, kMegatronFlags)) return RecipeFormat::megatron_core;
  const std::string foreign = foreign_command(settings, text);
  const bool overrides = std::ranges::any_of(settings.entries(), [](const auto& entry) {
    return entry.key.find('.') != std::string::npos && !entry.key.starts_with("launch.");
  });
  if (foreign.empty() && overrides) return RecipeFormat::megatron_bridge;
  refuse_foreign(origin, foreign);
}

bool is_automodel(const Settings& settings) {
  if (settings.has_under("step_scheduler")) return true;
  if (settings.has_under("distributed") && (settings.mentions("recipe") || settings.has_under("recipe"))) return true;
  return std::ranges::any_of(settings.entries(), [](const Settings::Entry& e) {
    return e.key.ends_with("_target_") && e.value.is_string() &&
           e.value.get<std::string>().starts_with("nemo_automodel");
  });
}

RecipeFormat format_of_yaml(const std::string& text, const std::string& origin) {
  Settings settings = settings_from_pyyaml(text, origin);
  if (is_automodel(settings)) return RecipeFormat::automodel;
  if (is_megatron_yaml(settings)) return RecipeFormat::megatron_core;
  const bool nemo = settings.has_under("exp_manager") || settings.has_under("trainer");  // NeMo 1 has such keys, too
  if (has_any(settings, kBridgeKeys) && !nemo) return RecipeFormat::megatron_bridge;
  const std::string model = settings.has("model.name") ? settings.text("model.name", "") : "";
  if (model.ends_with("_causal_lm") || model == "hf_t5") return RecipeFormat::llm_foundry;
  if (const std::string foreign = foreign_file(settings); !foreign.empty()) refuse_foreign(origin, foreign);
  if (settings.has_under("tokenizer") || settings.has_under("variables")) return RecipeFormat::llm_foundry;
  if (has_any(settings, kRunKeys) || settings.has_under("fsdp_config") || settings.mentions("model.d_model"))
    return RecipeFormat::windtunnel;
  refuse_foreign(origin, "");
}

RecipeFormat format_of_toml(const std::string& text, const std::string& origin) {
  const Settings settings = settings_from_toml(text, origin);
  const bool titan = std::ranges::any_of(kTitanSections, [&](const char* one) { return settings.has_under(one); });
  if (titan || settings.entries().empty()) return RecipeFormat::torchtitan;
  refuse_foreign(origin, settings.has_under("project") || settings.has_under("build-system") ? "a Python package"
                                                                                             : foreign_file(settings));
}

/// What the lines of a text look like, if its file name does not tell the format.
struct LooksLike {
  bool section = false;  ///< [training]
  bool flag = false;     ///< --num-layers
  bool key = false;      ///< model:
};

LooksLike looks_of(const std::string& text) {
  LooksLike out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos || line[begin] == '#') continue;
    const std::size_t end = line.find_last_not_of(" \t\r"), colon = line.find(':');
    out.section = out.section || (line[begin] == '[' && line[end] == ']');
    out.flag = out.flag || line.compare(begin, 2, "--") == 0 || line.find(" --") != std::string::npos;
    out.key = out.key || (begin == 0 && colon != std::string::npos && line.find_first_of(" =(") > colon);
  }
  return out;
}

}  // namespace

RecipeFormat guessed_format(const std::string& text, const std::string& origin, const RecipeSource& source) {
  const std::string ending = std::filesystem::path(origin).extension().string();
  const LooksLike looks = looks_of(text);
  if (ending == ".py") refuse_foreign(origin, foreign_program(text));
  if (ending == ".toml" || (ending.empty() && looks.section)) return format_of_toml(text, origin);
  const bool yaml =
      ending == ".yaml" || ending == ".yml" || ending == ".json" || (ending != ".sh" && looks.key && !looks.flag);
  return yaml ? format_of_yaml(text, origin) : format_of_shell(text, origin, source);
}

}  // namespace wt
