// The warpgroup products of sm90.hpp. Each warp's 16 rows are an agent's for each committed group; it reads all of both
// operands, as the manual lets the instruction do.
#include <fmt/format.h>

#include <cstring>

#include "tests/support/cuda_executor/memory.hpp"
#include "tests/support/cuda_executor/sm90.hpp"
#include "tests/support/cuda_executor/sm90_state.hpp"

namespace wt::cuda_executor {

namespace {

constexpr unsigned kAllLanes = 0xffffffffu, kDepth = 16, kMostColumns = 256, kRows = 64, kWarpRows = 16;

float value(uint16_t bf16) { return __builtin_bit_cast(float, uint32_t{bf16} << 16); }

/// store(mn, k, value) of `count` by 16 elements from shared memory.
template <class Store>
void read_operand(const MatrixDescriptor& matrix, bool mn_major, unsigned count, Store store) {
  for (unsigned k = 0; k < kDepth; k += mn_major ? 1 : 8)
    for (unsigned mn = 0; mn < count; mn += mn_major ? 8 : 1) {
      const unsigned char* const unit = at_shared(matrix.unit(mn_major, mn, k));
      touch(unit, kUnit, Access::read);
      uint16_t bits[8];
      std::memcpy(bits, unit, sizeof bits);
      for (unsigned i = 0; i < 8; ++i) store(mn + (mn_major ? i : 0), k + (mn_major ? 0 : i), value(bits[i]));
    }
}

void multiply(const Product& product, unsigned warp_in_group) {
  static float a[kRows][kDepth], b[kDepth][kMostColumns];  // no other agent runs before both are used
  std::string wrong;
  try {
    read_operand(product.a, product.transposed_a, kRows, [](unsigned m, unsigned k, float x) { a[m][k] = x; });
    read_operand(product.b, product.transposed_b, product.columns,
                 [](unsigned n, unsigned k, float x) { b[k][n] = x; });
  } catch (const std::logic_error& error) {
    wrong = error.what();
  }
  if (!wrong.empty()) fail(wrong);
  float sums[kWarpRows][kMostColumns];
  for (unsigned row = 0; row < kWarpRows; ++row) {
    std::memset(sums[row], 0, sizeof sums[row]);
    for (unsigned k = 0; k < kDepth; ++k) {
      const float left = a[warp_in_group * kWarpRows + row][k];
      for (unsigned n = 0; n < kMostColumns; ++n) sums[row][n] += left * b[k][n];
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned i = 0; i < product.columns / 2; ++i) {
      const Fragment at = fragment(lane, i);
      product.d[lane][i] += sums[at.row][at.column];
    }
}

/// The agent of a group: its products in order, after the group before.
void multiply_all(WarpState& warp, size_t number, Where where) {
  ProductGroup& group = warp.groups[number];
  if (number > 0) {
    ProductGroup& before = warp.groups[number - 1];
    if (!before.done) wait_until([&before] { return before.done; }, "the products before", where);
    acquire(before.end);
  }
  for (size_t next = 0;; ++next) {
    for (unsigned turns = draw_below(30); turns > 0; --turns) yield();
    if (next == group.products.size() && !group.committed)
      wait_until([&group, next] { return next < group.products.size() || group.committed; },
                 "wgmma.commit_group for its products", where);
    if (next == group.products.size()) break;
    acquire(group.products[next].issued);
    multiply(group.products[next], warp.number % 4);
  }
  release(group.end);
  group.done = true;
}

struct Issued {
  float* d;
  uint64_t a, b;
};

}  // namespace

void products_begin(Where where) {
  if (planted == Planted::no_products_begin) return;
  WarpState& warp = hopper().warps[running->warp];
  release(warp.issued);
  meet(kAllLanes, 0, "wgmma.fence", where);
  registers_accessed() = false;
}

void product(float* d, unsigned columns, uint64_t a, uint64_t b, bool transposed_a, bool transposed_b, Where where) {
  if (planted == Planted::start_of_a) a += 1;
  if (planted == Planted::start_of_b) b += 1;
  if (planted == Planted::stride_of_b) b += uint64_t{1} << (transposed_b ? 16 : 32);
  if (registers_accessed())
    fail("wgmma with sums that were touched since the last wgmma.fence, at line " + std::to_string(where.line()));
  const Issued mine{d, a, b};
  const std::array<uint64_t, kLanes>& all =
      meet(kAllLanes, reinterpret_cast<uint64_t>(&mine), "wgmma.mma_async", where);
  if (running->lane == 0) {
    WarpState& warp = hopper().warps[running->warp];
    hopper().same_in_warpgroup(warp,
                               fmt::format("wgmma of {} columns with descriptors {:#x} and {:#x}", columns, a, b));
    std::array<float*, kLanes> sums;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Issued& other = *reinterpret_cast<const Issued*>(all[lane]);
      if (other.a != a || other.b != b) fail(fmt::format("wgmma with other descriptors by lane {}", lane));
      sums[lane] = other.d;
    }
    release(warp.issued);
    const bool first = warp.groups.size() == warp.committed;
    if (first) warp.groups.emplace_back();
    std::string wrong;
    try {
      warp.groups.back().products.push_back(
          {MatrixDescriptor(a), MatrixDescriptor(b), transposed_a, transposed_b, columns, sums, warp.issued});
    } catch (const std::logic_error& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) fail(wrong);
    if (first)
      spawn([&warp, number = warp.committed, where] { multiply_all(warp, number, where); },
            fmt::format("products of warp {}, line {}", warp.number, where.line()));
  }
  watch_registers(d, columns / 2 * sizeof(float), true);
  meet(kAllLanes, 0, "wgmma.mma_async", where);  // `mine` has been read
}

void products_commit(Where where) {
  meet(kAllLanes, 0, "wgmma.commit_group", where);
  WarpState& warp = hopper().warps[running->warp];
  if (running->lane == 0) {
    if (warp.groups.size() == warp.committed) {  // of nothing
      warp.groups.emplace_back();
      warp.groups.back().done = true;
    }
    warp.groups[warp.committed++].committed = true;
  }
  meet(kAllLanes, 0, "wgmma.commit_group", where);
}

void products_wait(unsigned in_flight, Where where) {
  if (planted == Planted::early_reuse && in_flight > 0) ++in_flight;
  if (planted == Planted::no_products_wait && in_flight == 0) return;
  meet(kAllLanes, in_flight, "wgmma.wait_group", where);
  WarpState& warp = hopper().warps[running->warp];
  if (warp.committed <= in_flight) return;
  const ProductGroup& last = warp.groups[warp.committed - in_flight - 1];
  if (!last.done) wait_until([&last] { return last.done; }, "wgmma.wait_group", where);
  acquire(last.end);
  if (in_flight == 0 && warp.groups.size() == warp.committed)
    watch_registers(running->registers, running->register_bytes, false);
}

}  // namespace wt::cuda_executor
