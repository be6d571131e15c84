#include "trainer/parameters/plausible_weights.hpp"

#include <algorithm>
#include <random>

#include "trainer/pch.hpp"

namespace wt {
namespace {

/// A prime near 2^16, so that no width repeats the same values in every row.
constexpr std::size_t kTable = 65521;

}  // namespace

PlausibleWeights::PlausibleWeights(std::uint64_t seed) : normal_(kTable) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (float& value : normal_) value = normal(generator);
}

void PlausibleWeights::fill(at::Tensor& full, std::int64_t begin, std::int64_t end, double std) {
  if (begin >= end) return;
  if (std <= 0) {  // gains
    full.narrow(0, begin, end - begin).fill_(1.0);
    return;
  }
  std::int64_t filled = std::min(end - begin, static_cast<std::int64_t>(kTable));
  full.narrow(0, begin, filled).copy_(at::from_blob(normal_.data(), {filled}, at::kFloat)).mul_(std);
  while (filled < end - begin) {  // copies whole tables, so that the period is kept
    const std::int64_t n = std::min(end - begin - filled, filled);
    full.narrow(0, begin + filled, n).copy_(full.narrow(0, begin, n));
    filled += n;
  }
}

void PlausibleWeights::fill(at::Tensor& full, const GroupLayout& layout) {
  const at::NoGradGuard no_grad;
  const std::int64_t own_begin = layout.shard_index * layout.shard_elements,
                     own_end = own_begin + layout.shard_elements;
  for (const ParameterInfo& p : layout.parameters) {
    const std::int64_t begin = p.offset, end = p.offset + p.elements();
    fill(full, begin, std::min(end, own_begin), p.init_std);
    fill(full, std::max(begin, own_end), end, p.init_std);
  }
  const std::int64_t padding = std::max(layout.elements, own_end);
  if (padding < layout.padded()) full.narrow(0, padding, layout.padded() - padding).zero_();
}

}  // namespace wt
