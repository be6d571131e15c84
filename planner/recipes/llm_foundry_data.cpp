// The data sets of an LLM Foundry recipe. Keys and defaults are Streaming's; our run files have the same keys.
#include <algorithm>
#include <string_view>

#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "planner/recipes/llm_foundry.hpp"

namespace wt {
namespace {

/// Keys of a data set that run files have, too.
constexpr std::string_view kDatasetKeys[]{"remote",
                                          "local",
                                          "split",
                                          "download_retry",
                                          "download_timeout",
                                          "validate_hash",
                                          "keep_zip",
                                          "epoch_size",
                                          "sampling_method",
                                          "sampling_granularity",
                                          "batching_method",
                                          "shuffle",
                                          "shuffle_algo",
                                          "shuffle_seed",
                                          "shuffle_block_size",
                                          "num_canonical_nodes",
                                          "partition_algo",
                                          "replication",
                                          "predownload",
                                          "cache_limit"};
constexpr std::int64_t kGpusOfNode = 8;
constexpr const char* kTrainLoader = "train_loader.";

bool is_dataset_key(const std::string& key) {
  return key.starts_with("streams.") || std::ranges::find(kDatasetKeys, key) != std::end(kDatasetKeys);
}

bool is_finetuning_key(const std::string& key) {
  return key == "target_prompts" || key == "target_responses" || key == "packing_ratio" || key == "eos_token_id";
}

/// Whether the loader is named finetuning. Marks the name as read if it is, or if it is text.
bool names_finetuning(RecipeReading& reading, const std::string& loader) {
  for (const Settings::Entry& entry : reading.in.entries())
    if (entry.key == loader + "name" && (entry.value == "finetuning" || entry.value == "text"))
      return reading.in.text(entry.key, "") == "finetuning";
  return false;
}

}  // namespace

Settings take_settings(RecipeReading& reading, const std::string& prefix,
                       const std::function<bool(const std::string&)>& wanted) {
  Settings out(reading.in.origin());
  for (const Settings::Entry& entry : reading.in.entries()) {
    if (!entry.key.starts_with(prefix)) continue;
    const std::string key = entry.key.substr(prefix.size());
    if (!wanted(key)) continue;
    reading.in.mark_read(entry.key);
    if (!entry.value.is_null()) out.put(key, entry.value);
  }
  return out;
}

DatasetSpec read_foundry_dataset(RecipeReading& reading, const std::string& loader) {
  const std::string prefix = loader + "dataset.";
  const bool named =
      reading.in.has(prefix + "local") || reading.in.has(prefix + "remote") || reading.in.has_under(prefix + "streams");
  if (!named) return {};
  const bool finetuning = names_finetuning(reading, loader), trains = loader == kTrainLoader;
  const auto wanted = [&](const std::string& key) {
    return is_dataset_key(key) || (finetuning && is_finetuning_key(key) && (trains || key != "packing_ratio"));
  };
  Settings keys = take_settings(reading, prefix, wanted);
  for (const char* key : {"target_prompts", "target_responses"})
    if (keys.has(key)) keys.put(key, lower(keys.text(key, "")));
  if (!keys.has("shuffle")) keys.put("shuffle", false);
  YamlMap map =
      YamlMap::from_text(settings_to_yaml(keys), reading.in.origin() + ": " + prefix.substr(0, prefix.size() - 1));
  DatasetSpec spec = read_dataset(map, finetuning);
  if (finetuning && !spec.finetuning->eos_token_id)
    reading.assume(
        "{}eos_token_id: found none; LLM Foundry ends each last response with its tokenizer's, and the run as the data "
        "do: name it where they do not",
        prefix);
  if (!keys.has("num_canonical_nodes")) {
    const bool many =
        spec.shuffle_algorithm == ShuffleAlgorithm::py1s || spec.shuffle_algorithm == ShuffleAlgorithm::py2s;
    const std::int64_t nodes = std::max<std::int64_t>(1, reading.run.layout.world() / kGpusOfNode);
    spec.num_canonical_nodes = nodes * (many ? 64 : 1);
    if (spec.num_canonical_nodes > 1)
      reading.assume("{}num_canonical_nodes: taken as {}, for {} nodes of {} GPUs", prefix, spec.num_canonical_nodes,
                     nodes, kGpusOfNode);
  }
  return spec;
}

void write_foundry_dataset(RecipeDraft& draft, const std::string& loader, const DatasetSpec& data) {
  const std::string prefix = loader + "dataset.";
  DatasetSpec sayable = data;
  if (data.finetuning && data.finetuning->eos_token_id) {
    sayable.finetuning->eos_token_id.reset();
    draft.why[loader == kTrainLoader ? prefix + "eos_token_id" : "eval_loader"] =
        "LLM Foundry ends responses with its tokenizer's end token";
  }
  YAML::Emitter said;
  dataset_to_yaml(sayable, said);
  const Settings keys = settings_from_yaml(said.c_str(), "data set");
  for (const Settings::Entry& entry : keys.entries()) draft.out.put(prefix + entry.key, entry.value);
  if (data.finetuning) {
    draft.out.put(prefix + "decoder_only_format", true);
    if (const StreamSpec& stream = data.streams.front(); stream.name.empty() && stream.remote.empty())
      draft.out.put(prefix + "remote", stream.local);  // without it, LLM Foundry looks for a data set by name
  }
  draft.out.put(prefix + "shuffle", data.shuffle);
  draft.out.put(prefix + "num_canonical_nodes", data.num_canonical_nodes);  // its default differs
  draft.out.put(prefix + "max_seq_len", draft.run.seq);
}

void write_foundry_data(RecipeDraft& draft) {
  DatasetSpec data = draft.run.dataset;
  if (data.empty()) data.use_folder("./data");
  if (!data.curriculum.empty())
    draft.not_expressed.emplace_back("train_loader.curriculum: found one, it changes proportions in code alone");
  write_foundry_dataset(draft, kTrainLoader, data);
}

void read_foundry_data(RecipeReading& reading) {
  DatasetSpec& data = reading.run.dataset;
  data = read_foundry_dataset(reading, kTrainLoader);
  if (!data.finetuning) return;
  // Marked as read in any case: Hugging Face models get no sequence ids.
  reading.in.boolean("model.config_overrides.attn_config.attn_uses_sequence_id", false);
  const bool separate = reading.in.boolean("model.attn_config.attn_uses_sequence_id", false) &&
                        reading.in.text("model.name", "mpt_causal_lm") == "mpt_causal_lm";
  if (data.packs() && !separate)
    reading.assume(
        "train_loader.dataset.packing_ratio: found {} without an mpt_causal_lm's attn_uses_sequence_id; examples of a "
        "sequence see one another there, in the run they do not",
        data.finetuning->packing_ratio);
}

}  // namespace wt
