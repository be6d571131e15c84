// What an LLM Foundry recipe reads, is evaluated on and is tracked with. The keys are Streaming's and Composer's, as in
// our run files; defaults are theirs.
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "configs/spec/support/yaml.hpp"
#include "planner/recipes/llm_foundry.hpp"

namespace wt {
namespace {

/// Those of a data set that run files have, too.
constexpr auto kDatasetKeys = std::to_array<std::string_view>({"remote",
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
                                                               "cache_limit"});
constexpr std::int64_t kGpusOfNode = 8;

/// Entries below `prefix` that `wanted` takes, without it; each is marked as read.
template <class Wanted>
Settings taken(RecipeReading& reading, const std::string& prefix, const Wanted& wanted) {
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

bool is_finetuning_key(const std::string& key) {
  return key == "target_prompts" || key == "target_responses" || key == "packing_ratio" || key == "eos_token_id";
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_dataset_key(const std::string& key) {
  return key.starts_with("streams.") || std::find(kDatasetKeys.begin(), kDatasetKeys.end(), key) != kDatasetKeys.end();
}

/// Whether the loader is named finetuning; its name is read then, or where it is text.
bool names_finetuning(RecipeReading& reading, const std::string& loader) {
  for (const Settings::Entry& entry : reading.in.entries())
    if (entry.key == loader + "name" && (entry.value == "finetuning" || entry.value == "text"))
      return reading.in.text(entry.key, "") == "finetuning";
  return false;
}

/// Of the loader `prefix` ("train_loader."); empty where it names no MDS folder.
DatasetSpec foundry_dataset(RecipeReading& reading, const std::string& loader) {
  const std::string prefix = loader + "dataset.";
  const bool named =
      reading.in.has(prefix + "local") || reading.in.has(prefix + "remote") || reading.in.has_under(prefix + "streams");
  if (!named) return {};
  const bool finetuning = names_finetuning(reading, loader), trains = loader == "train_loader.";
  const auto wanted = [&](const std::string& key) {
    return is_dataset_key(key) || (finetuning && is_finetuning_key(key) && (trains || key != "packing_ratio"));
  };
  Settings keys = taken(reading, prefix, wanted);
  for (const char* key : {"target_prompts", "target_responses"})
    if (keys.has(key)) keys.put(key, lower_case(keys.text(key, "")));
  if (!keys.has("shuffle")) keys.put("shuffle", false);
  YamlMap map =
      YamlMap::from_text(settings_to_yaml(keys), reading.in.origin() + ": " + prefix.substr(0, prefix.size() - 1));
  DatasetSpec spec = read_dataset(map, finetuning);
  if (!keys.has("num_canonical_nodes")) {
    const bool many =
        spec.shuffle_algorithm == ShuffleAlgorithm::py1s || spec.shuffle_algorithm == ShuffleAlgorithm::py2s;
    const std::int64_t nodes = std::max<std::int64_t>(1, reading.run.layout.world() / kGpusOfNode);
    spec.num_canonical_nodes = nodes * (many ? 64 : 1);
    if (spec.num_canonical_nodes > 1)
      reading.assume(fmt::format("{}num_canonical_nodes: taken as {}, for {} nodes of {} GPUs", prefix,
                                 spec.num_canonical_nodes, nodes, kGpusOfNode));
  }
  return spec;
}

}  // namespace

void write_foundry_data(RecipeDraft& draft) {
  DatasetSpec data = draft.run.dataset;
  if (data.empty()) data.use_folder("./data");
  if (!data.curriculum.empty())
    draft.not_expressed.emplace_back("train_loader.curriculum: found one, it changes proportions in code alone");
  YAML::Emitter said;
  dataset_to_yaml(data, said);
  const Settings keys = settings_from_yaml(said.c_str(), "data set");
  for (const Settings::Entry& entry : keys.entries()) draft.out.put("train_loader.dataset." + entry.key, entry.value);
  if (data.finetuning) {
    draft.out.put("train_loader.dataset.decoder_only_format", true);
    if (const StreamSpec& stream = data.streams.front(); stream.name.empty() && stream.remote.empty())
      draft.out.put("train_loader.dataset.remote", stream.local);  // without it, it looks for a data set by name
  }
  draft.out.put("train_loader.dataset.shuffle", data.shuffle);
  draft.out.put("train_loader.dataset.num_canonical_nodes", data.num_canonical_nodes);  // its default is another
}

void read_foundry_data(RecipeReading& reading) {
  DatasetSpec& data = reading.run.dataset;
  data = foundry_dataset(reading, "train_loader.");
  if (!data.finetuning) return;
  if (!data.finetuning->eos_token_id)
    reading.assume(
        "train_loader.dataset.eos_token_id: found none; LLM Foundry ends each last response with its tokenizer's, and "
        "the run as the data do: name it where they do not");
  bool separate = false;
  for (const char* key :
       {"model.attn_config.attn_uses_sequence_id", "model.config_overrides.attn_config.attn_uses_sequence_id"})
    separate = reading.in.boolean(key, separate) || separate;
  if (data.packs() && !separate && reading.in.text("model.name", "") == "mpt_causal_lm")
    reading.assume(fmt::format(
        "train_loader.dataset.packing_ratio: found {} without attn_uses_sequence_id, where MPT lets the examples of a "
        "sequence see one another; in the run they do not",
        data.finetuning->packing_ratio));
}

void read_foundry_evaluation(RecipeReading& reading, const FoundryClock& clock) {
  EvaluationSpec& spec = reading.run.evaluation;
  DatasetSpec dataset = foundry_dataset(reading, "eval_loader.");
  if (dataset.empty()) return;  // a list, or data of another kind: what it says is left out by name
  dataset.shuffle = true, dataset.num_canonical_nodes = 1;  // every sample counts once, in whatever order
  spec.sets.push_back({reading.in.text("eval_loader.label", "eval"), std::move(dataset)});
  if (reading.in.has("eval_interval"))
    spec.interval = clock.whole_batches("eval_interval", 0);
  else
    reading.assume("eval_interval: found none, which means every epoch; the run is evaluated at its end");
  spec.first = reading.in.boolean("eval_first", false);
  if (reading.in.has("device_eval_batch_size")) spec.device_batch = reading.in.integer("device_eval_batch_size", 1, 1);
  const Settings::Value batches = reading.in.value("eval_subset_num_batches");
  spec.subset_batches = batches.is_number_integer() ? batches.get<std::int64_t>() : -1;
}

void read_foundry_loggers(RecipeReading& reading) {
  const auto known = [](const std::string& key) {
    return key == "mlflow.tracking_uri" || key == "mlflow.experiment_name" || key == "mlflow.run_name" ||
           key.starts_with("mlflow.tags.") || key == "tensorboard.log_dir";
  };
  const bool mlflow = reading.in.mentions("loggers.mlflow") || reading.in.has_under("loggers.mlflow");
  const bool tensorboard = reading.in.mentions("loggers.tensorboard") || reading.in.has_under("loggers.tensorboard");
  const Settings keys = taken(reading, "loggers.", known);
  for (const char* logger : {"loggers.mlflow", "loggers.tensorboard"})
    if (reading.in.mentions(logger)) reading.in.mark_read(logger);
  if (!keys.entries().empty()) {
    Settings all(reading.in.origin());
    for (const Settings::Entry& entry : keys.entries()) all.put("loggers." + entry.key, entry.value);
    YamlMap map = YamlMap::from_text(settings_to_yaml(all), reading.in.origin());
    reading.run.loggers = read_loggers(map);
  }
  if (mlflow && !reading.run.loggers.mlflow) reading.run.loggers.mlflow.emplace();
  if (tensorboard && !reading.run.loggers.tensorboard) reading.run.loggers.tensorboard.emplace();
}

}  // namespace wt
