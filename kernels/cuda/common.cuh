// Shared by the CUDA kernels: activation types, reductions in a fixed order, and launches that return a status.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <initializer_list>
#include <type_traits>

#include "kernels/backend.hpp"

namespace wt::kernels::cuda {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int64_t kMaxBlocks = 1 << 20;  // larger sizes use grid-stride loops

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class E>
__device__ inline E from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

/// The values that a thread loads or stores at once.
template <class E, int kCount>
struct alignas(kCount * sizeof(E) < 16 ? kCount * sizeof(E) : 16) Pack {
  E of[kCount];
};
/// A pack of 16 bytes, the most that one instruction moves.
template <class E>
constexpr int kWide = 16 / sizeof(E);

/// The widest word that divides a pack.
template <class P>
using WordOf =
    std::conditional_t<sizeof(P) % 16 == 0, uint4,
                       std::conditional_t<sizeof(P) == 8, uint2, std::conditional_t<sizeof(P) == 4, unsigned, P>>>;

/// One access per word: a plain copy of a pack may be split into single values.
template <class P>
__device__ inline P load(const P* from) {
  P out;
#pragma unroll
  for (size_t i = 0; i < sizeof(P) / sizeof(WordOf<P>); ++i)
    reinterpret_cast<WordOf<P>*>(&out)[i] = reinterpret_cast<const WordOf<P>*>(from)[i];
  return out;
}
template <class E, int kCount>
struct Floats {
  float of[kCount];
  Floats() = default;
  __device__ explicit Floats(const Pack<E, kCount>& pack) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) of[j] = to_float(pack.of[j]);
  }
  __device__ Pack<E, kCount> rounded() const {
    Pack<E, kCount> pack;
    if constexpr (std::is_same_v<E, __nv_bfloat16> && kCount % 2 == 0) {
#pragma unroll
      for (int j = 0; j < kCount; j += 2)  // one instruction converts two values
        reinterpret_cast<__nv_bfloat162&>(pack.of[j]) = __floats2bfloat162_rn(of[j], of[j + 1]);
    } else {
#pragma unroll
      for (int j = 0; j < kCount; ++j) pack.of[j] = from_float<E>(of[j]);
    }
    return pack;
  }
};

struct Sum {
  template <class V>
  __device__ static V of(V a, V b) {
    return a + b;
  }
};
struct Max {
  template <class V>
  __device__ static V of(V a, V b) {
    return a > b ? a : b;
  }
};

/// Reduces over groups of kLanes neighbouring lanes; every lane gets the result. A butterfly, so that all lanes combine
/// values in the same order. All lanes of the warp must call it.
template <class Op, int kLanes = kWarp, class V>
__device__ inline V warp_reduce(V x) {
  for (int offset = kLanes / 2; offset > 0; offset /= 2) x = Op::of(x, __shfl_xor_sync(kAllLanes, x, offset));
  return x;
}

/// Reduces over a block of kInBlock threads; every thread gets the result. All threads must call it.
template <class Op, int kInBlock = kThreads>
__device__ inline float block_reduce(float x) {
  __shared__ float of_warp[kInBlock / kWarp];
  x = warp_reduce<Op>(x);
  __syncthreads();  // the previous result may still be in use
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = x;
  __syncthreads();
  float result = of_warp[0];
  for (int w = 1; w < kInBlock / kWarp; ++w) result = Op::of(result, of_warp[w]);
  return result;
}

/// Sums `rows` numbers that are `stride` apart, in a block of (kWarp, kWarp) threads, one column per threadIdx.x.
/// Thread y adds rows y, y + kWarp and so on; then y = 0 adds the threads' sums in order and returns the total. All
/// threads must call it, once per kernel.
template <class To, class From>
__device__ inline To column_sum(const From* column, int64_t stride, int64_t rows) {
  __shared__ To of_thread[kWarp][kWarp];
  To sum = 0;
#pragma unroll 8
  for (int64_t r = threadIdx.y; r < rows; r += kWarp) sum += static_cast<To>(column[r * stride]);
  of_thread[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (int y = 1; y < kWarp && threadIdx.y == 0; ++y) sum += of_thread[y][threadIdx.x];
  return sum;
}

/// A kernel launched by launch_beside_previous() starts up while the previous kernel of the stream still runs, once all
/// blocks of that one have called next_may_start(). Before it accesses global memory it calls wait_for_previous(),
/// which returns when all earlier work of the stream has ended and its results are visible.
__device__ inline void next_may_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// Error at most two units in the last place and 2^-126. An exact division would dominate the kernel's time.
__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }

/// body(row) for the rows of this threadIdx.y in a grid of row_threads().
template <class Body>
__device__ inline void for_each_row(int64_t rows, Body body) {
#pragma unroll 1
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < rows; row += int64_t{gridDim.x} * blockDim.y)
    body(row);
}

constexpr int kAhead = 4;  // packs of a row that a thread loads before it uses the first

/// body(number, pack) for this thread's packs of a row.
template <class P, class Body>
__device__ inline void for_packs(const P* row, int64_t packs, Body body) {
#pragma unroll 1
  for (int64_t first = threadIdx.x; first < packs; first += kAhead * blockDim.x) {
    P ahead[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (first + i * blockDim.x < packs) ahead[i] = load(row + first + i * blockDim.x);
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (first + i * blockDim.x < packs) body(first + i * blockDim.x, ahead[i]);
  }
}

inline cudaStream_t stream_of(void* handle) { return static_cast<cudaStream_t>(handle); }

inline unsigned blocks_for(int64_t items, int64_t per_block = 1) {
  const int64_t blocks = (items + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

/// A block of kThreads for rows of `packs`: as many threads per row as it has packs, rounded up to a power of two.
inline dim3 row_threads(int64_t packs) {
  unsigned beside = 1;
  while (beside < packs && beside < kThreads) beside *= 2;
  return {beside, kThreads / beside};
}

/// launch(std::integral_constant<int, values of a pack>()). A pack has 16 bytes where rows of D values are aligned to
/// them in all arrays, otherwise one value.
template <class E, class Launch>
void with_packs(int64_t D, std::initializer_list<const void*> arrays, Launch launch) {
  bool wide = D % kWide<E> == 0;
  for (const void* array : arrays) wide = wide && reinterpret_cast<uintptr_t>(array) % 16 == 0;
  if (wide) return launch(std::integral_constant<int, kWide<E>>());
  launch(std::integral_constant<int, 1>());
}
template <class E, int kCount>
const Pack<E, kCount>* packs_of(const void* array) {
  return static_cast<const Pack<E, kCount>*>(array);
}
template <class E, int kCount>
Pack<E, kCount>* packs_of(void* array) {
  return static_cast<Pack<E, kCount>*>(array);
}

inline WtStatus status_of(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return WT_OK;
  int device = -1;
  cudaGetDevice(&device);
  if (error == cudaErrorMemoryAllocation)
    return fail(WT_OUT_OF_MEMORY, "%s: no memory on device %d; allowed what it has free; lower the sizes", what,
                device);
  return fail(
      WT_CUDA_FAILURE,
      "%s: CUDA error '%s' on device %d; allowed none; check that the stream and the arrays belong to that device",
      what, cudaGetErrorString(error), device);
}

/// The status of the preceding launch.
inline WtStatus launched(const char* what) { return status_of(cudaGetLastError(), what); }

/// Launches `kernel`; launched() also reports its failure. Every launch goes through here, so that the kernels also
/// compile for an executor on the CPU (tests/fixtures/cuda_executor).
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 threads, size_t shared_bytes, cudaStream_t stream,
                   Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = threads, config.dynamicSmemBytes = shared_bytes, config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

/// Launches a kernel that calls wait_for_previous(). Devices without this feature launch it normally.
template <class... Parameters, class... Arguments>
cudaError_t launch_beside_previous(void (*kernel)(Parameters...), dim3 grid, dim3 threads, size_t shared_bytes,
                                   cudaStream_t stream, Arguments... arguments) {
  int device = 0, major = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute beside{};
  beside.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  beside.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = threads, config.dynamicSmemBytes = shared_bytes, config.stream = stream;
  config.attrs = &beside, config.numAttrs = major >= 9 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

/// The launch's dynamic shared memory, aligned to 16 bytes.
template <class V>
__device__ inline V* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<V*>(dynamic_shared_bytes);
}

/// Device memory allocated in stream order, for partial sums between two kernels of one call.
template <class V>
class Scratch {
 public:
  Scratch(void* handle, int64_t count) : stream_(stream_of(handle)) {
    error_ = cudaMallocAsync(reinterpret_cast<void**>(&data_), static_cast<size_t>(count) * sizeof(V), stream_);
  }
  ~Scratch() {
    if (data_) cudaFreeAsync(data_, stream_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  V* data() const { return data_; }
  cudaError_t error() const { return error_; }

 private:
  cudaStream_t stream_;
  V* data_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

template <class E>
WtStatus rmsnorm_forward(void*, const void*, const void*, float, int64_t, int64_t, void*, float*);
template <class E>
WtStatus rmsnorm_backward(void*, const void*, const void*, const void*, const float*, int64_t, int64_t, void*, float*);
template <class E>
WtStatus rope_forward(void*, const void*, const float*, const float*, RopeShape, void*, void*, void*);
template <class E>
WtStatus rope_backward(void*, const void*, const void*, const void*, const float*, const float*, RopeShape, void*);
WtStatus router_forward(void*, WtRouterSpec, const float*, const float*, int64_t*, float*, float*, int64_t*, double*,
                        double*);
WtStatus router_backward(void*, WtRouterSpec, const float*, const float*, const int64_t*, const float*, const float*,
                         float, float*);
WtStatus sort_by_expert(void*, const int64_t*, const int64_t*, int64_t, int64_t, int64_t*, int64_t*, int64_t*);
template <class E>
WtStatus gather(void*, const void*, const int64_t*, int64_t, int64_t, int64_t, void*);
template <class E>
WtStatus permute_backward(void*, const void*, const int64_t*, int64_t, int64_t, int64_t, bool, void*);
template <class E>
WtStatus combine_forward(void*, const void*, const int64_t*, const float*, const void*, int64_t, int64_t, int64_t,
                         void*);
template <class E>
WtStatus combine_backward(void*, const void*, const void*, const int64_t*, const float*, int64_t, int64_t, int64_t,
                          void*, float*);
template <class E>
WtStatus swiglu_forward(void*, const void*, int64_t, int64_t, void*);
template <class E>
WtStatus swiglu_backward(void*, const void*, const void*, int64_t, int64_t, void*);
template <class E>
WtStatus cross_entropy(void*, void*, const int64_t*, int64_t, int64_t, float, double*);
template <class E>
WtStatus quantize_blocks(void*, const void*, bool, int64_t, int64_t, void*, float*);
template <class E>
WtStatus dequantize_blocks(void*, const void*, const float*, bool, int64_t, int64_t, void*);
template <class E>
WtStatus grouped_gemm(void*, GroupedForm, GroupedShape, const void*, const void*, const int32_t*, void*);
WtStatus adamw(void*, float*, float*, float*, const float*, int64_t, AdamwSettings);
WtStatus lion(void*, float*, float*, const float*, int64_t, LionSettings);

}  // namespace wt::kernels::cuda
