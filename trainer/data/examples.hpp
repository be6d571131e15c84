// Random access to the examples of a finetuning data set, with their sizes cached after the first read: 8 bytes per
// example of the data set.
#pragma once
#include <vector>

#include "trainer/data/labelled_tokens.hpp"
#include "trainer/data/shard_cache.hpp"

namespace wt {

struct ExampleSize {
  std::int32_t tokens = 0;   ///< at most max_seq_len
  std::int32_t targets = 0;  ///< tokens in the loss
};

class Examples {
 public:
  /// `data` must outlive it, and be opened for a finetuning data set.
  Examples(const ShardCache& data, const DatasetSpec& spec, std::int64_t max_seq_len);
  /// Throws as ShardCache::payload and labelled_tokens do.
  LabelledTokens example(std::int64_t id) const;
  ExampleSize size(std::int64_t id);

 private:
  const ShardCache& data_;
  FinetuningSpec spec_;
  std::string folder_;
  std::int64_t max_seq_len_;
  std::vector<ExampleSize> sizes_;  ///< by id; 0 tokens: not read yet
};

}  // namespace wt
