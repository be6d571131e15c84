// What Hopper's hardware does with the grouped GEMM's addresses and descriptors, written from PTX ISA 9.0 and not from
// the kernel: boxes of a tensor copied into swizzled shared memory, wgmma operands read through 64-bit descriptors,
// sums in registers. Values are floats instead of bf16: the tests hold small integers, exact in both.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace wt::kernel_test {

struct Tensor3 {
  const std::vector<double>* values;
  int64_t inner, outer, depth;
};

/// "Tensor swizzling modes", 128 bytes: the 16-byte unit within a row of 128 bytes, XOR the row within a pattern of 8.
inline uint32_t swizzle_128(uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

class Sm90 {
 public:
  static constexpr uint32_t kBase = 33 * 1024;  // where the stage begins; a pattern's boundary
  explicit Sm90(uint32_t bytes) : shared_(bytes / 2, kPoison) {}

  /// A box of `box_rows` rows of 64 elements from (inner, outer, depth) to `offset`; zeros beyond the tensor. Bytes
  /// written.
  int64_t copy_box(const Tensor3& t, int box_rows, int offset, int inner, int outer, int depth) {
    for (int r = 0; r < box_rows; ++r)
      for (int e = 0; e < 64; ++e) {
        const int64_t at_inner = inner + e, at_outer = outer + r;
        const bool within =
            at_inner >= 0 && at_inner < t.inner && at_outer >= 0 && at_outer < t.outer && depth < t.depth;
        at(swizzle_128(kBase + static_cast<uint32_t>(offset + r * 128 + e * 2))) =
            within ? (*t.values)[static_cast<size_t>((depth * t.outer + at_outer) * t.inner + at_inner)] : 0.0;
      }
    return int64_t{box_rows} * 128;
  }
  /// An ordinary 16-byte store of zeros.
  void clear_unit(int offset) {
    for (int e = 0; e < 8; ++e) at(kBase + static_cast<uint32_t>(offset + e * 2)) = 0.0;
  }

  /// Element (mn, k), k < 16, of the operand that a descriptor names: "Canonical layouts" with 128-byte swizzle, T = 8:
  /// K-major ((8,m),(T,2k)):((8T,SBO),(1,T)); MN-major ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO)).
  double operand(uint64_t descriptor, bool mn_major, int mn, int k) {
    const auto field = [&](int bit) { return static_cast<uint32_t>(descriptor >> bit & 0x3fff) << 4; };
    const uint32_t start = field(0), leading = field(16), stride = field(32);
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0)
      throw std::logic_error("not a 128-byte swizzle at a pattern's start");
    const uint32_t m = static_cast<uint32_t>(mn), l = static_cast<uint32_t>(k);
    const uint32_t linear =
        mn_major ? m % 64 * 2 + m / 64 * leading + l % 8 * 128 + l / 8 * stride : m % 8 * 128 + m / 8 * stride + l * 2;
    return at(swizzle_128(start + linear));
  }

 private:
  static constexpr double kPoison = 1e30;
  double& at(uint32_t address) { return shared_.at((address - kBase) / 2); }
  std::vector<double> shared_;
};

/// Accumulators of one warpgroup, by "Register fragments": which thread and register hold element (row, column).
class Accumulators {
 public:
  explicit Accumulators(int columns)
      : registers_(static_cast<size_t>(columns / 2)), sums_(static_cast<size_t>(64 * columns)) {}
  double& at(int row, int column) {
    const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
    return of(thread, column / 8 * 4 + row % 16 / 8 * 2 + column % 2);
  }
  double& of(int thread, int index) {
    return sums_.at(static_cast<size_t>(thread) * registers_ + static_cast<size_t>(index));
  }

 private:
  size_t registers_;
  std::vector<double> sums_;
};

}  // namespace wt::kernel_test
