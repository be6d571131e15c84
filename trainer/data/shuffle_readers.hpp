// Readers of the shuffle algorithms, for read_nodes. Each has its own source file.
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

/// A block has 0.75 to 1.25 of its nominal size, so that nodes do not all fetch their next shards at once.
std::int64_t draw_block(std::int64_t block_size, NumpyRandom& random);
/// Seeded by seed + epoch, for the order inside a canonical node.
NumpyRandom epoch_random(const ShuffleOptions& options);
/// Assigns the run's shards to nodes by `seed`, and shuffles each node's pieces by `epoch`.
std::vector<NodePieces> deal_and_shuffle(const Units& units, const ShuffleOptions& options, NumpyRandom& epoch);

}  // namespace wt
