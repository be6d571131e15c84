#include "configs/files/memory_facts.hpp"

#include <algorithm>
#include <bit>

namespace wt {

std::int64_t loss_piece_tokens(std::int64_t chunks, std::int64_t tokens, std::int64_t vocab, std::int64_t width) {
  const auto over = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  if (chunks != kLigerChunks) return over(tokens, std::min(chunks, std::max<std::int64_t>(1, tokens)));
  const std::int64_t rows = over(tokens, over(vocab, width));
  return std::min(tokens, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows))));
}

}  // namespace wt
