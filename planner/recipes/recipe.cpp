#include "planner/recipes/recipe.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <utility>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "configs/base/utf8.hpp"
#include "planner/recipes/format_guess.hpp"
#include "planner/recipes/known_words.hpp"
#include "planner/recipes/launch.hpp"
#include "planner/recipes/translator.hpp"

namespace wt {
namespace {

/// For a format other than ours.
const RecipeTranslator& translator_of(RecipeFormat format) {
  constexpr std::array translators{&kTorchtitan, &kMegatronCore, &kMegatronBridge, &kAutomodel, &kLlmFoundry};
  return *translators.at(static_cast<std::size_t>(format));
}

std::string as_comments(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += "# " + line + "\n";
  return out;
}

/// The comments above the settings: origin, open choices, omissions, next step.
std::string head_of(const RunSpec& run, const Recipe& recipe, const std::vector<std::string>& launch) {
  std::vector<std::string> lines{fmt::format("{} on {} GPUs ({}), for {}; written by windtunnel export.", run.name,
                                             run.layout.world(), run.layout.name(), recipe.version)};
  for (const std::string& what : recipe.todo) lines.push_back("TODO " + what);
  if (!recipe.not_expressed.empty()) lines.emplace_back("Not expressed here:");
  for (const std::string& what : recipe.not_expressed) lines.push_back("  " + what);
  lines.insert(lines.end(), launch.begin(), launch.end());
  lines.push_back("Next: " + recipe.next_step);
  return as_comments(lines);
}

/// The whole file. A shell file is the batch script itself; others say in comments what starts them.
std::string text_of(const RecipeDraft& draft, const RecipeTranslator& format, const Recipe& recipe,
                    const std::string& settings) {
  const Launch launch = launch_of(draft);
  if (format.shell) {
    const std::string directive = launch.directive.empty() ? "" : launch.directive + "\n";
    return "#!/usr/bin/env bash\n" + directive + head_of(draft.run, recipe, {}) + launch.setup + settings;
  }
  std::vector<std::string> lines{launch.directive.empty() ? "Launch:" : "Launch, as a script for sbatch:"};
  std::istringstream commands(launch.directive + "\n" + launch.setup + launch.command);
  for (std::string line; std::getline(commands, line);)
    if (!line.empty()) lines.push_back("  " + line);
  return head_of(draft.run, recipe, lines) + settings;
}

/// What a run file leaves open, by the format's keys. A value at its default counts as left open.
std::vector<std::string> todo_of(const RecipeDraft& draft, const RecipeTranslator& format) {
  const OptimizerSpec usual, &o = draft.run.optimizer;
  std::vector<std::string> out;
  if (o.lr == usual.lr) out.push_back(fmt::format("{}: {} is the default of run files; choose one", format.lr, o.lr));
  if (o.warmup_steps == 0)
    out.push_back(fmt::format("{}: 0 steps, a run file's default; choose a warm-up", format.warmup));
  if (!draft.names_data) out.push_back(fmt::format("{}: name the data and their tokenizer", format.data));
  return out;
}

Recipe export_to_us(const RunSpec& run) {
  Recipe out{.text = "",
             .file_name = "run.yaml",
             .version = "windtunnel train",
             .next_step = "",
             .todo = {},
             .not_expressed = {}};
  std::vector<std::string> only_simulated = untrainable(run);
  for (std::string& what : run.model.untrainable()) only_simulated.push_back(std::move(what));
  for (const std::string& what : only_simulated) out.not_expressed.push_back(what + ": simulated alone");
  out.next_step =
      only_simulated.empty() ? "windtunnel train run.yaml -o out/train" : "windtunnel simulate run.yaml --cluster NAME";
  out.text = head_of(run, out, {}) + run_to_yaml(run);
  return out;
}

/// Adds reasons that hold for all other trainers, if the format has none of its own.
void add_common_reasons(RecipeDraft& draft) {
  for (const auto& [key, reason] :
       {std::pair{"device", "it trains on GPUs"},
        {"device_train_microbatch_size", "all microbatches of a step have one size there"},
        {"train_loader", "it reads no MDS; made-up data stand for it"},
        {"load_path", "it starts from checkpoints of its own; convert the weights"},
        {"callbacks", "weights are exported after the run"},
        {"model.ffn_config.expert_assignment", "its routing is the router's, or balanced"},
        {"precision", "formats below 16 bits are not written"},
        {"precisions", "formats of one class of operations have no key"},
        {"fsdp_config.data_parallel_replicate_degree", "replicas of single ranks and shards are not told apart"},
        {"fsdp_config.data_parallel_shard_degree", "replicas of single ranks and shards are not told apart"},
        {"fsdp_config.optimizer_shard_degree", "its optimizer is cut as the weights are"},
        {"fsdp_config.expert_placement",
         draft.run.layout.slots(draft.run.model) > draft.run.model.experts
             ? "it has no copies of experts, and deals them in order"
             : "it deals experts in order; rename experts and router rows in the first checkpoint"},
        {"fsdp_config.activation_compression", "layer inputs are kept as they are"}})
    draft.why.try_emplace(key, reason);
}

RunSpec run_on_gpus(const std::string& name) {
  RunSpec run;
  run.name = name;
  run.device = DeviceKind::cuda;
  set_precision(run, "amp_bf16");
  run.steps = 1;
  return run;
}

}  // namespace

const std::vector<std::string>& recipe_format_names() {
  static const std::vector<std::string> names{"torchtitan", "megatron-core", "megatron-bridge",
                                              "automodel",  "llm-foundry",   "windtunnel"};
  return names;
}

std::string to_string(RecipeFormat format) { return word_for(format, recipe_format_names()); }

RecipeFormat recipe_format_from_string(const std::string& word, const std::string& where) {
  const auto& names = recipe_format_names();
  if (const auto format = enumerator_of<RecipeFormat>(word, names)) return *format;
  throw_usage("{}: found '{}'{}, allowed are {}", where, word, did_you_mean(word, names), fmt::join(names, ", "));
}

Recipe export_run(const RunSpec& run, RecipeFormat target, std::int64_t gpus_per_node) {
  check_run(run, run.name);
  if (target == RecipeFormat::windtunnel) return export_to_us(run);
  const RecipeTranslator& format = translator_of(target);
  if (run.lora)
    throw_usage(
        "{}: model.peft_config: found an adapter, {} is written for runs that train all weights; leave it out, or "
        "train it here",
        run.name, format.version);
  RecipeDraft draft{.run = run, .gpus_per_node = gpus_per_node};
  format.write(draft);
  const std::string body =
      format.shell ? settings_to_shell(launch_of(draft).command, draft.out) : format.print(draft.out);

  Settings settings = format.parse(body, to_string(target), {});
  RecipeReading reading{.in = settings, .run = run_on_gpus(run.name), .model = {}, .gpus = run.layout.world()};
  if (draft.names_no_model) reading.model = run.model;
  try {
    format.read(reading);
    check_run(reading.run, to_string(target));
  } catch (const Error& error) {
    throw_usage("{}: found what {} can say only as an impossible run; windtunnel simulate takes it: {}", run.name,
                format.version, error.what());
  }
  Recipe out{.text = "",
             .file_name = format.file_name,
             .version = format.version,
             .next_step = draft.next_step,
             .todo = todo_of(draft, format),
             .not_expressed = std::move(draft.not_expressed)};
  add_common_reasons(draft);
  for (std::string& what : run_differences(run, reading.run, draft.why)) out.not_expressed.push_back(std::move(what));
  out.text = text_of(draft, format, out, body);
  return out;
}

std::optional<std::string> file_beside(const std::filesystem::path& file) {
  std::error_code none;
  constexpr std::uintmax_t kLargest = 1 << 20;
  if (!std::filesystem::is_regular_file(file, none) || std::filesystem::file_size(file, none) > kLargest)
    return std::nullopt;
  return read_file(file, "a script");
}

ImportedRun import_run(const std::string& text, const std::string& origin, const RecipeSource& source) {
  ImportedRun out;
  need_utf8(text, origin);
  out.format = source.format ? *source.format : guessed_format(text, origin, source);
  if (out.format == RecipeFormat::windtunnel) {
    out.run = run_from_text(text, origin);
    return out;
  }
  const RecipeTranslator& format = translator_of(out.format);
  Settings settings = format.parse(text, origin, source);
  if (settings.entries().empty()) throw_usage("{}: found no keys, needs those of {}", origin, format.version);
  const KnownWords* words = format.words == nullptr ? nullptr : &KnownWords::of(format.words);
  if (words != nullptr) words->check(settings);
  const std::string stem = std::filesystem::path(origin).stem().string();
  RecipeReading reading{.in = settings,
                        .run = run_on_gpus(stem.empty() ? "imported" : stem),
                        .model = {},
                        .gpus = source.gpus,
                        .vocab = source.vocab,
                        .seq_len = source.seq_len};
  if (!source.model.empty()) reading.model = read_model(source.model);
  format.read(reading);
  if (out.format == RecipeFormat::llm_foundry && std::exchange(reading.run.pure_reduction, false))
    reading.assume("fsdp_config.mixed_precision: found PURE; gradients are reduced in fp32, which is more exact");
  check_run(reading.run, origin);
  out.run = std::move(reading.run);
  if (words != nullptr)
    words->list_unread(reading);
  else
    for (std::string& what : settings.unread()) reading.ignored.push_back(std::move(what));
  reading.ignored.insert(reading.ignored.end(), settings.renamed().begin(), settings.renamed().end());
  out.assumed = settings.notes();
  for (std::string& what : reading.assumed) out.assumed.push_back(std::move(what));
  out.learning = std::move(reading.learning);
  out.ignored = std::move(reading.ignored);
  return out;
}

}  // namespace wt
