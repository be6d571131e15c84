// Stable counting sort by expert in three launches: slot counts of each chunk of rows, an exclusive scan over (slot,
// chunk), and a scatter in which one warp walks its chunk in order, so that equal slots keep their order.
#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int64_t kChunk = 1024;    // rows per warp: 32 steps of 32
constexpr int kScanThreads = 1024;  // one block scans slots x chunks counters
constexpr int kSteps = 16;          // steps whose loads are in flight at once

__device__ inline int64_t slot_of(const int64_t* index, const int64_t* slot_of_expert, int64_t i) {
  return slot_of_expert ? slot_of_expert[index[i]] : index[i];
}

/// counts[slot * chunks + chunk]
__global__ void count_kernel(const int64_t* index, const int64_t* slot_of_expert, int64_t n, int64_t E,
                             int64_t* counts) {
  int* const of_slot = dynamic_shared<int>();
  next_may_start();
  for (int64_t s = threadIdx.x; s < E; s += blockDim.x) of_slot[s] = 0;
  __syncthreads();
  const int64_t first = blockIdx.x * kChunk, end = first + kChunk < n ? first + kChunk : n;
  for (int64_t i = first + threadIdx.x; i < end; i += blockDim.x)
    atomicAdd(&of_slot[slot_of(index, slot_of_expert, i)], 1);
  __syncthreads();
  for (int64_t s = threadIdx.x; s < E; s += blockDim.x) counts[s * gridDim.x + blockIdx.x] = of_slot[s];
}

/// The sum over the lower lanes.
__device__ inline int64_t sum_of_lower(int64_t own) {
  const int lane = threadIdx.x % kWarp;
  int64_t sum = own;
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const int64_t lower = __shfl_up_sync(kAllLanes, sum, offset);
    if (lane >= offset) sum += lower;
  }
  return sum - own;
}

/// Exclusive scan in place; each thread scans a contiguous range.
__global__ void scan_kernel(int64_t* counts, int64_t E, int64_t chunks, int64_t n, int64_t* slot_counts) {
  static_assert(kScanThreads == kWarp * kWarp, "one warp scans the sums of all");
  __shared__ int64_t of_warp[kWarp];
  next_may_start();
  wait_for_previous();
  const int64_t total = E * chunks, run = (total + kScanThreads - 1) / kScanThreads;
  const int64_t first = threadIdx.x * run < total ? threadIdx.x * run : total;
  const int64_t end = first + run < total ? first + run : total;
  int64_t sum = 0;
  for (int64_t i = first; i < end; ++i) sum += counts[i];
  int64_t so_far = sum_of_lower(sum);
  const int warp = threadIdx.x / kWarp;
  if (threadIdx.x % kWarp == kWarp - 1) of_warp[warp] = so_far + sum;
  __syncthreads();
  if (warp == 0) of_warp[threadIdx.x] = sum_of_lower(of_warp[threadIdx.x]);
  __syncthreads();
  so_far += of_warp[warp];
  for (int64_t i = first; i < end; ++i) {
    const int64_t here = counts[i];
    counts[i] = so_far;
    so_far += here;
  }
  __syncthreads();
  for (int64_t s = threadIdx.x; slot_counts && s < E; s += kScanThreads)
    slot_counts[s] = (s + 1 < E ? counts[(s + 1) * chunks] : n) - counts[s * chunks];
}

/// Loads slots and row offsets for many steps at once: only the placement depends on the previous step.
__global__ void scatter_kernel(const int64_t* index, const int64_t* slot_of_expert, int64_t n, int64_t E,
                               const int64_t* starts, int64_t* order, int64_t* inverse) {
  int* const seen = dynamic_shared<int>();  // rows of each slot that this warp has placed
  for (int64_t s = threadIdx.x; s < E; s += kWarp) seen[s] = 0;
  __syncwarp();
  wait_for_previous();
  const unsigned lower_lanes = (1u << threadIdx.x) - 1;
  for (int64_t batch = blockIdx.x * kChunk; batch < (blockIdx.x + 1) * kChunk && batch < n; batch += kSteps * kWarp) {
    int slot[kSteps];
    int64_t start[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int64_t i = batch + step * kWarp + threadIdx.x;
      slot[step] = i < n ? static_cast<int>(slot_of(index, slot_of_expert, i)) : -1;
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      start[step] = slot[step] >= 0 ? starts[slot[step] * int64_t{gridDim.x} + blockIdx.x] : 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int64_t i = batch + step * kWarp + threadIdx.x;
      const unsigned peers = __match_any_sync(kAllLanes, slot[step]);
      const int rank = __popc(peers & lower_lanes);
      if (slot[step] >= 0) {
        const int64_t j = start[step] + seen[slot[step]] + rank;
        order[j] = i;
        inverse[i] = j;
      }
      __syncwarp();
      if (slot[step] >= 0 && rank == 0) seen[slot[step]] += __popc(peers);
      __syncwarp();
    }
  }
}

}  // namespace

WtStatus sort_by_expert(void* handle, const int64_t* index, const int64_t* slot_of_expert, int64_t n, int64_t E,
                        int64_t* order, int64_t* inverse, int64_t* slot_counts) {
  const cudaStream_t stream = stream_of(handle);
  if (n == 0) {
    if (!slot_counts) return WT_OK;
    return status_of(cudaMemsetAsync(slot_counts, 0, static_cast<size_t>(E) * sizeof(int64_t), stream),
                     "wt_sort_by_expert");
  }
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  const Scratch<int64_t> counts(handle, E * chunks);
  if (WtStatus bad = status_of(counts.error(), "wt_sort_by_expert")) return bad;
  const unsigned blocks = static_cast<unsigned>(chunks);
  const size_t shared_bytes = static_cast<size_t>(E) * sizeof(int);
  launch(count_kernel, blocks, kThreads, shared_bytes, stream, index, slot_of_expert, n, E, counts.data());
  if (WtStatus bad = launched("wt_sort_by_expert")) return bad;
  cudaError_t error =
      launch_beside_previous(scan_kernel, 1, kScanThreads, 0, stream, counts.data(), E, chunks, n, slot_counts);
  if (error == cudaSuccess)
    error = launch_beside_previous(scatter_kernel, blocks, kWarp, shared_bytes, stream, index, slot_of_expert, n, E,
                                   counts.data(), order, inverse);
  return status_of(error, "wt_sort_by_expert");
}

}  // namespace wt::kernels::cuda
