// The data set of a run: its streams, and the order in which samples are read. Keys, meanings and defaults are Mosaic
// Streaming's (0.13.0), with two exceptions: `shuffle` is true by default, and there is one canonical node by default,
// whatever the cluster.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/duration.hpp"
#include "configs/files/finetuning_spec.hpp"

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

enum class ShuffleAlgorithm {
  naive,  ///< one permutation of all samples; every node needs every shard
  py1s,   ///< shards, then samples inside each shard part
  py2s,   ///< like py1s, with samples of a shard also shuffled before shards are split at canonical nodes
  py1br,  ///< samples inside blocks of random size and start
  py1e,   ///< each sample moves randomly inside a block around its shard part (the default)
};
std::string to_string(ShuffleAlgorithm algorithm);
/// Throws Error{usage} on any other word.
ShuffleAlgorithm shuffle_algorithm_from_string(const std::string& word);

inline constexpr std::uint64_t kDefaultShuffleSeed = 9176;

enum class SamplingMethod {
  balanced,  ///< each epoch draws other samples for a partial repeat
  fixed,     ///< every epoch uses the same samples
};
enum class BatchingMethod {
  random,             ///< a batch mixes streams at random
  stratified,         ///< every global batch has the same number of samples of each stream
  per_stream,         ///< a global batch comes from one stream
  device_per_stream,  ///< a rank's batch comes from one stream
};
enum class PartitionAlgorithm { relaxed, orig };
std::string to_string(SamplingMethod method);
std::string to_string(BatchingMethod method);
std::string to_string(PartitionAlgorithm algorithm);

/// One folder of MDS shards. At most one of proportion, repeat and choose is set; none: each sample once.
struct StreamSpec {
  std::string name;    ///< key in the map `streams`; "" for a data set of one folder
  std::string remote;  ///< folder or address that shards are fetched from; "" = all are in local
  std::string local;   ///< folder that holds or caches the shards; "" = a temporary one, named by a hash of remote
  std::string split;   ///< subfolder of both
  std::optional<double> proportion;    ///< of an epoch's samples; relative to the other streams
  std::optional<double> repeat;        ///< times that each sample is read in an epoch
  std::optional<std::int64_t> choose;  ///< samples drawn from it in an epoch
  std::int64_t download_retry = 2;
  double download_timeout_s = 60;
  std::string validate_hash;  ///< algorithm of the hash in index.json to check before use; "" = none
  bool keep_zip = false;      ///< keep a fetched compressed file
  friend bool operator==(const StreamSpec&, const StreamSpec&) = default;
  /// remote/split and local/split; "" where remote or local is empty.
  std::string remote_folder() const;
  std::string local_folder() const;
};

/// From batch `at` on, streams have other proportions, and a new epoch begins.
struct MixChange {
  std::int64_t at = 0;              ///< batches drawn before the change
  std::vector<double> proportions;  ///< one a stream, in their order
  friend bool operator==(const MixChange&, const MixChange&) = default;
};

struct DatasetSpec {
  std::vector<StreamSpec> streams;           ///< in the file's order, which defines the samples' ids
  std::optional<FinetuningSpec> finetuning;  ///< of a loader named finetuning; none: samples of tokens
  std::optional<std::int64_t> epoch_size;    ///< samples drawn in an epoch; none: derived from the streams
  SamplingMethod sampling_method = SamplingMethod::balanced;
  std::int64_t sampling_granularity = 1;  ///< consecutive samples of a shard that a partial repeat draws together
  BatchingMethod batching_method = BatchingMethod::random;
  bool shuffle = true;
  ShuffleAlgorithm shuffle_algorithm = ShuffleAlgorithm::py1e;
  std::uint64_t shuffle_seed = kDefaultShuffleSeed;
  std::optional<std::int64_t> shuffle_block_size;  ///< samples; none: max(4,000,000 / num_canonical_nodes, 2^18)
  std::int64_t num_canonical_nodes = 1;
  /// Both give the same global batches. `orig` is accepted for Streaming's own readers.
  PartitionAlgorithm partition_algorithm = PartitionAlgorithm::relaxed;
  std::optional<std::int64_t> replication;  ///< consecutive ranks that read the same samples
  std::optional<std::int64_t> predownload;  ///< samples read ahead; none: 8 rank batches
  std::optional<std::int64_t> cache_limit;  ///< bytes of all local folders together; none: no limit
  std::vector<MixChange> curriculum;        ///< ascending by `at`
  friend bool operator==(const DatasetSpec&, const DatasetSpec&) = default;

  bool empty() const { return streams.empty(); }
  /// The folder of the first stream, by which messages name the data set. Empty without a stream.
  std::filesystem::path folder() const;
  /// Samples that a batch of `sequences` draws: more than `sequences` where examples are packed.
  std::int64_t samples_drawn(std::int64_t sequences) const;
  bool packs() const { return finetuning && finetuning->packs(); }
  /// Turns this into a data set of tokens in one local folder, read in the same order; an empty path: no data set.
  void use_folder(const std::filesystem::path& folder);
};

/// The maps `dataset` and `curriculum` of `train_loader`. Throws Error{usage}: unknown keys, values out of range,
/// weights that exclude one another, keys of Streaming that we do not support.
DatasetSpec read_train_loader(YamlMap loader, const RunClock& clock);
/// Samples drawn in an epoch, according to the indexes in the local folders. Throws Error{usage} with `where`.
std::int64_t samples_of_epoch(const DatasetSpec& spec, const std::string& where);
/// Reads `name` of a loader: text or finetuning. Throws Error{usage} for others.
bool is_finetuning_loader(YamlMap& loader);
/// The map `dataset` alone (of an evaluation, for instance).
DatasetSpec read_dataset(YamlMap& map, bool finetuning = false);
/// Write the maps that these two readers read back.
void dataset_to_yaml(const DatasetSpec& spec, YAML::Emitter& out);
void train_loader_to_yaml(const DatasetSpec& spec, YAML::Emitter& out);

}  // namespace wt
