// Data layout of the grouped GEMM for sm_90a: which tile a block computes, which boxes of global memory the copy engine
// brings to which bytes of shared memory, the descriptors for the tensor cores, and which output each register holds.
// Plain arithmetic without CUDA, so that a test on the CPU covers all of it (tests/unit/grouped_on_executor.cpp).
//
// Terms of one group's product C (M,N) = A (M,K) B (K,N), by form, from x (rows,k), weight (groups,n,k), y (rows,n):
//   forward          C = y,       A = x,     B = weight[g]^T: M the group's rows, N = n, K = k
//   backward_rows    C = dx,      A = dy,    B = weight[g]:   M the group's rows, N = k, K = n
//   backward_weight  C = dweight, A = dy^T,  B = x:           M = n, N = k, K the group's rows
// Sources of the layouts: PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" (canonical layouts,
// matrix descriptor), "Register Fragments and Shared Memory Matrix Layouts" (accumulators), "Tensor Swizzling Modes".
#pragma once
#include "kernels/backend.hpp"

#if defined(__CUDACC__)
#define WT_HOST_DEVICE __host__ __device__
#else
#define WT_HOST_DEVICE
#endif

namespace wt::kernels::grouped {

constexpr int kTileM = 128;  // two warpgroups of 64 rows, the M of wgmma
constexpr int kTileK = 64;   // a swizzled row: 64 bf16 are 128 bytes
constexpr int kMmaM = 64, kMmaK = 16;
constexpr int kConsumers = kTileM / kMmaM;
constexpr int kRowBytes = 128, kUnitBytes = 16;  // the swizzle moves units of 16 bytes within a row
constexpr int kSlabBytes = 64 * kRowBytes;       // 64 rows of 64 elements of M or N
constexpr int kBand =
    16;  // tiles of M processed together over all of N: 132 blocks then share 2048 rows and 2048 columns

WT_HOST_DEVICE constexpr int ceil_div(int a, int b) { return a / b + (a % b != 0); }
WT_HOST_DEVICE constexpr int smaller(int a, int b) { return a < b ? a : b; }

WT_HOST_DEVICE constexpr int stage_bytes(int tile_n) { return (kTileM + tile_n) / 64 * kSlabBytes; }  // A first, then B
WT_HOST_DEVICE constexpr int stages(int tile_n) {
  return 4 * stage_bytes(256) / stage_bytes(tile_n);
}  // 192 KiB of a block's 227

/// Sizes that fit 32 bits, for index arithmetic on the device.
struct Sizes {
  int groups, rows, n, k;
};

WT_HOST_DEVICE constexpr int output_rows(GroupedForm form, Sizes s, int group_rows) {
  return form == GroupedForm::backward_weight ? s.n : group_rows;
}
WT_HOST_DEVICE constexpr int output_columns(GroupedForm form, Sizes s) {
  return form == GroupedForm::forward ? s.n : s.k;
}
WT_HOST_DEVICE constexpr int contraction(GroupedForm form, Sizes s, int group_rows) {
  return form == GroupedForm::forward ? s.k : form == GroupedForm::backward_rows ? s.n : group_rows;
}

// The scheduler. Tiles are numbered by group; block b takes tiles b, b + blocks, b + 2 blocks ...
WT_HOST_DEVICE constexpr int tiles_of_group(GroupedForm form, Sizes s, int tile_n, int group_rows) {
  return ceil_div(output_rows(form, s, group_rows), kTileM) * ceil_div(output_columns(form, s), tile_n);
}

/// The group of a tile: the last one whose first tile is not above it; empty groups are skipped. first_tile (groups +
/// 1) ascends; tile < first_tile[groups].
WT_HOST_DEVICE constexpr int group_of_tile(const int* first_tile, int groups, int tile) {
  int low = 0, high = groups;  // first_tile[low] <= tile < first_tile[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first_tile[middle] <= tile)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// The largest possible number of tiles; the host does not know the groups' sizes.
constexpr int64_t most_tiles(GroupedForm form, Sizes s, int tile_n) {
  const int64_t along_m = form == GroupedForm::backward_weight ? int64_t{s.groups} * ceil_div(s.n, kTileM)
                                                               : int64_t{s.rows} / kTileM + s.groups;
  return along_m * ceil_div(output_columns(form, s), tile_n);
}

struct Tile {
  int group, first_row, group_rows;  ///< rows of x and y: first_row to first_row + group_rows
  int m, n;                          ///< first row and column of C within the group
  int blocks;                        ///< of kTileK along K; 0 for the weight gradient of an empty group
};

WT_HOST_DEVICE constexpr Tile tile_in_group(GroupedForm form, Sizes s, int tile_n, int number, int group, int first_row,
                                            int group_rows) {
  const int m_tiles = ceil_div(output_rows(form, s, group_rows), kTileM);
  const int n_tiles = ceil_div(output_columns(form, s), tile_n);
  const int band = number / (kBand * n_tiles), in_band = number % (kBand * n_tiles);
  const int height = smaller(kBand, m_tiles - band * kBand);
  return {group,
          first_row,
          group_rows,
          (band * kBand + in_band % height) * kTileM,
          in_band / height * tile_n,
          ceil_div(contraction(form, s, group_rows), kTileK)};
}

/// The current stage of a producer or consumer in a ring. Each stage has two barriers: full (one arrival and the
/// stage's bytes) and empty (one arrival per consuming warp). The phases of a barrier have parity 0, 1, 0, 1 ...
struct Ring {
  int stages, stage = 0;
  uint32_t round = 0;
  WT_HOST_DEVICE constexpr explicit Ring(int n) : stages(n) {}
  WT_HOST_DEVICE constexpr void next() {
    if (++stage == stages) stage = 0, round ^= 1;
  }
  /// The parity that a consumer waits for.
  WT_HOST_DEVICE constexpr uint32_t full_parity() const { return round; }
  /// The parity that a producer waits for: the previous phase, which counts as complete on a fresh barrier.
  WT_HOST_DEVICE constexpr uint32_t empty_parity() const { return round ^ 1; }
};

// Copies from global to shared memory. A box is 64 elements (128 bytes) wide; its rows are consecutive in shared
// memory. Beyond the tensor's end the copy engine writes zeros: tails of n and k, and of a weight inside its group.
struct Box {
  int offset;               ///< bytes from the start of the stage
  int inner, outer, depth;  ///< first element: within a row, row, matrix
};

/// Whether the operand's contiguous dimension is M or N; otherwise it is K.
WT_HOST_DEVICE constexpr bool a_transposed(GroupedForm form) { return form == GroupedForm::backward_weight; }
WT_HOST_DEVICE constexpr bool b_transposed(GroupedForm form) { return form != GroupedForm::forward; }
/// A transposed operand arrives in slabs of 64 elements of M or N over 64 of K, any other operand as one box.
WT_HOST_DEVICE constexpr int boxes(bool transposed, int extent) { return transposed ? extent / 64 : 1; }
WT_HOST_DEVICE constexpr int box_rows(bool transposed, int extent) { return transposed ? kTileK : extent; }

WT_HOST_DEVICE constexpr Box box_of_a(GroupedForm form, Tile t, int block, int i) {
  return a_transposed(form) ? Box{i * kSlabBytes, t.m + i * 64, t.first_row + block * kTileK, 0}
                            : Box{0, block * kTileK, t.first_row + t.m, 0};
}
WT_HOST_DEVICE constexpr Box box_of_b(GroupedForm form, Tile t, int block, int i) {
  const int start = kTileM / 64 * kSlabBytes;
  if (form == GroupedForm::forward) return {start, block * kTileK, t.n, t.group};
  if (form == GroupedForm::backward_rows) return {start + i * kSlabBytes, t.n + i * 64, block * kTileK, t.group};
  return {start + i * kSlabBytes, t.n + i * 64, t.first_row + block * kTileK, 0};
}

/// In the weight gradient, the last block of K reaches into the next group's rows. Those rows of A and B are cleared in
/// shared memory, because 0 times another group's value need not be 0 (infinity, NaN). Swizzling keeps a row in place,
/// so clearing can ignore it. This is the number of rows of K in the block that belong to the group.
WT_HOST_DEVICE constexpr int valid_rows(Tile t, int block) { return smaller(kTileK, t.group_rows - block * kTileK); }
constexpr int kUnitsPerRow = kRowBytes / kUnitBytes;
WT_HOST_DEVICE constexpr int units_to_clear(int tile_n, int valid) {
  return (kTileM + tile_n) / 64 * (kTileK - valid) * kUnitsPerRow;
}
/// Byte offset in the stage of the i-th unit to clear.
WT_HOST_DEVICE constexpr int unit_to_clear(int valid, int i) {
  const int per_slab = (kTileK - valid) * kUnitsPerRow;
  return i / per_slab * kSlabBytes + valid * kRowBytes + i % per_slab * kUnitBytes;
}

// The 64-bit matrix descriptor of wgmma: where the operand starts, and how its pattern of 1024 bytes (8 rows of 128,
// 128-byte swizzle) repeats.
/// Offset of warpgroup `consumer`'s 64 rows of A. 64 rows and one slab have the same size.
WT_HOST_DEVICE constexpr int a_offset(int consumer) { return consumer * kSlabBytes; }
constexpr int kBOffset = kTileM / 64 * kSlabBytes;
/// Offset between steps of 16 along K: 32 bytes inside the swizzled rows, or 16 rows of K.
WT_HOST_DEVICE constexpr int step_bytes(bool transposed) { return transposed ? kMmaK * kRowBytes : kMmaK * 2; }
WT_HOST_DEVICE constexpr uint64_t descriptor(uint32_t shared_address, bool transposed) {
  const uint64_t leading = transposed ? kSlabBytes : kUnitBytes;  // between slabs along M or N; otherwise ignored
  const uint64_t stride = 8 * kRowBytes;                          // between groups of 8 rows
  const uint64_t swizzle_128 = 1;
  return ((shared_address & 0x3ffff) >> 4) | (leading >> 4 << 16) | (stride >> 4 << 32) | (swizzle_128 << 62);
}

// Accumulators: register i (of tile_n / 2) of thread t in the warpgroup of 128.
WT_HOST_DEVICE constexpr int accumulator_row(int t, int i) { return t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8; }

/// Stores write 4 columns. In a pair of neighbouring 8-column blocks, even threads take the left block and odd threads
/// the right one, after exchanging values, so that four threads write 32 bytes, a whole sector.
constexpr int kPieceColumns = 4;
WT_HOST_DEVICE constexpr bool takes_right(int t) { return t % 2 != 0; }
/// First of two registers with row half `half` (0, or 1 = 8 rows below) of the pair's left or right block.
WT_HOST_DEVICE constexpr int pair_register(int pair, bool right, int half) {
  return (2 * pair + (right ? 1 : 0)) * 4 + 2 * half;
}
WT_HOST_DEVICE constexpr int piece_column(int t, int pair) {
  return (2 * pair + (takes_right(t) ? 1 : 0)) * 8 + t % 4 / 2 * kPieceColumns;
}
/// Whether a position of C in the tile lies inside the group.
WT_HOST_DEVICE constexpr bool inside(GroupedForm form, Sizes s, Tile t, int row, int column) {
  return t.m + row < output_rows(form, s, t.group_rows) && t.n + column < output_columns(form, s);
}
/// Element of the output array.
WT_HOST_DEVICE constexpr int64_t output_index(GroupedForm form, Sizes s, Tile t, int row, int column) {
  const int64_t matrix_row = form == GroupedForm::backward_weight ? int64_t{t.group} * s.n : int64_t{t.first_row};
  return (matrix_row + t.m + row) * output_columns(form, s) + t.n + column;
}

}  // namespace wt::kernels::grouped
