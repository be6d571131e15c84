#include "bench/suites/collective_case.hpp"

#include <algorithm>
#include <numeric>

#include "bench/suites/problems.hpp"
#include "configs/base/error.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

constexpr std::int64_t kPeriod = 7, kChunk = kPeriod << 18;  // 7 MiB of fp32

/// `count` elements of `segment`, from element `at` on.
Tensor values_of(const Segment& segment, std::int64_t at, std::int64_t count, at::Device device) {
  static const Tensor pattern = at::arange(kChunk + kPeriod, at::TensorOptions().dtype(at::kFloat)).remainder_(kPeriod);
  const Tensor part = pattern.narrow(0, (segment.source + at) % kPeriod, count).to(device);
  return part * segment.scale + segment.shift;
}

template <typename Each>
void in_chunks(const Segment& segment, Each&& each) {
  for (std::int64_t at = 0; at < segment.count; at += kChunk) each(at, std::min(kChunk, segment.count - at));
}

/// The axis of an op's group. Sums over the shard ranks have their own communicator, and exchanges their own axis.
Axis group_axis(CollectiveKind kind, Axis axis) {
  if (axis != Axis::shard) return axis;
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return Axis::shard;
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
      return Axis::state;
    default:
      return Axis::expert;
  }
}

}  // namespace

std::string to_string(CollectiveKind kind) {
  static const char* names[] = {"all_gather", "reduce_scatter",    "all_reduce", "all_to_all",
                                "broadcast",  "all_to_all_uneven", "send_recv"};
  return names[static_cast<int>(kind)];
}

double bus_factor(CollectiveKind kind, std::int64_t ranks) {
  const double n = static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::send_recv:
    case CollectiveKind::broadcast:
      return 1;
    default:
      return (n - 1) / n;
  }
}

bool has_group(CollectiveKind kind, Axis axis) {
  return axis == Axis::shard || kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
}

void fill(const Tensor& buffer, const std::vector<Segment>& segments) {
  for (const Segment& s : segments)
    in_chunks(s, [&](std::int64_t at, std::int64_t count) {
      buffer.narrow(0, s.begin + at, count).copy_(values_of(s, at, count, buffer.device()));
    });
}

std::int64_t first_wrong(const Tensor& buffer, const std::vector<Segment>& segments) {
  std::int64_t found = -1;
  for (const Segment& s : segments)
    in_chunks(s, [&](std::int64_t at, std::int64_t count) {
      if (found >= 0) return;
      const Tensor got = buffer.narrow(0, s.begin + at, count), want = values_of(s, at, count, buffer.device());
      if (!at::equal(got, want)) found = s.begin + at + got.ne(want).to(at::kByte).argmax().item<std::int64_t>();
    });
  return found;
}

CollectiveCase::CollectiveCase(Communicators& communicators, const Mesh& mesh, Axis axis, CollectiveKind kind,
                               std::int64_t bytes, std::uint64_t seed, at::Device device)
    : communicators_(communicators),
      axis_(axis),
      kind_(kind),
      device_(device),
      ranks_(mesh.size(axis)),
      own_(mesh.coordinate(axis, communicators.rank())),
      part_(std::max<std::int64_t>(1, bytes / 4 / ranks_)),
      shares_(static_cast<std::size_t>(ranks_), part_) {
  if (kind == CollectiveKind::all_to_all_uneven) shares_ = skewed_rows(part_ * ranks_, ranks_, seed);
}

void CollectiveCase::prepare() {
  const std::int64_t full = part_ * ranks_;
  const auto empty = [this](std::int64_t count) {
    return at::zeros({count}, at::TensorOptions().dtype(at::kFloat).device(device_));
  };
  const double shift = static_cast<double>(own_ + 1);
  switch (kind_) {
    case CollectiveKind::all_gather:  // in place, as the trainer gathers
      out_ = empty(full);
      in_ = out_.narrow(0, own_ * part_, part_);
      break;
    case CollectiveKind::reduce_scatter:
      in_ = empty(full), out_ = empty(part_);
      break;
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
      in_ = out_ = empty(full);
      break;
    case CollectiveKind::all_to_all_uneven:
      in_ = empty(full), out_ = empty(ranks_ * share_of(own_));
      break;
    default:
      in_ = empty(full), out_ = empty(full);
  }
  fill(in_, {{0, in_.numel(), 0, 1, shift}});
}

Pending CollectiveCase::issue() {
  const Axis axis = group_axis(kind_, axis_);
  switch (kind_) {
    case CollectiveKind::all_gather:
      return communicators_.all_gather(axis, out_, in_);
    case CollectiveKind::reduce_scatter:
      return communicators_.reduce_scatter(axis, out_, in_);
    case CollectiveKind::all_reduce:
      return communicators_.all_reduce(axis, out_);
    case CollectiveKind::broadcast:
      return communicators_.broadcast(axis, out_);
    case CollectiveKind::send_recv: {  // to the next rank and from the previous one: an exchange whose rows all go to
                                       // one rank
      std::vector<std::int64_t> sent(shares_.size(), 0), received = sent;
      sent[static_cast<std::size_t>((own_ + 1) % ranks_)] =
          received[static_cast<std::size_t>((own_ + ranks_ - 1) % ranks_)] = part_ * ranks_;
      return communicators_.all_to_all(axis, out_, in_, received, sent);
    }
    default:
      return communicators_.all_to_all(axis, out_, in_, std::vector<std::int64_t>(shares_.size(), share_of(own_)),
                                       shares_);
  }
}

std::vector<Segment> CollectiveCase::expected() const {
  const std::int64_t full = part_ * ranks_;
  const double n = static_cast<double>(ranks_), sum = n * (n + 1) / 2;
  switch (kind_) {
    case CollectiveKind::all_reduce:
      return {{0, full, 0, n, sum}};
    case CollectiveKind::reduce_scatter:
      return {{0, part_, own_ * part_, n, sum}};
    case CollectiveKind::broadcast:
      return {{0, full, 0, 1, 1}};
    case CollectiveKind::send_recv:
      return {{0, full, 0, 1, static_cast<double>((own_ + ranks_ - 1) % ranks_ + 1)}};
    default:
      break;
  }
  const bool gather = kind_ == CollectiveKind::all_gather;
  const std::int64_t count = gather ? part_ : share_of(own_);
  const std::int64_t source = gather ? 0 : std::accumulate(shares_.begin(), shares_.begin() + own_, std::int64_t{0});
  std::vector<Segment> out;
  for (std::int64_t r = 0; r < ranks_; ++r) out.push_back({r * count, count, source, 1, static_cast<double>(r + 1)});
  return out;
}

std::string CollectiveCase::wrong() const {
  const std::vector<Segment> want = expected();
  const std::int64_t at = first_wrong(out_, want);
  if (at < 0) return "";
  const auto segment = std::ranges::find_if(want, [at](const Segment& s) { return at < s.begin + s.count; });
  return fmt::format(
      "rank {}: {} of {} bytes over {} ranks gave {} at element {}, expected {}; times of it are worth nothing",
      communicators_.rank(), to_string(kind_), bytes(), ranks_, out_[at].item<double>(), at,
      values_of(*segment, at - segment->begin, 1, at::kCPU).item<double>());
}

}  // namespace wt
