// Stands for CUDA's header where kernels run on the CPU: what the kernels and their launches use of it, carried out by
// tests/support/cuda_executor/executor.hpp. Streams are in order of the calls; nothing runs later.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>

#include "tests/support/cuda_executor/executor.hpp"
#include "tests/support/cuda_executor/memory.hpp"

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ thread_local  // static at block scope; every block finds it unwritten
#define __CUDA_ARCH__ 900

struct dim3 : wt::cuda_executor::Index3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : Index3{x_, y_, z_} {}
};
extern wt::cuda_executor::Index3 threadIdx, blockIdx, blockDim, gridDim;

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }

template <class V>
constexpr V min(V a, V b) {
  return b < a ? b : a;
}
template <class V>
constexpr V max(V a, V b) {
  return a < b ? b : a;
}
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline float __fdividef(float a, float b) { return a / b; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
template <class Half2>
float2 __half22float2(Half2 x) {
  return {x.raw.x, x.raw.y};
}

// Instructions that threads come to together.
using WtWhere = wt::cuda_executor::Where;

inline void __syncthreads(WtWhere where = WtWhere::current()) { wt::cuda_executor::sync_block(where); }
inline void __syncwarp(unsigned mask = 0xffffffffu, WtWhere where = WtWhere::current()) {
  wt::cuda_executor::sync_warp(mask, where);
}

inline unsigned wt_lane() { return wt::cuda_executor::thread_number() % 32; }

/// What lane source(own lane within `width`) of those beside gave; its own where that lies outside.
template <class V, class Source>
V wt_shuffle(unsigned mask, V value, int width, const char* instruction, WtWhere where, Source source) {
  static_assert(sizeof(V) <= 8);
  if (width < 1 || width > 32 || (width & (width - 1)) != 0)
    wt::cuda_executor::fail(std::string(instruction) + " with a width that is no power of two up to 32");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(V));
  const std::array<uint64_t, 32>& all = wt::cuda_executor::meet(mask, bits, instruction, where);
  const int lane = static_cast<int>(wt_lane()), first = lane / width * width, from = source(lane - first);
  if (from >= width && std::string(instruction) == "__shfl_xor_sync")
    wt::cuda_executor::fail(std::string(instruction) + " beyond its width, which is not modelled");
  if (from < 0 || from >= width) return value;
  const int of = first + from;
  if (!(mask >> of & 1))
    wt::cuda_executor::fail(std::string(instruction) + " reads lane " + std::to_string(of) +
                            ", which its mask does not name");
  std::memcpy(&value, &all[static_cast<size_t>(of)], sizeof(V));
  return value;
}
template <class V>
V __shfl_sync(unsigned mask, V value, int lane, int width = 32, WtWhere where = WtWhere::current()) {
  return wt_shuffle(mask, value, width, "__shfl_sync", where, [&](int) { return lane & (width - 1); });
}
template <class V>
V __shfl_xor_sync(unsigned mask, V value, int lanes, int width = 32, WtWhere where = WtWhere::current()) {
  return wt_shuffle(mask, value, width, "__shfl_xor_sync", where, [&](int own) { return own ^ lanes; });
}
template <class V>
V __shfl_up_sync(unsigned mask, V value, unsigned lanes, int width = 32, WtWhere where = WtWhere::current()) {
  return wt_shuffle(mask, value, width, "__shfl_up_sync", where,
                    [&](int own) { return own - static_cast<int>(lanes); });
}
template <class V>
V __shfl_down_sync(unsigned mask, V value, unsigned lanes, int width = 32, WtWhere where = WtWhere::current()) {
  return wt_shuffle(mask, value, width, "__shfl_down_sync", where,
                    [&](int own) { return own + static_cast<int>(lanes); });
}

/// combine(so far, value) over the values of the lanes in the mask, from `start` on.
template <class R, class V, class Combine>
R wt_over_lanes(unsigned mask, V value, const char* instruction, WtWhere where, R start, Combine combine) {
  static_assert(sizeof(V) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(V));
  const std::array<uint64_t, 32>& all = wt::cuda_executor::meet(mask, bits, instruction, where);
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    std::memcpy(&value, &all[lane], sizeof(V));
    start = combine(start, value, lane);
  }
  return start;
}
inline unsigned __ballot_sync(unsigned mask, int predicate, WtWhere where = WtWhere::current()) {
  return wt_over_lanes(mask, predicate, "__ballot_sync", where, 0u,
                       [](unsigned so_far, int here, unsigned lane) { return so_far | unsigned{here != 0} << lane; });
}
inline int __any_sync(unsigned mask, int predicate, WtWhere where = WtWhere::current()) {
  return wt_over_lanes(mask, predicate, "__any_sync", where, 0,
                       [](int so_far, int here, unsigned) { return int{so_far || here}; });
}
inline int __all_sync(unsigned mask, int predicate, WtWhere where = WtWhere::current()) {
  return wt_over_lanes(mask, predicate, "__all_sync", where, 1,
                       [](int so_far, int here, unsigned) { return int{so_far && here}; });
}
template <class V>
unsigned __match_any_sync(unsigned mask, V value, WtWhere where = WtWhere::current()) {
  return wt_over_lanes(mask, value, "__match_any_sync", where, 0u, [&](unsigned so_far, V here, unsigned lane) {
    return so_far | unsigned{here == value} << lane;
  });
}
inline int __reduce_max_sync(unsigned mask, int value, WtWhere where = WtWhere::current()) {
  return wt_over_lanes(mask, value, "__reduce_max_sync", where, value,
                       [](int a, int b, unsigned) { return max(a, b); });
}
inline int __reduce_min_sync(unsigned mask, int value, WtWhere where = WtWhere::current()) {
  return wt_over_lanes(mask, value, "__reduce_min_sync", where, value,
                       [](int a, int b, unsigned) { return min(a, b); });
}

template <class V>
__attribute__((no_sanitize("thread"))) V atomicAdd(V* at, V value) {
  wt::cuda_executor::touch(at, sizeof(V), wt::cuda_executor::Access::atomic);
  const V before = *at;
  *at = before + value;
  return before;
}

inline void cudaTriggerProgrammaticLaunchCompletion() {}
inline void cudaGridDependencySynchronize() { wt::cuda_executor::wait_for_previous_launch(); }

// The runtime's calls.
enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation, cudaErrorInvalidValue };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaDeviceAttr {
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
  cudaDevAttrMultiProcessorCount
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization };
using cudaStream_t = struct CUstream_st*;
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : error == cudaErrorMemoryAllocation ? "out of memory" : "invalid argument";
}
inline cudaError_t wt_last_error = cudaSuccess;
inline cudaError_t cudaGetLastError() {
  const cudaError_t last = wt_last_error;
  wt_last_error = cudaSuccess;
  return last;
}
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : attribute == cudaDevAttrMultiProcessorCount ? 4 : 0;
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel kernel, cudaFuncAttribute, int bytes) {
  if (bytes < 0 || static_cast<size_t>(bytes) > wt::cuda_executor::kMostSharedBytes)
    return wt_last_error = cudaErrorInvalidValue;
  wt::cuda_executor::shared_limit(reinterpret_cast<const void*>(kernel)) = static_cast<size_t>(bytes);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = wt::cuda_executor::allocate(bytes);
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t) { return cudaMalloc(memory, bytes); }
inline cudaError_t cudaFree(void* memory) { return wt::cuda_executor::release_memory(memory), cudaSuccess; }
inline cudaError_t cudaFreeAsync(void* memory, cudaStream_t) { return cudaFree(memory); }
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice) wt::cuda_executor::written_by_host(to, bytes);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  wt::cuda_executor::written_by_host(memory, bytes);
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(memory, value, bytes);
}

/// Runs the kernel. Throws wt::cuda_executor::Failure.
template <class... Parameters>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               std::type_identity_t<Parameters>... arguments) {
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  };
  const Call call{kernel, {arguments...}};
  wt::cuda_executor::Launch launch;
  launch.grid = config->gridDim, launch.block = config->blockDim;
  launch.shared_bytes = config->dynamicSmemBytes;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    launch.beside_previous |= config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
  launch.body = [](const void* of) {
    const Call& of_call = *static_cast<const Call*>(of);
    std::apply(of_call.kernel, of_call.arguments);
  };
  launch.arguments = &call, launch.argument_bytes = sizeof(Call);
  const size_t threads = size_t{launch.block.x} * launch.block.y * launch.block.z;
  const size_t blocks = size_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const bool valid = threads > 0 && threads <= 1024 && blocks > 0 && launch.grid.y <= 65535 && launch.grid.z <= 65535 &&
                     launch.shared_bytes <= wt::cuda_executor::shared_limit(reinterpret_cast<const void*>(kernel));
  if (!valid) return wt_last_error = cudaErrorInvalidValue;
  wt::cuda_executor::run(launch);
  return cudaSuccess;
}
