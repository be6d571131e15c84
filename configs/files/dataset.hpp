// The data set of a run: which streams it mixes, and in which order their samples are read. The keys, what they mean
// and their defaults are Mosaic Streaming's (0.13.0), with two exceptions: a run file shuffles unless it says
// `shuffle: false`, and has one canonical node unless it names another number, whatever the cluster's.
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
  naive,  ///< one permutation of everything; needs every shard everywhere
  py1s,   ///< shards, then samples inside each shard part
  py2s,   ///< as py1s, but samples of a shard are also shuffled before shards are cut at canonical nodes
  py1br,  ///< samples inside blocks of random size and start
  py1e,   ///< each sample moves at random inside a block around its shard part (the default)
};
std::string to_string(ShuffleAlgorithm algorithm);
/// Throws Error{usage} on any other word.
ShuffleAlgorithm shuffle_algorithm_from_string(const std::string& word);

inline constexpr std::uint64_t kDefaultShuffleSeed = 9176;

enum class SamplingMethod {
  balanced,  ///< the samples of a partial repeat are drawn anew each epoch
  fixed,     ///< the same samples each epoch
};
enum class BatchingMethod {
  random,             ///< streams meet in a batch by chance
  stratified,         ///< as many samples of each stream in every global batch
  per_stream,         ///< a global batch is of one stream
  device_per_stream,  ///< a rank's batch is of one stream
};
enum class PartitionAlgorithm { relaxed, orig };
std::string to_string(SamplingMethod method);
std::string to_string(BatchingMethod method);
std::string to_string(PartitionAlgorithm algorithm);

/// One folder of MDS shards. At most one of proportion, repeat and choose; none: each sample once.
struct StreamSpec {
  std::string name;    ///< of the map `streams`; "" for a data set that is one folder
  std::string remote;  ///< folder or address that shards are fetched from; "" = all are in local
  std::string local;   ///< folder that holds or caches the shards; "" = a temporary one, named by a hash of remote
  std::string split;   ///< folder inside both
  std::optional<double> proportion;    ///< of an epoch's samples; relative to the other streams'
  std::optional<double> repeat;        ///< times that its samples are read in an epoch
  std::optional<std::int64_t> choose;  ///< samples of it in an epoch
  std::int64_t download_retry = 2;
  double download_timeout_s = 60;
  std::string validate_hash;  ///< a hash that index.json has, checked before use; "" = none
  bool keep_zip = false;      ///< the compressed file stays although it was fetched
  friend bool operator==(const StreamSpec&, const StreamSpec&) = default;
  /// remote/split and local/split; "" where there is none.
  std::string remote_folder() const;
  std::string local_folder() const;
};

/// From batch `at` on (`at` batches were drawn before) streams have other proportions, and a new epoch begins.
struct MixChange {
  std::int64_t at = 0;
  std::vector<double> proportions;  ///< one a stream, in their order
  friend bool operator==(const MixChange&, const MixChange&) = default;
};

struct DatasetSpec {
  std::vector<StreamSpec> streams;           ///< in the file's order, which gives samples their ids
  std::optional<FinetuningSpec> finetuning;  ///< of a loader named finetuning; none: samples of tokens
  std::optional<std::int64_t> epoch_size;    ///< samples drawn in an epoch; none: as many as the streams have or weigh
  SamplingMethod sampling_method = SamplingMethod::balanced;
  std::int64_t sampling_granularity = 1;  ///< samples of a shard that a partial repeat takes at once
  BatchingMethod batching_method = BatchingMethod::random;
  bool shuffle = true;
  ShuffleAlgorithm shuffle_algorithm = ShuffleAlgorithm::py1e;
  std::uint64_t shuffle_seed = kDefaultShuffleSeed;
  std::optional<std::int64_t> shuffle_block_size;  ///< samples; none: max(4,000,000 / num_canonical_nodes, 2^18)
  std::int64_t num_canonical_nodes = 1;
  /// Both give the same global batches; `orig` is kept for Streaming's own readers.
  PartitionAlgorithm partition_algorithm = PartitionAlgorithm::relaxed;
  std::optional<std::int64_t> replication;  ///< consecutive ranks that read the same samples
  std::optional<std::int64_t> predownload;  ///< samples read ahead; none: 8 rank batches
  std::optional<std::int64_t> cache_limit;  ///< bytes of all local folders; none: no limit
  std::vector<MixChange> curriculum;        ///< ascending in `at`
  friend bool operator==(const DatasetSpec&, const DatasetSpec&) = default;

  bool empty() const { return streams.empty(); }
  /// The folder of the first stream: what a data set of one folder is called in messages. Empty if there is no stream.
  std::filesystem::path folder() const;
  /// Samples that a batch of so many sequences draws: more where examples are packed.
  std::int64_t samples_drawn(std::int64_t sequences) const;
  bool packs() const { return finetuning && finetuning->packs(); }
  /// Becomes a data set of tokens in this one local folder, in the same order; an empty path: none.
  void use_folder(const std::filesystem::path& folder);
};

/// The maps `dataset` and `curriculum` of `train_loader`. Throws Error{usage}: unknown keys, values out of range,
/// weights that exclude one another, keys that Streaming has and we refuse.
DatasetSpec read_train_loader(YamlMap& loader, const RunClock& clock);
/// Samples that an epoch of it draws, by the indexes in the local folders. Throws Error{usage} naming `where`.
std::int64_t samples_of_epoch(const DatasetSpec& spec, const std::string& where);
/// `name` of a loader: text, or finetuning. Throws Error{usage} on others.
bool is_finetuning_loader(YamlMap& loader);
/// The map `dataset` alone (of an evaluation, for instance).
DatasetSpec read_dataset(YamlMap& map, bool finetuning = false);
/// The maps that these two read back to the same.
void dataset_to_yaml(const DatasetSpec& spec, YAML::Emitter& out);
void train_loader_to_yaml(const DatasetSpec& spec, YAML::Emitter& out);

}  // namespace wt
