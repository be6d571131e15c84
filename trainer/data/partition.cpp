#include "trainer/data/partition.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"

namespace wt {
namespace {

void check(const PartitionShape& shape, std::int64_t drop_first) {
  const std::int64_t least = std::min({shape.num_samples, shape.canonical_nodes, shape.physical_nodes,
                                       shape.ranks_per_node, shape.workers_per_rank, shape.batch_size});
  if (least < 1) {
    throw_error(Code::usage,
                "partition: found the count {}, allowed are counts of at least 1; check samples, nodes, ranks, "
                "workers and batch size",
                least);
  }
  if (drop_first < 0 || drop_first >= shape.num_samples) {
    throw_error(Code::usage,
                "partition: found {} samples already seen of {}, allowed is less than all; start the next epoch",
                drop_first, shape.num_samples);
  }
}

bool divide(std::int64_t a, std::int64_t b) { return std::max(a, b) % std::min(a, b) == 0; }

/// Columns of the canonical rows. Each row is padded to `padded` with samples from its end, from `stride` places
/// earlier each, so that a physical node does not read the same sample twice in succession (as in Streaming).
std::vector<std::int64_t> padded_columns(const PartitionShape& shape, std::int64_t row_size, std::int64_t padding,
                                         std::int64_t stride) {
  const std::int64_t padded = row_size + padding;
  const std::int64_t source = padded - 2 * padding - stride + 1;  // first column of the repeated samples
  if (source < 0) {
    throw_error(
        Code::usage,
        "partition: found {} samples for {} canonical and {} physical nodes, allowed are rows of at least {} samples; "
        "use fewer nodes",
        shape.num_samples, shape.canonical_nodes, shape.physical_nodes, padding + stride - 1);
  }
  std::vector<std::int64_t> columns;
  columns.reserve(static_cast<std::size_t>(padded * shape.canonical_nodes));
  for (std::int64_t column = 0; column < padded; ++column) {
    const std::int64_t read = column < row_size ? column : source + (column - row_size);
    for (std::int64_t row = 0; row < shape.canonical_nodes; ++row) {
      const std::int64_t begin = row * shape.num_samples / shape.canonical_nodes;
      const std::int64_t size = (row + 1) * shape.num_samples / shape.canonical_nodes - begin;
      columns.push_back(begin + std::min(read, size - 1));
    }
  }
  return columns;
}

/// The canonical nodes column by column; shorter ones repeat their last id.
std::vector<std::int64_t> canonical_columns(const PartitionShape& shape) {
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(shape.num_samples + shape.canonical_nodes));
  for (std::int64_t column = 0; column < ceil_div(shape.num_samples, shape.canonical_nodes); ++column) {
    for (std::int64_t row = 0; row < shape.canonical_nodes; ++row) {
      const std::int64_t begin = row * shape.num_samples / shape.canonical_nodes;
      const std::int64_t size = (row + 1) * shape.num_samples / shape.canonical_nodes - begin;
      order.push_back(begin + std::min(column, size - 1));
    }
  }
  return order;
}

std::vector<std::int64_t> global_sequence(const PartitionShape& shape) {
  const std::int64_t row_size = ceil_div(shape.num_samples, shape.canonical_nodes);
  const std::int64_t ratio =
      shape.physical_nodes > shape.canonical_nodes ? shape.physical_nodes / shape.canonical_nodes : 1;
  const std::int64_t padding = (ratio - row_size % ratio) % ratio;
  if (shape.num_samples > shape.canonical_nodes) {
    if (padding > 0) return padded_columns(shape, row_size, padding, ratio);
    return canonical_columns(shape);
  }
  // Too few samples for each row: they repeat cyclically, row after row.
  const std::int64_t padded = row_size + padding;
  std::vector<std::int64_t> columns;
  for (std::int64_t column = 0; column < padded; ++column) {
    for (std::int64_t row = 0; row < shape.canonical_nodes; ++row) {
      columns.push_back((row * padded + column) % shape.num_samples);
    }
  }
  return columns;
}

/// Pads a node's samples to a multiple of its ranks with its own last ones (or all of them, if they are too few).
void pad_for_ranks(std::vector<std::int64_t>& ids, std::int64_t ranks) {
  const auto size = static_cast<std::int64_t>(ids.size());
  const std::int64_t missing = (ranks - size % ranks) % ranks;
  const bool enough = ranks + missing - 1 <= size;
  for (std::int64_t i = 0; i < missing; ++i) {
    const std::int64_t source = enough ? size - ranks - missing + 1 + i : i % size;
    ids.push_back(ids[static_cast<std::size_t>(source)]);
  }
}

}  // namespace

std::int64_t Partition::at(std::int64_t node, std::int64_t rank, std::int64_t worker, std::int64_t batch,
                           std::int64_t sample) const {
  const std::int64_t row = (node * shape.ranks_per_node + rank) * shape.workers_per_rank + worker;
  return ids.at(static_cast<std::size_t>((row * batches_per_worker + batch) * shape.batch_size + sample));
}

Partition partition_orig(const PartitionShape& shape, std::int64_t drop_first) {
  check(shape, drop_first);
  if (!divide(shape.canonical_nodes, shape.physical_nodes)) {
    throw_error(Code::usage,
                "partition: found {} canonical and {} physical nodes, allowed is that one divides the other; "
                "change num_canonical_nodes or use the relaxed partition",
                shape.canonical_nodes, shape.physical_nodes);
  }
  const std::vector<std::int64_t> sequence = global_sequence(shape);
  const std::int64_t nodes = shape.physical_nodes;
  const std::int64_t ranks = shape.ranks_per_node;
  const std::int64_t turn = shape.workers_per_rank * shape.batch_size;  // one batch of every worker of a rank
  Partition result{shape, 0, {}};
  for (std::int64_t node = 0; node < nodes; ++node) {
    std::vector<std::int64_t> mine;
    for (std::int64_t i = drop_first - drop_first % nodes + node; i < static_cast<std::int64_t>(sequence.size());
         i += nodes) {
      mine.push_back(sequence[static_cast<std::size_t>(i)]);
    }
    pad_for_ranks(mine, ranks);
    const std::int64_t per_rank = static_cast<std::int64_t>(mine.size()) / ranks;
    result.batches_per_worker = ceil_div(per_rank, turn);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      for (std::int64_t worker = 0; worker < shape.workers_per_rank; ++worker) {
        for (std::int64_t i = 0; i < result.batches_per_worker * shape.batch_size; ++i) {
          const std::int64_t place = i / shape.batch_size * turn + worker * shape.batch_size + i % shape.batch_size;
          result.ids.push_back(place < per_rank ? mine[static_cast<std::size_t>(place * ranks + rank)] : -1);
        }
      }
    }
  }
  return result;
}

Partition partition_relaxed(const PartitionShape& shape, std::int64_t drop_first,
                            std::optional<std::int64_t> initial_physical_nodes) {
  check(shape, drop_first);
  if (!initial_physical_nodes || divide(shape.canonical_nodes, shape.physical_nodes))
    return partition_orig(shape, drop_first);
  const std::int64_t global_batch = shape.physical_nodes * shape.ranks_per_node * shape.batch_size;
  const std::int64_t initial_ranks = *initial_physical_nodes * shape.ranks_per_node;
  if (initial_ranks < 1 || global_batch % initial_ranks != 0) {
    throw_error(Code::usage,
                "partition: found a global batch of {} samples over {} initial ranks, allowed is a batch that they "
                "divide; keep the global batch of the run's start",
                global_batch, initial_ranks);
  }
  PartitionShape first = shape;
  first.physical_nodes = *initial_physical_nodes;
  first.batch_size = global_batch / initial_ranks;
  const Partition before = partition_orig(first, drop_first);
  Partition result{shape, before.batches_per_worker, {}};
  result.ids.reserve(before.ids.size());
  const std::int64_t ranks = shape.ranks_per_node;
  for (std::int64_t rank = 0; rank < shape.physical_nodes * ranks; ++rank) {
    for (std::int64_t worker = 0; worker < shape.workers_per_rank; ++worker) {
      for (std::int64_t batch = 0; batch < before.batches_per_worker; ++batch) {
        for (std::int64_t sample = 0; sample < shape.batch_size; ++sample) {
          const std::int64_t place = rank * shape.batch_size + sample;  // in the global batch
          const std::int64_t old_rank = place / first.batch_size;
          result.ids.push_back(before.at(old_rank / ranks, old_rank % ranks, worker, batch, place % first.batch_size));
        }
      }
    }
  }
  return result;
}

}  // namespace wt
