// Stands for CUDA's header: the types of the driver's functions, and how the runtime finds them.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

using PFN_cuTensorMapEncodeTiled_v12000 = decltype(&wt_encode_tiled);

enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
enum { cudaEnableDefault };
inline cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned, int,
                                                    cudaDriverEntryPointQueryResult* result) {
  const bool known = std::strcmp(name, "cuTensorMapEncodeTiled") == 0;
  *found = known ? reinterpret_cast<void*>(&wt_encode_tiled) : nullptr;
  *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
