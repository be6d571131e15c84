// The data sets of an LLM Foundry recipe. The keys are Streaming's, as in our run files; defaults are Streaming's, too.
#include <algorithm>
#include <array>
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

bool is_dataset_key(const std::string& key) {
  return key.starts_with("streams.") || std::find(kDatasetKeys.begin(), kDatasetKeys.end(), key) != kDatasetKeys.end();
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
  Settings keys = take_settings(reading, prefix, is_dataset_key);
  if (!keys.has("shuffle")) keys.put("shuffle", false);
  YamlMap map =
      YamlMap::from_text(settings_to_yaml(keys), reading.in.origin() + ": " + prefix.substr(0, prefix.size() - 1));
  DatasetSpec spec = read_dataset(map);
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

void write_foundry_dataset(RecipeDraft& draft, const std::string& loader, const DatasetSpec& data) {
  const std::string prefix = loader + "dataset.";
  YAML::Emitter said;
  dataset_to_yaml(data, said);
  const Settings keys = settings_from_yaml(said.c_str(), "data set");
  for (const Settings::Entry& entry : keys.entries()) draft.out.put(prefix + entry.key, entry.value);
  draft.out.put(prefix + "shuffle", data.shuffle);
  draft.out.put(prefix + "num_canonical_nodes", data.num_canonical_nodes);  // its default is another
  draft.out.put(prefix + "max_seq_len", draft.run.seq);
}

void write_foundry_data(RecipeDraft& draft) {
  DatasetSpec data = draft.run.dataset;
  if (data.empty()) data.use_folder("./data");
  if (!data.curriculum.empty())
    draft.not_expressed.emplace_back("train_loader.curriculum: found one, it changes proportions in code alone");
  write_foundry_dataset(draft, "train_loader.", data);
}

void read_foundry_data(RecipeReading& reading) { reading.run.dataset = read_foundry_dataset(reading, "train_loader."); }

}  // namespace wt
