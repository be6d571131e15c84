// Of which shards a stream's samples of an epoch are (streaming/base/sampling.py).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace wt {

/// Samples to read of each shard, `choose` in all: all of them as often as they fit, and of the rest `granularity` of a
/// shard at once, in the order in which default_rng(seed) permutes these picks. The choice within a shard is made
/// later. `choose` >= 0, `granularity` >= 1 and at least one sample, else throws Error{usage}.
/// With granularity 1 costs two 32-bit draws and two bits a sample of the stream; else four bytes a pick.
std::vector<std::int64_t> samples_of_shards(std::span<const std::int64_t> shard_sizes, std::int64_t choose,
                                            std::int64_t granularity, std::uint64_t seed);

}  // namespace wt
