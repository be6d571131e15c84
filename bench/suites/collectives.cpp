// One collective after another over the trainer's own groups.
#include <algorithm>

#include "bench/suites/rank_suite.hpp"
#include "configs/spec/error.hpp"
#include "trainer/clocks.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

constexpr OpKind kKinds[] = {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce, OpKind::all_to_all};

/// A collective of one kind and size with its own buffers. Values are small whole numbers, so that sums are exact:
/// element i of what rank r gives is r + i % 7 + 1. `pattern` is i % 7, at least as long as the buffer.
class CollectiveCase {
 public:
  CollectiveCase(Communicators& communicators, std::int64_t world, OpKind kind, std::int64_t bytes, Tensor pattern)
      : communicators_(communicators),
        world_(world),
        kind_(kind),
        part_(bytes / 4 / world),
        bytes_(part_ * world * 4),
        pattern_(std::move(pattern)) {}

  OpKind kind() const { return kind_; }
  std::int64_t bytes() const { return bytes_; }

  void prepare() {
    const std::int64_t rank = communicators_.rank(), full = part_ * world_;
    const auto given = [this](std::int64_t of_rank, std::int64_t count) {
      return pattern_.narrow(0, 0, count) + static_cast<double>(of_rank + 1);
    };
    switch (kind_) {
      case OpKind::all_gather:
        out_ = at::zeros({full}, at::kFloat);
        in_ = out_.narrow(0, rank * part_, part_);
        in_.copy_(given(rank, part_));
        break;
      case OpKind::reduce_scatter:
        in_ = given(rank, full);
        out_ = at::zeros({part_}, at::kFloat);
        break;
      case OpKind::all_reduce:
        out_ = given(rank, full);
        break;
      default:
        in_ = given(rank, full);
        out_ = at::zeros({full}, at::kFloat);
    }
  }

  Pending issue() {
    switch (kind_) {
      case OpKind::all_gather:
        return communicators_.all_gather(Axis::shard, out_, in_);
      case OpKind::reduce_scatter:
        return communicators_.reduce_scatter(Axis::shard, out_, in_);
      case OpKind::all_reduce:
        return communicators_.all_reduce(Axis::state, out_);
      default: {
        const std::vector<std::int64_t> split(static_cast<std::size_t>(world_), part_);
        return communicators_.all_to_all(Axis::expert, out_, in_, split, split);
      }
    }
  }

  /// Throws Error{runtime} unless every element is what the definition says.
  void check() const {
    const double w = static_cast<double>(world_), rank_sum = w * (w + 1) / 2;
    const Tensor within = pattern_.narrow(0, 0, part_ * world_);
    const std::int64_t begin = communicators_.rank() * part_;
    Tensor want;
    if (kind_ == OpKind::all_reduce) {
      want = within * w + rank_sum;
    } else if (kind_ == OpKind::reduce_scatter) {
      want = within.narrow(0, begin, part_) * w + rank_sum;
    } else {  // by source rank: its own start of the pattern, or the slice meant for this rank
      const Tensor slice = within.narrow(0, kind_ == OpKind::all_gather ? 0 : begin, part_);
      std::vector<Tensor> parts;
      for (std::int64_t r = 0; r < world_; ++r) parts.push_back(slice + static_cast<double>(r + 1));
      want = at::cat(parts);
    }
    if (!at::equal(out_, want))
      throw_error(Code::runtime,
                  "rank {}: {} of {} bytes over {} ranks gave wrong values (first {}, expected {}); times of it are "
                  "worth nothing",
                  communicators_.rank(), to_string(kind_), bytes_, world_, out_[0].item<double>(),
                  want[0].item<double>());
  }

  void release() { in_ = out_ = Tensor(); }

 private:
  Communicators& communicators_;
  std::int64_t world_;
  OpKind kind_;
  std::int64_t part_, bytes_;
  Tensor pattern_, in_, out_;
};

}  // namespace

std::vector<std::int64_t> collective_sizes(bool quick) {
  std::vector<std::int64_t> out;
  for (std::int64_t bytes = 4096; bytes <= 16 << 20; bytes *= quick ? 8 : 2) out.push_back(bytes);
  return out;
}

std::vector<Measurement> bench_collectives(Communicators& communicators, std::int64_t world,
                                           const RankSuiteOptions& options) {
  std::vector<CollectiveCase> cases;
  const std::int64_t largest = *std::max_element(options.bytes.begin(), options.bytes.end());
  const Tensor pattern = at::arange(largest / 4, at::TensorOptions().dtype(at::kFloat)).remainder_(7);
  for (OpKind kind : kKinds)
    for (std::int64_t bytes : options.bytes) cases.emplace_back(communicators, world, kind, bytes, pattern);
  const auto take = [&](CollectiveCase& c) {
    c.prepare();
    communicators.barrier();
    const Clocks begin = Clocks::now();
    c.issue()->wait();
    const Clocks end = Clocks::now();
    c.check();
    c.release();
    return RankSample{end.wall_s - begin.wall_s, end.process_cpu_s - begin.process_cpu_s,
                      end.thread_cpu_s - begin.thread_cpu_s};
  };
  for (CollectiveCase& c : cases) take(c);  // connections and buffers of every kind are there before time counts
  std::vector<std::vector<RankSample>> own(cases.size());
  for (std::size_t i : sample_order(cases.size(), options.samples, options.seed)) own[i].push_back(take(cases[i]));

  const auto all = gather_samples(communicators, world, "collectives", own);
  std::vector<Measurement> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    out.push_back(rank_measurement(to_string(cases[i].kind()), cases[i].bytes(), world, all[i]));
    out.back().shape["nodes"] = 1;
  }
  return out;
}

}  // namespace wt
