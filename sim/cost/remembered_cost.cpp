#include "sim/cost/remembered_cost.hpp"

#include <algorithm>
#include <bit>

namespace wt {
namespace {

/// FNV-1a over words, as in the replay's digest.
class Hash {
 public:
  Hash& operator<<(std::uint64_t word) {
    value_ = (value_ ^ word) * 1099511628211ull;
    return *this;
  }
  Hash& operator<<(double value) { return *this << std::bit_cast<std::uint64_t>(value); }
  Hash& operator<<(std::int64_t value) { return *this << static_cast<std::uint64_t>(value); }
  /// The product moves bits upwards only; tables look at the low ones.
  std::uint64_t value() const { return value_ ^ (value_ >> 32); }

 private:
  std::uint64_t value_ = 14695981039346656037ull;
};

std::int64_t packed(int a, int b, int c) { return (a * 256 + b) * 256 + c; }

}  // namespace

Price RememberedCost::segment(const Op& op, const BoundRows& rows, Clock clock) const {
  Hash hash;
  hash << packed(static_cast<int>(op.action), static_cast<int>(op.direction), static_cast<int>(op.group)) << rows.sum
       << clock.speed;
  for (const double each : rows.by_expert) hash << each;
  for (const WorkItem& w : op.work) {  // one sum of products: they do not wait for each other
    const auto word = [](std::int64_t value, std::uint64_t factor) {
      return static_cast<std::uint64_t>(value) * factor;
    };
    hash << (word(packed(static_cast<int>(w.kernel), static_cast<int>(w.pass), static_cast<int>(w.precision)),
                  0x9e3779b97f4a7c15) +
             word(std::bit_cast<std::int64_t>(w.rows.fixed), 0xc2b2ae3d27d4eb4f) +
             word(std::bit_cast<std::int64_t>(w.rows.per_row), 0x165667b19e3779f9) +
             word(w.dims[0], 0xff51afd7ed558ccd) + word(w.dims[1], 0xc4ceb9fe1a85ec53) +
             word(w.dims[2], 0x87c37b91114253d5) + word(w.dims[3], 0x4cf5ad432745937f));
  }
  const auto [first, last] = segments_.equal_range(hash.value());
  for (auto it = first; it != last; ++it) {
    const Segment& s = it->second;
    if (s.action == op.action && s.direction == op.direction && s.group == op.group && s.rows == rows.sum &&
        s.clock == clock.speed && std::ranges::equal(s.by_expert, rows.by_expert) && s.work == op.work)
      return s.price;
  }
  return segments_
      .emplace(hash.value(), Segment{op.action,
                                     op.direction,
                                     op.group,
                                     op.work,
                                     rows.sum,
                                     clock.speed,
                                     {rows.by_expert.begin(), rows.by_expert.end()},
                                     cost_.segment(op, rows, clock)})
      ->second.price;
}

CollectivePrice RememberedCost::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  Hash hash;
  hash << static_cast<std::int64_t>(kind) << bytes << ranks << nodes;
  const auto [first, last] = transfers_.equal_range(hash.value());
  for (auto it = first; it != last; ++it) {
    const Transfer& t = it->second;
    if (t.kind == kind && t.bytes == bytes && t.ranks == ranks && t.nodes == nodes) return t.price;
  }
  return transfers_
      .emplace(hash.value(), Transfer{kind, bytes, ranks, nodes, cost_.collective(kind, bytes, ranks, nodes)})
      ->second.price;
}

}  // namespace wt
