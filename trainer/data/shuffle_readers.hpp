// Readers of single shuffles, for read_nodes; each file next to this one has one of them.
#pragma once
#include <memory>
#include <vector>

#include "trainer/data/node_reader.hpp"
#include "trainer/data/unit_pieces.hpp"

namespace wt {

using NodeReaders = std::vector<std::unique_ptr<NodeReader>>;
using Units = std::shared_ptr<const EpochUnits>;

/// No shuffle.
NodeReaders read_in_order(const Units& units, const ShuffleOptions& options);
NodeReaders read_py1s(const Units& units, const ShuffleOptions& options);
NodeReaders read_py2s(const Units& units, const ShuffleOptions& options);
NodeReaders read_py1br(const Units& units, const ShuffleOptions& options);
NodeReaders read_py1e(const Units& units, const ShuffleOptions& options);
NodeReaders read_naive(const Units& units, const ShuffleOptions& options);

/// A block is 0.75 to 1.25 of its nominal size, so that nodes do not all fetch their next shards at once.
std::int64_t draw_block(std::int64_t block_size, NumpyRandom& random);
/// seed + epoch: what happens inside a canonical node.
NumpyRandom epoch_random(const ShuffleOptions& options);
/// The shards of the run dealt to nodes by seed, and each node's pieces shuffled by `epoch`.
std::vector<NodePieces> deal_and_shuffle(const Units& units, const ShuffleOptions& options, NumpyRandom& epoch);

}  // namespace wt
