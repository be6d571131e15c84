// Whether a dataset is what its index says, and what is in it: for `windtunnel data check`.
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
  std::optional<std::int64_t> seq_len;       ///< samples of tokens hold so many, or one more
  std::optional<std::int64_t> vocabulary;    ///< ids are below it
  std::optional<FinetuningSpec> finetuning;  ///< the run's: samples are examples that teach something within seq_len
  std::int64_t shown = 3;                    ///< samples: the first, the others drawn
  std::uint64_t seed = 0;                    ///< of the draw
  /// Called after each shard with (shards done, shards in all).
  std::function<void(std::int64_t, std::int64_t)> progress;
};

struct ShownSample {
  std::int64_t sample = 0;
  std::int64_t length = 0;        ///< tokens, or bytes of a text
  std::vector<std::int32_t> ids;  ///< of a sample of tokens, and of a finetuning example: prompts and responses joined
  std::string text;               ///< of a sample of text
};

struct DataCheckResult {
  std::vector<std::string> columns;  ///< "tokens: ndarray:uint16"
  std::string compression;           ///< "zstd:7"; "" = none
  std::string hash;                  ///< the one that was compared; "" = the index has none
  std::int64_t shards = 0, samples = 0;
  std::int64_t tokens = 0;   ///< bytes where samples are text
  bool text = false;         ///< samples are text, not tokens
  std::uint64_t bytes = 0;   ///< of the shards, uncompressed
  std::uint64_t stored = 0;  ///< of their files
  std::int64_t largest_id = -1;
  std::int64_t trained = 0;  ///< of finetuning examples: tokens of the last responses, or what the run learns
  std::map<std::int64_t, std::int64_t> lengths;  ///< how many samples have this length
  std::vector<ShownSample> shown;
  std::vector<std::string> problems;  ///< the first 20, each with its file
  std::int64_t problem_count = 0;
};

/// Reads index.json and every shard, compressed or not, with its quickest hash: of the compressed file where there is
/// no other. A shard of which something is wrong is a problem of the result; so are a sample of another length, an id
/// beyond the vocabulary and an example of which the run learns nothing. Samples: a column `tokens` or `input_ids` of
/// integers, `text` or `turns` (data sets of LLM Foundry). Throws Error{usage} as read_mds_index does, and where there
/// is none of these columns.
DataCheckResult check_dataset(const std::filesystem::path& folder, const DataCheckOptions& options = {});

}  // namespace wt
