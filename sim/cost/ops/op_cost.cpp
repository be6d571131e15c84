#include "sim/cost/ops/op_cost.hpp"

namespace wt {

std::string to_string(Lookup lookup) {
  static const char* names[] = {"exact", "staircase", "fitted", "roofline"};
  return names[static_cast<int>(lookup)];
}

EvidenceShares TimeEstimate::shares() const {
  double sum = 0;
  for (double part : by_evidence) sum += part;
  if (!(sum > 0)) return only(evidence);
  EvidenceShares out = by_evidence;
  for (double& part : out) part /= sum;
  return out;
}

TimeEstimate& TimeEstimate::operator*=(double factor) {
  seconds *= factor;
  low_s *= factor;
  high_s *= factor;
  for (double& part : by_evidence) part *= factor;
  return *this;
}

TimeEstimate& TimeEstimate::operator+=(const TimeEstimate& other) {
  const EvidenceShares theirs = other.shares(), own = shares();
  for (std::size_t i = 0; i < by_evidence.size(); ++i) by_evidence[i] = own[i] * seconds + theirs[i] * other.seconds;
  seconds += other.seconds;
  low_s += other.low_s;
  high_s += other.high_s;
  return *this;
}

double Clock::factor(const WorkItem& item, double rows) const {
  const bool multiplies =
      item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm || item.kernel == Kernel::attention;
  const double judged = speed > 1 ? 1e9 : rows;
  return multiplies && item.flops(judged) > kComputeBoundIntensity * item.bytes(judged) ? 1 / speed : 1;
}

CommunicationSlowdown published_slowdown() {
  return {0.189 / 1.189, 16.0 / 132, 0.4 / 1.4, Evidence::published,
          "arXiv 2507.03114: beside communication computation takes 18.9 % longer in the mean, 40 % at most (training "
          "steps on 4 A100, H100, MI250, MI210); github.com/NVIDIA/nccl/issues/689: 16 multiprocessors of their own "
          "with 8 NICs"};
}

double MachineTraits::crowding_of(std::int64_t ranks) const {
  std::int64_t below = 1;
  double ratio = 1;
  for (const auto& [measured, value] : crowding) {
    if (measured > ranks)
      return ratio + (value - ratio) * static_cast<double>(ranks - below) / static_cast<double>(measured - below);
    below = measured, ratio = value;
  }
  return ratio;
}

}  // namespace wt
