// Grouped GEMM for Hopper (sm_90a) with a persistent grid. In each block one thread fills a ring of shared-memory
// stages through the copy engine, and two warpgroups multiply, each 64 rows of the tile, with fp32 accumulators in
// registers. The device reads the groups' ends, so the host needs no sizes. Data layout: grouped_tiles.hpp.
#include <cudaTypedefs.h>

#include <atomic>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/grouped_tiles.hpp"
#include "kernels/cuda/sm90.cuh"

namespace wt::kernels::cuda {
namespace {

using namespace grouped;

constexpr int kWarpgroup = 128;
constexpr int kBlockThreads = (1 + kConsumers) * kWarpgroup;
// Of 65536 registers: 168 a thread at entry, then 128 * 40 + 256 * 232.
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
constexpr int kPatternBytes = 1024;  // the swizzle's pattern; stages are aligned to it

/// Every group's end and first tile, which all threads of a block look up.
struct Schedule {
  int end[kMaxGroups];
  int first_tile[kMaxGroups + 1];
};

/// Computed by one warp: a prefix sum of the groups' tiles.
template <GroupedForm kForm, int kTileN>
__device__ void make_schedule(Schedule& schedule, const int32_t* ends, Sizes sizes) {
  const int lane = threadIdx.x % kWarp;
  int before = 0;
  for (int base = 0; base < sizes.groups; base += kWarp) {
    const int g = base + lane;
    const bool real = g < sizes.groups;
    const int end = real ? ends[g] : 0, begin = real && g > 0 ? ends[g - 1] : 0;
    const int tiles = real ? tiles_of_group(kForm, sizes, kTileN, end - begin) : 0;
    int sum = tiles;
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const int left = __shfl_up_sync(kAllLanes, sum, offset);
      if (lane >= offset) sum += left;
    }
    if (real) schedule.end[g] = end, schedule.first_tile[g] = before + sum - tiles;
    before += __shfl_sync(kAllLanes, sum, kWarp - 1);
  }
  if (lane == 0) schedule.first_tile[sizes.groups] = before;
}

template <GroupedForm kForm, int kTileN>
__device__ Tile scheduled(const Schedule& schedule, Sizes sizes, int number) {
  const int group = group_of_tile(schedule.first_tile, sizes.groups, number);
  const int begin = group > 0 ? schedule.end[group - 1] : 0;
  return tile_in_group(kForm, sizes, kTileN, number - schedule.first_tile[group], group, begin,
                       schedule.end[group] - begin);
}

template <int kTileN>
__device__ void clear_rows(unsigned char* stage, int valid) {
  const int thread = threadIdx.x - kWarpgroup, units = units_to_clear(kTileN, valid);
  for (int i = thread; i < units; i += kConsumers * kWarpgroup)
    *reinterpret_cast<uint4*>(stage + unit_to_clear(valid, i)) = uint4{0, 0, 0, 0};
  fence_async_proxy();
  named_barrier<1, kConsumers * kWarpgroup>();  // both warpgroups read all of B
}

__device__ inline uint32_t two_bf16(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

template <GroupedForm kForm, int kTileN>
__device__ void store_tile(const float (&sums)[kTileN / 2], Sizes sizes, Tile tile, int first_row, __nv_bfloat16* out) {
  const int thread = threadIdx.x % kWarpgroup;
  const bool right = takes_right(thread);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + accumulator_row(thread, 2 * half);
#pragma unroll
    for (int pair = 0; pair < kTileN / 16; ++pair) {
      const int l = pair_register(pair, false, half), r = pair_register(pair, true, half);
      const uint32_t of_left = two_bf16(sums[l], sums[l + 1]), of_right = two_bf16(sums[r], sums[r + 1]);
      const uint32_t got = __shfl_xor_sync(kAllLanes, right ? of_left : of_right, 1);
      const int column = piece_column(thread, pair);
      if (inside(kForm, sizes, tile, row, column))
        *reinterpret_cast<uint2*>(out + output_index(kForm, sizes, tile, row, column)) =
            right ? uint2{got, of_right} : uint2{of_left, got};
    }
  }
}

template <GroupedForm kForm, int kTileN>
__global__ void __launch_bounds__(kBlockThreads, 1)
    grouped_gemm_kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                        const int32_t* ends, Sizes sizes, __nv_bfloat16* out) {
  constexpr bool kTransposedA = a_transposed(kForm), kTransposedB = b_transposed(kForm);
  constexpr int kStages = stages(kTileN);
  unsigned char* const dynamic = dynamic_shared<unsigned char>();
  __shared__ Schedule schedule;
  __shared__ uint64_t full[kStages], empty[kStages];
  unsigned char* const ring = dynamic + (kPatternBytes - shared_address(dynamic) % kPatternBytes) % kPatternBytes;

  if (threadIdx.x < kWarp) make_schedule<kForm, kTileN>(schedule, ends, sizes);
  if (threadIdx.x == kWarp) {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], kConsumers * kWarpgroup / kWarp);
    }
    barrier_init_done();
    prefetch_map(&map_a);
    prefetch_map(&map_b);
  }
  __syncthreads();
  const int tiles = schedule.first_tile[sizes.groups];

  if (threadIdx.x < kWarpgroup) {
    fewer_registers<kProducerRegisters>();
    if (threadIdx.x == 0) {
      Ring at{kStages};
      for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
        const Tile tile = scheduled<kForm, kTileN>(schedule, sizes, number);
        for (int block = 0; block < tile.blocks; ++block, at.next()) {
          barrier_wait(&empty[at.stage], at.empty_parity());
          barrier_expect(&full[at.stage], stage_bytes(kTileN));
          const uint32_t stage = shared_address(ring) + at.stage * stage_bytes(kTileN);
          for (int i = 0; i < boxes(kTransposedA, kTileM); ++i) {
            const Box box = box_of_a(kForm, tile, block, i);
            copy_box(&map_a, stage + box.offset, &full[at.stage], box.inner, box.outer, box.depth);
          }
          for (int i = 0; i < boxes(kTransposedB, kTileN); ++i) {
            const Box box = box_of_b(kForm, tile, block, i);
            copy_box(&map_b, stage + box.offset, &full[at.stage], box.inner, box.outer, box.depth);
          }
        }
      }
    }
  } else {
    more_registers<kConsumerRegisters>();
    const int consumer = threadIdx.x / kWarpgroup - 1;
    const auto release = [&](int stage) {
      if (threadIdx.x % kWarp == 0) barrier_arrive(&empty[stage]);
    };
    Ring at{kStages};
    for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
      const Tile tile = scheduled<kForm, kTileN>(schedule, sizes, number);
      float sums[kTileN / 2];
#pragma unroll
      for (float& sum : sums) sum = 0;
      int before = 0;  // the stage of the previous block of K
      for (int block = 0; block < tile.blocks; ++block, at.next()) {
        barrier_wait(&full[at.stage], at.full_parity());
        unsigned char* const stage = ring + at.stage * stage_bytes(kTileN);
        if constexpr (kForm == GroupedForm::backward_weight) {
          const int valid = valid_rows(tile, block);
          if (valid < kTileK) clear_rows<kTileN>(stage, valid);
        }
        const uint32_t a = shared_address(stage) + a_offset(consumer), b = shared_address(stage) + kBOffset;
        products_begin();
#pragma unroll
        for (int step = 0; step < kTileK / kMmaK; ++step)
          product<kTransposedA, kTransposedB>(sums, descriptor(a + step * step_bytes(kTransposedA), kTransposedA),
                                              descriptor(b + step * step_bytes(kTransposedB), kTransposedB));
        products_commit();
        products_wait<1>();  // this block's products continue; those of the previous one no longer read its stage
        if (block > 0) release(before);
        before = at.stage;
      }
      products_wait<0>();
      if (tile.blocks > 0) release(before);
      store_tile<kForm, kTileN>(sums, sizes, tile, consumer * kMmaM, out);
    }
  }
}

constexpr const char* kName = "wt_grouped_gemm";

/// Finds the driver's function at run time, because libcuda exists only on machines with a GPU.
WtStatus map_encoder(PFN_cuTensorMapEncodeTiled_v12000* encode) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  if (WtStatus bad = status_of(
          cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result), kName))
    return bad;
  if (result != cudaDriverEntryPointSuccess || !found)
    return fail(WT_CUDA_FAILURE,
                "%s: the driver has no cuTensorMapEncodeTiled; allowed drivers for CUDA 12.0 or newer; update it",
                kName);
  *encode = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found);
  return WT_OK;
}

/// A tensor map of `depth` bf16 matrices (outer, inner), read in boxes of box_outer rows by 64 elements.
WtStatus make_map(CUtensorMap* map, const void* data, int inner, int outer, int depth, int box_outer) {
  static std::atomic<PFN_cuTensorMapEncodeTiled_v12000> found{nullptr};
  PFN_cuTensorMapEncodeTiled_v12000 encode = found;
  if (!encode) {
    if (WtStatus bad = map_encoder(&encode)) return bad;
    found = encode;
  }
  const cuuint64_t row = static_cast<cuuint64_t>(inner) * 2;
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(inner), static_cast<cuuint64_t>(outer),
                                static_cast<cuuint64_t>(depth)};
  const cuuint64_t strides[] = {row, row * static_cast<cuuint64_t>(outer)};  // bytes between rows and matrices
  const cuuint32_t box[] = {kTileK, static_cast<cuuint32_t>(box_outer), 1}, step[] = {1, 1, 1};
  const CUresult result =
      encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<void*>(data), extents, strides, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);  // out-of-bounds elements are zero
  if (result == CUDA_SUCCESS) return WT_OK;
  return fail(WT_CUDA_FAILURE,
              "%s: no tensor map of (%d, %d, %d) bf16, driver error %d; allowed below 2^40 bytes; use the library",
              kName, depth, outer, inner, static_cast<int>(result));
}

template <GroupedForm kForm, int kTileN>
WtStatus launch_tiles(void* handle, Sizes s, const void* a, const void* b, const int32_t* ends, void* out, int blocks) {
  CUtensorMap map_a, map_b;
  const bool weight = kForm == GroupedForm::backward_weight;
  const int a_inner = kForm == GroupedForm::forward ? s.k : s.n;
  if (WtStatus bad = make_map(&map_a, a, a_inner, s.rows, 1, box_rows(a_transposed(kForm), kTileM))) return bad;
  if (WtStatus bad =
          make_map(&map_b, b, s.k, weight ? s.rows : s.n, weight ? 1 : s.groups, box_rows(b_transposed(kForm), kTileN)))
    return bad;
  const auto kernel = grouped_gemm_kernel<kForm, kTileN>;
  constexpr int kShared = stages(kTileN) * stage_bytes(kTileN) + kPatternBytes;
  if (WtStatus bad =
          status_of(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared), kName))
    return bad;
  launch(kernel, blocks, kBlockThreads, kShared, stream_of(handle), map_a, map_b, ends, s,
         static_cast<__nv_bfloat16*>(out));
  return launched(kName);
}

template <GroupedForm kForm>
WtStatus run(void* handle, Sizes s, const void* a, const void* b, const int32_t* ends, void* out) {
  int device = 0, processors = 0;
  if (WtStatus bad = status_of(cudaGetDevice(&device), kName)) return bad;
  if (WtStatus bad = status_of(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), kName))
    return bad;
  if (most_tiles(kForm, s, 128) > INT32_MAX)
    return fail(WT_UNSUPPORTED, "%s: %lld tiles; allowed below 2^31; use the library", kName,
                static_cast<long long>(most_tiles(kForm, s, 128)));
  // Wide tiles read less data per product. Narrow ones are better where wide tiles would be half empty or too few for
  // all multiprocessors.
  const int64_t wide = most_tiles(kForm, s, 256), narrow = most_tiles(kForm, s, 128);
  if (wide >= processors && output_columns(kForm, s) > 128)
    return launch_tiles<kForm, 256>(handle, s, a, b, ends, out, processors);
  return launch_tiles<kForm, 128>(handle, s, a, b, ends, out,
                                  static_cast<int>(narrow < processors ? narrow : processors));
}

bool on_16_bytes(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

}  // namespace

template <>
WtStatus grouped_gemm<float>(void*, GroupedForm, GroupedShape, const void*, const void*, const int32_t*, void*) {
  return fail(WT_UNSUPPORTED, "%s: fp32 on CUDA; allowed bf16; use the library", kName);
}

template <>
WtStatus grouped_gemm<__nv_bfloat16>(void* handle, GroupedForm form, GroupedShape shape, const void* a, const void* b,
                                     const int32_t* ends, void* out) {
  int device = 0, major = 0, minor = 0;
  if (WtStatus bad = status_of(cudaGetDevice(&device), kName)) return bad;
  if (WtStatus bad = status_of(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), kName))
    return bad;
  if (WtStatus bad = status_of(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), kName))
    return bad;
  if (major != 9 || minor != 0)
    return fail(WT_UNSUPPORTED, "%s: compute capability %d.%d; allowed 9.0 (H100, H200); use the library", kName, major,
                minor);
  if (shape.n % 8 != 0 || shape.k % 8 != 0)
    return fail(WT_UNSUPPORTED, "%s: N is %lld and K %lld; allowed multiples of 8 (rows of 16 bytes); use the library",
                kName, static_cast<long long>(shape.n), static_cast<long long>(shape.k));
  if (!on_16_bytes(a) || !on_16_bytes(b) || !on_16_bytes(out))
    return fail(WT_UNSUPPORTED, "%s: an array does not start on 16 bytes; allowed multiples of 16; use the library",
                kName);
  if (shape.rows == 0)  // only the weight gradient gets here without rows
    return status_of(
        cudaMemsetAsync(out, 0, static_cast<size_t>(shape.groups * shape.n * shape.k) * 2, stream_of(handle)), kName);
  const Sizes s{static_cast<int>(shape.groups), static_cast<int>(shape.rows), static_cast<int>(shape.n),
                static_cast<int>(shape.k)};
  switch (form) {
    case GroupedForm::forward:
      return run<GroupedForm::forward>(handle, s, a, b, ends, out);
    case GroupedForm::backward_rows:
      return run<GroupedForm::backward_rows>(handle, s, a, b, ends, out);
    default:
      return run<GroupedForm::backward_weight>(handle, s, a, b, ends, out);
  }
}

}  // namespace wt::kernels::cuda
