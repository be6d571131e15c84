// The shuffles of Mosaic Streaming (streaming/base/shuffle): the sample at each position of an epoch. Shards are
// assigned to canonical nodes once for the whole run (by `seed`); the order inside a canonical node is drawn again for
// each epoch (by seed + epoch). Samples never leave their canonical node, except with `naive`.
#pragma once
#include <cstdint>

#include "configs/files/dataset.hpp"

namespace wt {

struct ShuffleOptions {
  ShuffleAlgorithm algorithm = ShuffleAlgorithm::py1e;
  std::int64_t num_canonical_nodes = 1;
  std::uint64_t seed = kDefaultShuffleSeed;
  std::int64_t epoch = 0;
  std::int64_t block_size = 0;  ///< samples; 0 = max(4,000,000 / num_canonical_nodes, 2^18)
};

/// Whether the algorithm shuffles in blocks, so that block_size matters.
bool has_blocks(ShuffleAlgorithm algorithm);
/// block_size, or its default if it is 0.
std::int64_t effective_block_size(const ShuffleOptions& options);

}  // namespace wt
