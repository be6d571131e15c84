#include "trainer/data/shuffle.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "trainer/data/shuffle_readers.hpp"

namespace wt {
namespace {

void check_shuffle(std::int64_t num_samples, const ShuffleOptions& options, bool shuffle) {
  if (options.num_canonical_nodes < 1 || options.num_canonical_nodes > num_samples)
    throw_usage(
        "shuffle: found num_canonical_nodes {} for {} samples, allowed is 1 to the number of samples; use fewer "
        "canonical nodes or more data",
        options.num_canonical_nodes, num_samples);
  if (options.epoch < 0)
    throw_usage("shuffle: found epoch {}, allowed is 0 or more; count epochs from 0", options.epoch);
  // With blocks of one sample, py1e would have nothing to draw from, and py1br no stagger.
  const std::int64_t least = options.algorithm == ShuffleAlgorithm::py1br ? 2 : 1;
  if (shuffle && has_blocks(options.algorithm) && effective_block_size(options) < least)
    throw_usage(
        "shuffle: found shuffle_block_size {}, allowed is 0 (the default size) or at least {} samples; set it so",
        options.block_size, least);
}

}  // namespace

bool has_blocks(ShuffleAlgorithm algorithm) {
  return algorithm == ShuffleAlgorithm::py1e || algorithm == ShuffleAlgorithm::py1br;
}

std::int64_t effective_block_size(const ShuffleOptions& options) {
  if (options.block_size != 0) return options.block_size;
  return std::max<std::int64_t>(4'000'000 / std::max<std::int64_t>(options.num_canonical_nodes, 1), 1 << 18);
}

std::int64_t draw_block(std::int64_t block_size, NumpyRandom& random) {
  const auto nominal = static_cast<double>(block_size);
  return random.integers(static_cast<std::int64_t>(0.75 * nominal), static_cast<std::int64_t>(1.25 * nominal));
}

NumpyRandom epoch_random(const ShuffleOptions& options) {
  return NumpyRandom(options.seed + static_cast<std::uint64_t>(options.epoch));
}

std::vector<NodePieces> deal_and_shuffle(const Units& units, const ShuffleOptions& options, NumpyRandom& epoch) {
  NumpyRandom run(options.seed);
  std::vector<NodePieces> nodes = deal_units(*units, options.num_canonical_nodes, &run);
  for (NodePieces& node : nodes) epoch.shuffle(std::span(node));
  return nodes;
}

std::int64_t NodeReader::next() {
  while (used_ == ready_.size()) {
    ready_.clear();
    used_ = 0;
    make(ready_);
  }
  return ready_[used_++];
}

void NodeReader::seek(std::int64_t place) {
  ready_.clear();
  used_ = 0;
  for (std::int64_t at = go_back(place); at < place; ++at) next();
}

NodeReaders read_nodes(const Units& units, const ShuffleOptions& options, bool shuffle) {
  check_shuffle(units->samples(), options, shuffle);
  NodeReaders readers = [&] {
    if (!shuffle) return read_in_order(units, options);
    switch (options.algorithm) {
      case ShuffleAlgorithm::naive:
        return read_naive(units, options);
      case ShuffleAlgorithm::py1s:
        return read_py1s(units, options);
      case ShuffleAlgorithm::py2s:
        return read_py2s(units, options);
      case ShuffleAlgorithm::py1br:
        return read_py1br(units, options);
      case ShuffleAlgorithm::py1e:
        break;
    }
    return read_py1e(units, options);
  }();
  for (const auto& reader : readers) reader->seek(0);
  return readers;
}

}  // namespace wt
