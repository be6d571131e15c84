#include "sim/cost/ops/remembered_cost.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "configs/base/hash.hpp"

namespace wt {
namespace {

std::int64_t packed(int a, int b, int c) { return (a * 256 + b) * 256 + c; }
std::int64_t bits(double value) { return std::bit_cast<std::int64_t>(value); }

template <std::size_t n>
std::uint64_t hash_of(const std::array<std::int64_t, n>& words, std::uint64_t seed = 0) {
  return wt::hash_of(std::span(words), seed);
}

std::uint64_t hash_of(const WorkItem& w) {
  return hash_of(std::array{packed(static_cast<int>(w.kernel), static_cast<int>(w.pass), static_cast<int>(w.precision)),
                            bits(w.rows.fixed), bits(w.rows.per_row), w.dims[0], w.dims[1], w.dims[2], w.dims[3],
                            2 * w.window + (w.of_weight ? 1 : 0)});
}

std::uint64_t hash_of(const Op& op, const BoundRows& rows, Clock clock) {
  std::uint64_t work = 0;
  for (const WorkItem& w : op.work) work += hash_of(w);  // a sum, so that the CPU hashes items in parallel
  return hash_of(
      std::array{packed(static_cast<int>(op.action), static_cast<int>(op.direction), static_cast<int>(op.group)),
                 bits(rows.sum), bits(clock.speed), static_cast<std::int64_t>(work)},
      rows.by_expert.empty() ? 0 : wt::hash_of(rows.by_expert));
}

}  // namespace

TimeEstimate RememberedCost::segment(const Op& op, const BoundRows& rows, Clock clock) const {
  const std::uint64_t hash = hash_of(op, rows, clock);
  const auto [first, last] = segments_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Segment& s = it->second;
    if (s.action == op.action && s.direction == op.direction && s.group == op.group && s.rows == rows.sum &&
        s.clock == clock.speed && std::ranges::equal(s.by_expert, rows.by_expert) && s.work == op.work)
      return s.estimate;
  }
  return segments_
      .emplace(hash, Segment{op.action,
                             op.direction,
                             op.group,
                             op.work,
                             rows.sum,
                             clock.speed,
                             {rows.by_expert.begin(), rows.by_expert.end()},
                             wrapped().segment(op, rows, clock)})
      ->second.estimate;
}

CollectiveEstimate RememberedCost::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  const std::uint64_t hash = hash_of(std::array{static_cast<std::int64_t>(kind), bits(bytes), ranks, nodes});
  const auto [first, last] = transfers_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Transfer& t = it->second;
    if (t.kind == kind && t.bytes == bytes && t.ranks == ranks && t.nodes == nodes) return t.estimate;
  }
  return transfers_.emplace(hash, Transfer{kind, bytes, ranks, nodes, wrapped().collective(kind, bytes, ranks, nodes)})
      ->second.estimate;
}

}  // namespace wt
