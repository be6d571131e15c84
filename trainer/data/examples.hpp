// The examples of a finetuning data set by number, as a run reads them. Their sizes are kept once an example was read:
// 8 bytes for each of the data set.
#pragma once
#include <vector>

#include "trainer/data/labelled_tokens.hpp"
#include "trainer/data/shard_cache.hpp"

namespace wt {

struct ExampleSize {
  std::int32_t tokens = 0;   ///< at most max_seq_len
  std::int32_t targets = 0;  ///< of them learned
};

class Examples {
 public:
  /// `data` outlives it and was opened for a finetuning data set.
  Examples(const ShardCache& data, const DatasetSpec& spec, std::int64_t max_seq_len);
  /// Throws as ShardCache::payload and labelled_tokens do.
  LabelledTokens example(std::int64_t id) const;
  ExampleSize size(std::int64_t id);

 private:
  const ShardCache& data_;
  FinetuningSpec spec_;
  std::string folder_;
  std::int64_t max_seq_len_;
  std::vector<ExampleSize> sizes_;  ///< by number; 0 tokens: not read yet
};

}  // namespace wt
