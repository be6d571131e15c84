// Where Hopper's instructions find and put matrices, from PTX ISA 9.0 alone and not from a kernel: "Tensor swizzling
// modes", "Matrix descriptor", "Canonical layouts" and "Register fragments" of wgmma. Elements are of two bytes. What
// the manual leaves undefined throws std::logic_error.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace wt::cuda_executor {

constexpr uint32_t kUnit = 16;  ///< bytes that stay together, 8 elements

/// Units of 16 bytes move within spans of 32, 64 or 128 bytes: the unit's number XOR the row within the pattern.
enum class Swizzle : uint8_t { none, bytes_32, bytes_64, bytes_128 };
constexpr uint32_t span_of(Swizzle mode) { return kUnit << static_cast<uint32_t>(mode); }
/// The pattern repeats after so many bytes.
constexpr uint32_t pattern_of(Swizzle mode) { return mode == Swizzle::none ? kUnit : 8 * span_of(mode); }
constexpr uint32_t swizzled(Swizzle mode, uint32_t address) {
  return address ^ ((address >> 7 & (span_of(mode) / kUnit - 1)) << 4);
}

/// The 64 bits that tell wgmma of an operand in shared memory.
struct MatrixDescriptor {
  uint32_t start, leading, stride;  ///< bytes
  Swizzle swizzle;

  explicit MatrixDescriptor(uint64_t bits)
      : start(field(bits, 0)), leading(field(bits, 16)), stride(field(bits, 32)), swizzle(mode_of(bits)) {
    if ((bits >> 49 & 7) != 0) throw std::logic_error("a matrix descriptor with a base offset, which is not modelled");
    constexpr uint64_t kUsed = 0x3fff | 0x3fffull << 16 | 0x3fffull << 32 | 7ull << 49 | 3ull << 62;
    if (bits & ~kUsed) throw std::logic_error("a matrix descriptor with bits that are to be 0");
    if (start % pattern_of(swizzle) / 128 != 0)
      throw std::logic_error("a matrix descriptor starts at " + std::to_string(start) +
                             ", not in the first row of a pattern of " + std::to_string(pattern_of(swizzle)) +
                             " bytes, without a base offset");
  }

  /// Address of the unit that holds 8 neighbours of element (mn, k): along K, or along M or N where that dimension is
  /// contiguous (mn_major; mn % 8 == 0 then, else k % 8 == 0). In units of elements, the canonical layouts are
  ///   K-major:  ((8,m),(8,2)) : ((span,stride),(1,8)), unswizzled ((8,m),(8,2)) : ((8,stride),(1,leading))
  ///   MN-major: ((span,m),(8,2)) : ((1,leading),(span,stride)), unswizzled ((8,m),(8,2)) : ((1,stride),(8,leading))
  uint32_t unit(bool mn_major, uint32_t mn, uint32_t k) const {
    const uint32_t span = span_of(swizzle), per_span = span / 2;
    if (mn_major) {
      if (swizzle == Swizzle::none) return start + mn / 8 * stride + k % 8 * kUnit + k / 8 * leading;
      check(start % span == 0, "starts within a row of a contiguous M or N");
      check(leading % pattern_of(swizzle) == 0, "has a leading offset that is no multiple of its pattern");
      check(stride % pattern_of(swizzle) == 0, "has a stride that is no multiple of its pattern");
      return swizzled(swizzle, start + mn % per_span * 2 + mn / per_span * leading + k % 8 * span + k / 8 * stride);
    }
    if (swizzle == Swizzle::none) return start + mn % 8 * kUnit + mn / 8 * stride + k / 8 * leading;
    check(stride % pattern_of(swizzle) == 0, "has a stride that is no multiple of its pattern");
    check(start % span + 32 <= span, "runs over the end of its swizzled row");
    return swizzled(swizzle, start + mn % 8 * span + mn / 8 * stride + k * 2);
  }

 private:
  static uint32_t field(uint64_t bits, int from) { return static_cast<uint32_t>(bits >> from & 0x3fff) << 4; }
  static Swizzle mode_of(uint64_t bits) {
    constexpr Swizzle kModes[] = {Swizzle::none, Swizzle::bytes_128, Swizzle::bytes_64, Swizzle::bytes_32};
    return kModes[bits >> 62];
  }
  void check(bool good, const char* what) const {
    if (!good)
      throw std::logic_error("a matrix descriptor (start " + std::to_string(start) + ", leading " +
                             std::to_string(leading) + ", stride " + std::to_string(stride) + ") " + what);
  }
};

/// Which element of a warp's 16 rows of the sums its lane holds in register `index`.
struct Fragment {
  unsigned row, column;
};
constexpr Fragment fragment(unsigned lane, unsigned index) {
  return {lane / 4 + index / 2 % 2 * 8, index / 4 * 8 + lane % 4 * 2 + index % 2};
}

/// A barrier in shared memory: a phase ends when all arrivals and all expected bytes have come, and the next begins.
class Phases {
 public:
  static constexpr int64_t kMost = (1 << 20) - 1;  ///< arrivals, and bytes to come

  Phases() = default;
  explicit Phases(int arrivals) : arrivals_(arrivals), pending_(arrivals) {
    if (arrivals < 1 || arrivals > kMost)
      throw std::logic_error("a barrier of " + std::to_string(arrivals) + " arrivals");
  }
  void expect(int64_t bytes) { change(bytes), settle(); }
  void complete(int64_t bytes) { change(-bytes), settle(); }
  void arrive() {
    if (pending_ == 0)
      throw std::logic_error("an arrival too many: all " + std::to_string(arrivals_) +
                             " of the phase have come, and bytes are missing");
    --pending_, settle();
  }
  /// Has the phase of that parity ended? Of the running phase and the one before.
  bool over(uint32_t parity) const { return (phase_ & 1) != parity; }
  uint64_t phase() const { return phase_; }
  int pending() const { return pending_; }
  int64_t bytes() const { return bytes_; }

 private:
  void change(int64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMost || bytes_ < -kMost)
      throw std::logic_error("a barrier that has " + std::to_string(bytes_) + " bytes to come");
  }
  void settle() {
    if (pending_ == 0 && bytes_ == 0) ++phase_, pending_ = arrivals_;
  }
  int arrivals_ = 0, pending_ = 0;
  int64_t bytes_ = 0;
  uint64_t phase_ = 0;
};

}  // namespace wt::cuda_executor
