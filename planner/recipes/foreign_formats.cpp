#include "planner/recipes/foreign_formats.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "configs/base/error.hpp"
#include "planner/recipes/recipe.hpp"

namespace wt {
namespace {

/// A key that ends with a dot stands for any key below it, one that begins with "*" for any key with that ending.
struct Signature {
  const char* name;
  std::vector<std::string> all;       ///< keys that the file must have
  std::vector<std::string> any = {};  ///< and one of these
};

// The first that fits counts, so that a format stands before those whose keys it has, too.
const std::vector<Signature> kFiles{
    {"a model's config.json, which --model takes", {"model_type"}, {"hidden_size", "n_embd", "num_hidden_layers"}},
    {"a manifest of Kubernetes", {"apiVersion", "kind"}},
    {"a task of SkyPilot", {"resources."}, {"run", "setup"}},
    {"a workflow of GitHub", {"jobs."}, {"on", "on.", "name"}},
    {"a file of Docker Compose", {"services."}},
    {"axolotl",
     {"base_model"},
     {"sequence_len", "micro_batch_size", "adapter", "datasets", "val_set_size", "sample_packing", "num_epochs"}},
    {"verl", {}, {"actor_rollout_ref.", "algorithm.adv_estimator", "model.partial_pretrain"}},
    {"EasyR1", {"worker."}, {"worker.actor.", "worker.rollout."}},
    {"SkyRL", {"trainer."}, {"trainer.policy.", "generator."}},
    {"AReaL", {"allocation_mode"}},
    {"ROLL", {}, {"actor_train.", "actor_infer."}},
    {"OpenRLHF", {"zero_stage"}, {"pretrain", "actor_num_nodes", "micro_train_batch_size"}},
    {"NeMo RL", {"policy."}, {"grpo.", "dpo.", "sft.", "cluster.", "rm."}},
    {"LLaMA-Factory", {}, {"finetuning_type", "cutoff_len"}},
    {"LLaMA-Factory", {"stage"}, {"template", "dataset"}},
    {"ms-swift", {}, {"train_type", "tuner_type", "model_id_or_path"}},
    {"mistral-finetune", {"model_id_or_path"}, {"seq_len", "run_dir", "lora."}},
    {"Unsloth", {"max_seq_length", "load_in_4bit"}},
    {"Hugging Face's Trainer or TRL",
     {},
     {"per_device_train_batch_size", "gradient_accumulation_steps", "TrainingArguments."}},
    {"GPT-NeoX", {}, {"pipe_parallel_size", "pipe-parallel-size", "model_parallel_size", "model-parallel-size"}},
    {"DeepSpeed, which leaves the model to a script", {}, {"zero_optimization.", "train_micro_batch_size_per_gpu"}},
    {"Hugging Face Accelerate, which leaves the model to a script", {}, {"compute_environment", "distributed_type"}},
    {"NeMo 1", {"exp_manager."}},
    {"NeMo 1", {"model.micro_batch_size"}, {"trainer.", "run."}},
    {"NeMo Framework Launcher", {}, {"training_config", "fine_tuning_config", "launcher_scripts_path"}},
    {"levanter", {}, {"trainer.num_train_steps", "trainer.tracker.", "trainer.mp", "trainer.tensor_parallel_axes"}},
    {"SkyRL", {"trainer.", "generator."}},
    {"PyTorch Lightning", {}, {"trainer.accelerator", "trainer.max_epochs", "trainer.strategy", "seed_everything"}},
    {"MaxText",
     {},
     {"base_emb_dim", "ici_fsdp_parallelism", "dcn_data_parallelism", "base_num_decoder_layers",
      "ici_tensor_parallelism", "per_device_batch_size"}},
    {"torchtune", {}, {"*._component_"}},
    {"nanotron", {"parallelism."}, {"tokens.", "model.model_config.", "parallelism.dp", "data_stages"}},
    {"picotron", {"distributed."}, {"distributed.pp_engine", "distributed.use_cpu", "training.micro_batch_size"}},
    {"OLMo-core", {}, {"train_module.", "*._CLASS_"}},
    {"OLMo", {"model.d_model"}, {"model.mlp_ratio", "model.block_type", "fsdp.wrapping_strategy"}},
    {"Primus", {}, {"modules.pre_trainer.", "modules.post_trainer."}},
    {"Primus", {"work_group"}},
    {"Oumi", {"training."}, {"model.model_name", "training.trainer_type"}},
    {"LitGPT", {"train."}, {"checkpoint_dir", "out_dir", "train.global_batch_size"}},
    {"H2O LLM Studio", {"architecture."}, {"prediction.", "tokenizer.max_length"}},
    {"Ludwig", {"input_features"}},
    {"fairseq", {"task."}, {"distributed_training.", "criterion.", "criterion"}},
    {"DeepSpeed-Chat", {"actor_zero_stage"}},
    {"a job of vLLM or SGLang, which serve models",
     {},
     {"gpu_memory_utilization", "max_num_seqs", "mem_fraction_static"}},
    {"the evaluation harness lm-eval", {"task", "output_type"}},
    {"an evaluation of LLM Foundry, which trains nothing", {"models", "max_seq_len"}},
    {"a job of MosaicML's platform, whose map `parameters` is a recipe of LLM Foundry", {"parameters.", "command"}},
    {"a job of MosaicML's platform", {"compute."}, {"image", "command"}}};

/// A script by a piece of it, with single blanks between words.
struct Mark {
  const char* name;
  std::vector<std::string> pieces;
};
const std::vector<Mark> kCommands{
    {"LLaMA-Factory", {"llamafactory", "LLaMA-Factory"}},
    {"axolotl", {"axolotl"}},
    {"ms-swift", {"swift sft", "swift pt", "swift rlhf", "megatron sft", "megatron pt", "swift/cli"}},
    {"verl", {" verl.", "recipe.dapo"}},
    {"OpenRLHF", {"openrlhf"}},
    {"slime", {"slime_plugins", "--rollout-batch-size"}},
    {"torchtune", {" tune run ", " tune cp "}},
    {"LitGPT", {" litgpt "}},
    {"MaxText", {"maxtext", "MaxText"}},
    {"levanter", {"levanter"}},
    {"fairseq", {"fairseq-train", "fairseq-hydra-train", "metaseq"}},
    {"GPT-NeoX", {"deepy.py", "gpt-neox"}},
    {"XTuner", {"xtuner train"}},
    {"Colossal-AI", {"colossalai run"}},
    {"nanotron", {"nanotron", "run_train.py --config-file"}},
    {"NeMo 1", {"megatron_gpt_pretraining.py", "megatron_gpt_finetuning.py"}},
    {"NeMo 2", {" nemo llm ", "nemorun"}},
    {"NeMo RL", {"run_grpo", "run_dpo.py", "nemo_rl"}},
    {"OLMo-core", {"olmo_core"}},
    {"OLMo", {"scripts/train.py configs/"}},
    {"Primus", {"primus"}},
    {"LLM Foundry, whose YAML file is read", {" composer "}},
    {"NeMo Automodel, whose YAML file is read", {"nemo_automodel", " automodel "}},
    {"vLLM, which serves models", {"vllm serve", "vllm.entrypoints"}},
    {"SGLang, which serves models", {"sglang.launch_server"}},
    {"Unsloth", {"unsloth"}},
    {"DeepSpeed-Chat", {"DeepSpeed-Chat", "step1_supervised_finetuning"}},
    {"Hugging Face's Trainer or TRL",
     {" trl sft ", " trl dpo ", " trl grpo ", "--model_name_or_path", "--per_device_train_batch_size"}},
    {"Hugging Face Accelerate, which leaves the model to a script", {"accelerate launch"}},
    {"DeepSpeed, which leaves the model to a script", {" deepspeed "}}};

const std::vector<Mark> kPrograms{
    {"a configuration of torchtitan 0.3 or later in Python; give its command line, such as ./run_train.sh --module "
     "llama3 "
     "--config llama3_8b, in a shell file",
     {"Trainer.Config(", "torchtitan.config", "torchtitan.trainer", "torchtitan.models"}},
    {"a recipe of Megatron-Bridge in Python; give its command line with --recipe, or a YAML file of its overrides",
     {"megatron.bridge", "ConfigContainer"}},
    {"NeMo 2", {"nemo.collections", "nemo_run"}},
    {"Hugging Face's Trainer or TRL in Python", {"TrainingArguments", "SFTConfig", "SFTTrainer"}},
    {"XTuner", {"xtuner"}},
    {"OLMo-core", {"olmo_core"}},
    {"Colossal-AI", {"colossalai"}},
    {"LLM Foundry, whose YAML file is read", {"llmfoundry"}}};

bool has_key(const Settings& settings, const std::string& key) {
  if (key.ends_with('.')) return settings.has_under(key.substr(0, key.size() - 1));
  if (!key.starts_with('*')) return settings.mentions(key);
  return std::ranges::any_of(settings.entries(),
                             [&](const Settings::Entry& e) { return e.key.ends_with(key.substr(1)); });
}

bool fits(const Signature& one, const Settings& settings) {
  const auto there = [&](const std::string& key) { return has_key(settings, key); };
  return std::ranges::all_of(one.all, there) && (one.any.empty() || std::ranges::any_of(one.any, there));
}

/// The first that has a piece of the text's begin.
std::string marked_in(const std::string& text, const std::vector<Mark>& marks) {
  constexpr std::size_t kMost = 1 << 16;
  const std::string begin = text.substr(0, kMost);
  for (const Mark& one : marks)
    for (const std::string& piece : one.pieces)
      if (begin.find(piece) != std::string::npos) return one.name;
  return "";
}

/// Without lines of comments, with one blank between words and around all.
std::string plain_words(const std::string& text) {
  std::string out = " ";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t first = text.find_first_not_of(" \t", at);
    if (first < end && text[first] != '#')
      for (std::size_t i = first; i < end; ++i)
        if (const char c = text[i] == '\t' || text[i] == '\r' ? ' ' : text[i]; c != ' ' || out.back() != ' ') out += c;
    if (out.back() != ' ') out += ' ';
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string foreign_file(const Settings& settings) {
  const auto found = std::ranges::find_if(kFiles, [&](const Signature& one) { return fits(one, settings); });
  return found == kFiles.end() ? "" : found->name;
}

std::string foreign_command(const Settings& flags, const std::string& text) {
  const std::string by_text = marked_in(plain_words(text), kCommands);
  return by_text.empty() ? foreign_file(flags) : by_text;
}

std::string foreign_program(const std::string& text) {
  const std::string found = marked_in(text, kPrograms);
  return found.empty() ? "a Python program" : found;
}

void refuse_foreign(const std::string& origin, const std::string& looks_like) {
  throw_usage("{}: found none of the formats that are read here ({}){}; give --from if it is one of them", origin,
              fmt::join(recipe_format_names(), ", "), looks_like.empty() ? "" : "; it looks like " + looks_like);
}

}  // namespace wt
