// Shared by the CUDA kernels: activation types, reductions in a fixed order, launches that turn failures into a status.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "kernels/backend.hpp"

namespace wt::kernels::cuda {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int64_t kMaxBlocks = 1 << 20;  // grid-stride loops cover the rest

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

struct Sum {
  __device__ static float of(float a, float b) { return a + b; }
};
struct Max {
  __device__ static float of(float a, float b) { return a > b ? a : b; }
};

/// Every lane gets the warp's result; a butterfly, so all lanes combine in the same tree.
template <class Op>
__device__ inline float warp_reduce(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x = Op::of(x, __shfl_xor_sync(kAllLanes, x, offset));
  return x;
}

/// Every thread of a block of kThreads gets the block's result. All threads must call it.
template <class Op>
__device__ inline float block_reduce(float x) {
  __shared__ float of_warp[kThreads / kWarp];
  x = warp_reduce<Op>(x);
  __syncthreads();  // the last result may still be read
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = x;
  __syncthreads();
  float result = of_warp[0];
  for (int w = 1; w < kThreads / kWarp; ++w) result = Op::of(result, of_warp[w]);
  return result;
}

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

inline cudaStream_t stream_of(void* handle) { return static_cast<cudaStream_t>(handle); }

inline unsigned blocks_for(int64_t items, int64_t per_block = 1) {
  const int64_t blocks = (items + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

inline WtStatus status_of(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return WT_OK;
  int device = -1;
  cudaGetDevice(&device);
  if (error == cudaErrorMemoryAllocation)
    return fail(WT_OUT_OF_MEMORY, "%s: no memory on device %d; allowed what it has free; lower the sizes", what,
                device);
  return fail(WT_CUDA_FAILURE,
              "%s: CUDA error '%s' on device %d; allowed none; check that the stream and the arrays "
              "belong to that device",
              what, cudaGetErrorString(error), device);
}

/// The status of the launch just made.
inline WtStatus launched(const char* what) { return status_of(cudaGetLastError(), what); }

/// Device memory in stream order, for partial sums between two kernels of one call.
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

}  // namespace wt::kernels::cuda
