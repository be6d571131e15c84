// A collective of one kind, size and mesh axis, with its buffers and its expected result. Sizes and bandwidths are
// defined as in nccl-tests (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md).
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "sim/program/mesh.hpp"
#include "trainer/communication/communicator.hpp"

namespace wt {

enum class CollectiveKind {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  broadcast,
  all_to_all_uneven,
  send_recv
};
constexpr CollectiveKind kCollectiveKinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                               CollectiveKind::all_reduce, CollectiveKind::all_to_all,
                                               CollectiveKind::broadcast,  CollectiveKind::all_to_all_uneven,
                                               CollectiveKind::send_recv};
/// "all_gather"; also the kernel name of its measurements.
std::string to_string(CollectiveKind kind);

/// Bus bandwidth over algorithm bandwidth: 2 (n-1)/n all-reduce, (n-1)/n all-gather, reduce-scatter and both
/// all-to-alls, 1 broadcast and send/receive.
double bus_factor(CollectiveKind kind, std::int64_t ranks);

/// Whether the suites' meshes have groups for this kind on an axis: `shard` (neighbours) or `replicate` (a shard
/// apart).
bool has_group(CollectiveKind kind, Axis axis);

/// Expected elements of a buffer from `begin` on: element i is scale * ((source + i) % 7) + shift. Whole numbers below
/// 2^24, so that fp32 sums are exact.
struct Segment {
  std::int64_t begin = 0, count = 0, source = 0;
  double scale = 1, shift = 0;
};
/// Works piece by piece, so that large buffers need no second copy.
void fill(const at::Tensor& buffer, const std::vector<Segment>& segments);
/// Index of the first element that differs from the segments; -1 where none does.
std::int64_t first_wrong(const at::Tensor& buffer, const std::vector<Segment>& segments);

class CollectiveCase {
 public:
  /// `bytes` are rounded down to whole elements per rank. For gathers and scatters they are the buffer with all ranks'
  /// parts, otherwise what a rank sends. An uneven exchange gives ranks shares with the skew of recorded routing
  /// (skewed_rows); `seed` determines which shares are large.
  CollectiveCase(Communicators& communicators, const Mesh& mesh, Axis axis, CollectiveKind kind, std::int64_t bytes,
                 std::uint64_t seed, at::Device device);

  CollectiveKind kind() const { return kind_; }
  Axis axis() const { return axis_; }
  std::int64_t ranks() const { return ranks_; }
  std::int64_t bytes() const { return part_ * ranks_ * 4; }

  void prepare();
  Pending issue();
  /// "" where every element is as expected; otherwise what was found.
  std::string wrong() const;
  void release() { in_ = out_ = at::Tensor(); }

 private:
  std::int64_t share_of(std::int64_t coordinate) const { return shares_[static_cast<std::size_t>(coordinate)]; }
  std::vector<Segment> expected() const;

  Communicators& communicators_;
  Axis axis_;
  CollectiveKind kind_;
  at::Device device_;
  std::int64_t ranks_, own_;          ///< of the group; this rank's coordinate in it
  std::int64_t part_;                 ///< elements
  std::vector<std::int64_t> shares_;  ///< elements that a rank sends to each other rank
  at::Tensor in_, out_;
};

}  // namespace wt
