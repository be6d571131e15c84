#include "trainer/data/shuffle.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "configs/spec/support/error.hpp"
#include "trainer/data/numpy_random.hpp"

namespace wt {
namespace {

/// Places [begin, end) of the identity order (or of py2s's own), kept together: a shard or what a cut left of it.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};
using Node = std::vector<Piece>;  ///< the pieces of one canonical node

std::vector<Piece> shards_as_pieces(std::span<const std::int64_t> shard_sizes) {
  std::vector<Piece> pieces;
  std::int64_t begin = 0;
  for (const std::int64_t size : shard_sizes) {
    pieces.push_back({begin, begin + size});
    begin += size;
  }
  return pieces;
}

/// Cuts the row of pieces at samples N*1/C, N*2/C, ... (rounded down).
std::vector<Node> cut_into_nodes(const std::vector<Piece>& pieces, std::int64_t num_samples, std::int64_t num_nodes) {
  std::vector<Node> nodes;
  std::size_t next = 0;
  std::int64_t used = 0;  // samples of pieces[next] already given away
  std::int64_t placed = 0;
  for (std::int64_t node = 1; node <= num_nodes; ++node) {
    const std::int64_t node_end = num_samples * node / num_nodes;
    Node& mine = nodes.emplace_back();
    while (next < pieces.size()) {
      const Piece rest = {pieces[next].begin + used, pieces[next].end};
      if (placed + rest.size() <= node_end) {
        mine.push_back(rest);
        placed += rest.size();
        used = 0;
        ++next;
        continue;
      }
      const std::int64_t room = node_end - placed;
      if (room > 0) mine.push_back({rest.begin, rest.begin + room});
      used += room;
      placed = node_end;
      break;
    }
  }
  return nodes;
}

std::vector<Node> deal_shards(std::span<const std::int64_t> shard_sizes, std::int64_t num_samples,
                              const ShuffleOptions& options) {
  std::vector<Piece> shards = shards_as_pieces(shard_sizes);
  NumpyRandom(options.seed).shuffle(std::span(shards));
  return cut_into_nodes(shards, num_samples, options.num_canonical_nodes);
}

/// Appends the ids of a piece and returns where they now stand.
std::span<std::int64_t> append(std::vector<std::int64_t>& ids, const Piece& piece) {
  const std::size_t at = ids.size();
  ids.resize(at + static_cast<std::size_t>(piece.size()));
  const std::span<std::int64_t> added = std::span(ids).subspan(at);
  std::iota(added.begin(), added.end(), piece.begin);
  return added;
}

std::vector<std::int64_t> shuffle_py1s(std::vector<Node> nodes, NumpyRandom& random) {
  for (Node& node : nodes) random.shuffle(std::span(node));
  std::vector<std::int64_t> ids;
  for (const Node& node : nodes) {
    for (const Piece& piece : node) random.shuffle(append(ids, piece));
  }
  return ids;
}

std::vector<std::int64_t> shuffle_py2s(std::span<const std::int64_t> shard_sizes, std::int64_t num_samples,
                                       const ShuffleOptions& options, NumpyRandom& random) {
  std::vector<Piece> shards = shards_as_pieces(shard_sizes);
  NumpyRandom run_random(options.seed);
  run_random.shuffle(std::span(shards));
  std::vector<std::int64_t> fixed;  // the order of the whole run, in which pieces are now places
  std::vector<Piece> places;
  for (const Piece& shard : shards) {
    const auto begin = static_cast<std::int64_t>(fixed.size());
    run_random.shuffle(append(fixed, shard));
    places.push_back({begin, begin + shard.size()});
  }
  std::vector<std::int64_t> ids;
  for (Node& node : cut_into_nodes(places, num_samples, options.num_canonical_nodes)) {
    random.shuffle(std::span(node));
    for (const Piece& piece : node) {
      const auto first = ids.size();
      ids.insert(ids.end(), fixed.begin() + piece.begin, fixed.begin() + piece.end);
      random.shuffle(std::span(ids).subspan(first));
    }
  }
  return ids;
}

/// A block is 0.75 to 1.25 of its nominal size, so that nodes do not all fetch their next shards at once.
std::int64_t draw_block(std::int64_t block_size, NumpyRandom& random) {
  const auto nominal = static_cast<double>(block_size);
  return random.integers(static_cast<std::int64_t>(0.75 * nominal), static_cast<std::int64_t>(1.25 * nominal));
}

std::vector<std::int64_t> shuffle_py1br(std::vector<Node> nodes, std::int64_t block_size, NumpyRandom& random) {
  for (Node& node : nodes) random.shuffle(std::span(node));
  std::vector<std::int64_t> staggers;
  const auto stagger_end = static_cast<std::int64_t>(0.75 * static_cast<double>(block_size));
  for (std::size_t i = 0; i < nodes.size(); ++i) staggers.push_back(random.integers(0, stagger_end));
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto node_begin = static_cast<std::int64_t>(ids.size());
    for (const Piece& piece : nodes[i]) append(ids, piece);
    const auto node_end = static_cast<std::int64_t>(ids.size());
    std::vector<Piece> blocks;  // all sizes of a node are drawn before its first block is shuffled
    // Streaming starts every block `stagger` before the running end of the earlier ones, which the first block, cut at
    // the node's begin, shortens: later blocks therefore overlap their forerunner.
    for (std::int64_t reached = node_begin; reached < node_end;) {
      const std::int64_t size = draw_block(block_size, random);
      const Piece block = {std::max(reached - staggers[i], node_begin),
                           std::min(reached + size - staggers[i], node_end)};
      blocks.push_back(block);
      reached += block.size();
    }
    for (const Piece& block : blocks) {
      random.shuffle(
          std::span(ids).subspan(static_cast<std::size_t>(block.begin), static_cast<std::size_t>(block.size())));
    }
  }
  return ids;
}

/// Moves each sample of a canonical node by a uniform shift and sorts by the new position.
void expand(std::span<std::int64_t> ids, const Node& pieces, std::int64_t block_size, NumpyRandom& random) {
  const auto node_size = static_cast<double>(ids.size());
  std::vector<std::pair<double, std::int64_t>> placed;
  placed.reserve(ids.size());
  for (const Piece& piece : pieces) {
    const auto size = static_cast<double>(piece.size());
    const auto begin = static_cast<double>(placed.size());
    const double reach = std::max((static_cast<double>(draw_block(block_size, random)) - size) / 2, 0.0);
    const double low = std::max(-reach, -begin);
    const double high = std::min(reach, node_size - begin - size);
    for (std::int64_t i = 0; i < piece.size(); ++i) {
      const std::size_t at = placed.size();
      placed.emplace_back(static_cast<double>(at) + random.uniform(low, high), ids[at]);
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(placed.begin(), placed.end(), ids.begin(), [](const auto& sample) { return sample.second; });
}

std::vector<std::int64_t> shuffle_py1e(std::vector<Node> nodes, std::int64_t block_size, NumpyRandom& random) {
  for (Node& node : nodes) random.shuffle(std::span(node));
  std::vector<std::int64_t> ids;
  for (const Node& node : nodes) {
    const std::size_t node_begin = ids.size();
    for (const Piece& piece : node) random.shuffle(append(ids, piece));
    expand(std::span(ids).subspan(node_begin), node, block_size, random);
  }
  return ids;
}

void check(std::span<const std::int64_t> shard_sizes, std::int64_t num_samples, const ShuffleOptions& options) {
  if (std::any_of(shard_sizes.begin(), shard_sizes.end(), [](std::int64_t size) { return size < 0; })) {
    throw_error(Code::usage,
                "shuffle: found a shard of negative size, allowed is 0 or more; check the dataset's index.json");
  }
  if (options.num_canonical_nodes < 1 || options.num_canonical_nodes > num_samples) {
    throw_error(Code::usage,
                "shuffle: found num_canonical_nodes {} for {} samples, allowed is 1 to the number of samples; lower "
                "num_canonical_nodes or pack more data",
                options.num_canonical_nodes, num_samples);
  }
  if (options.epoch < 0) {
    throw_error(Code::usage, "shuffle: found epoch {}, allowed is 0 or more; count epochs from 0", options.epoch);
  }
  if (effective_block_size(options) < 2) {
    throw_error(
        Code::usage,
        "shuffle: found shuffle_block_size {}, allowed is 0 (the default size) or at least 2 samples; set it so",
        options.block_size);
  }
}

}  // namespace

std::int64_t effective_block_size(const ShuffleOptions& options) {
  if (options.block_size != 0) return options.block_size;
  return std::max<std::int64_t>(4'000'000 / std::max<std::int64_t>(options.num_canonical_nodes, 1), 1 << 18);
}

std::vector<std::int64_t> shuffle_samples(std::span<const std::int64_t> shard_sizes, const ShuffleOptions& options) {
  const std::int64_t num_samples = std::accumulate(shard_sizes.begin(), shard_sizes.end(), std::int64_t{0});
  check(shard_sizes, num_samples, options);
  const std::int64_t block_size = effective_block_size(options);
  NumpyRandom random(options.seed + static_cast<std::uint64_t>(options.epoch));
  switch (options.algorithm) {
    case ShuffleAlgorithm::naive:
      return random.permutation(num_samples);
    case ShuffleAlgorithm::py1s:
      return shuffle_py1s(deal_shards(shard_sizes, num_samples, options), random);
    case ShuffleAlgorithm::py2s:
      return shuffle_py2s(shard_sizes, num_samples, options, random);
    case ShuffleAlgorithm::py1br:
      return shuffle_py1br(deal_shards(shard_sizes, num_samples, options), block_size, random);
    case ShuffleAlgorithm::py1e:
      return shuffle_py1e(deal_shards(shard_sizes, num_samples, options), block_size, random);
  }
  throw_error(Code::usage, "shuffle: found algorithm number {}, allowed are those of ShuffleAlgorithm; use one of them",
              static_cast<int>(options.algorithm));
}

}  // namespace wt
