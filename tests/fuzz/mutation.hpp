// Inputs that nobody would write, made from ones that somebody did: bits and bytes, numbers at their limits, lines and
// words exchanged, texts spliced, lists in lists a thousand levels deep. The same seed gives the same inputs
// everywhere.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wt::fuzz {

/// SplitMix64 (Steele, Lea, Flood 2014).
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// From 0 to n - 1; 0 for n = 0.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t state_;
};

/// No input is longer.
inline constexpr std::size_t kLongestInput = 1 << 20;  // bytes

/// Words and numbers of the seeds, which mutations put in places where they do not belong.
std::vector<std::string> words_of(const std::vector<std::string>& seeds);

/// One of the seeds after one to eight changes.
std::string mutated(const std::vector<std::string>& seeds, const std::vector<std::string>& words, Draws& draws);

}  // namespace wt::fuzz
