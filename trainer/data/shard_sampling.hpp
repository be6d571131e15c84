// How many of an epoch's samples come from each shard of a stream (streaming/base/sampling.py).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace wt {

/// Samples to read from each shard, `choose` in total. All samples as often as they fit; the rest in picks of
/// `granularity` samples of a shard, in the order of the permutation by default_rng(seed). Which samples of a shard
/// these are is decided later. Throws Error{usage} unless `choose` >= 0, `granularity` >= 1 and there is a sample. Cost
/// with granularity 1: two 32-bit draws and two bits per sample of the stream; otherwise four bytes per pick.
std::vector<std::int64_t> samples_of_shards(std::span<const std::int64_t> shard_sizes, std::int64_t choose,
                                            std::int64_t granularity, std::uint64_t seed);

}  // namespace wt
