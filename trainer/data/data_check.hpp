// Checks whether a data set matches its index, and summarises its content: for `windtunnel data check`.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/finetuning_spec.hpp"

namespace wt {

struct DataCheckOptions {
  std::optional<std::int64_t> seq_len;       ///< samples of tokens must have this length, or one more
  std::optional<std::int64_t> vocabulary;    ///< ids must be below it
  std::optional<FinetuningSpec> finetuning;  ///< the run's: every example must have tokens in the loss within seq_len
  std::int64_t shown = 3;                    ///< samples to show: the first one, and random ones
  std::uint64_t seed = 0;                    ///< for the random ones
  /// Called after each shard with (shards done, shards in all).
  std::function<void(std::int64_t, std::int64_t)> progress;
};

struct ShownSample {
  std::int64_t sample = 0;
  std::int64_t length = 0;        ///< tokens, or bytes of a text
  std::vector<std::int32_t> ids;  ///< tokens; for a finetuning example prompts and responses joined
  std::string text;               ///< of a text sample
};

struct DataCheckResult {
  std::vector<std::string> columns;  ///< "tokens: ndarray:uint16"
  std::string compression;           ///< "zstd:7"; "" = none
  std::string hash;                  ///< the algorithm that was compared; "" = the index has none
  std::int64_t shards = 0, samples = 0;
  std::int64_t tokens = 0;   ///< bytes where samples are text
  bool text = false;         ///< samples are text, not tokens
  std::uint64_t bytes = 0;   ///< of the shards, uncompressed
  std::uint64_t stored = 0;  ///< of their files
  std::int64_t largest_id = -1;
  std::int64_t trained = 0;  ///< finetuning: tokens of the last responses, or those in the run's loss
  std::map<std::int64_t, std::int64_t> lengths;  ///< number of samples by length
  std::vector<ShownSample> shown;
  std::vector<std::string> problems;  ///< the first 20, each with its file
  std::int64_t problem_count = 0;
};

/// Reads index.json and every shard, compressed or not, and compares the hash that is quickest to compute (of the
/// compressed file if it has the only one). Problems in the result: a damaged shard, a sample of another length, an id
/// beyond the vocabulary, an example without tokens in the loss. Samples are a column `tokens` or `input_ids` of
/// integers, `text` or `turns` (data sets of LLM Foundry). Throws Error{usage} as read_mds_index does, and where none
/// of these columns exists.
DataCheckResult check_dataset(const std::filesystem::path& folder, const DataCheckOptions& options = {});

}  // namespace wt
