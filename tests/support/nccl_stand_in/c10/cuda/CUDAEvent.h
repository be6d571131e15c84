// Streams and events of the host: what is issued is done at once, and lanes.hpp keeps what could run beside what.
#pragma once
#include "lanes.hpp"
#include "nccl.h"

inline void cudaDeviceSynchronize() {}

namespace c10::cuda {

struct CUDAStream {
  int number = 0;
  cudaStream_t stream() const { return reinterpret_cast<cudaStream_t>(static_cast<std::intptr_t>(number)); }
};
inline CUDAStream getCurrentCUDAStream() { return {lanes::current_stream()}; }
inline CUDAStream getStreamFromPool(bool /*isHighPriority*/) { return {lanes::new_stream()}; }

class CUDAEvent {
 public:
  void record() { reached_ = lanes::record(); }
  void block(const CUDAStream& stream) { lanes::block(reached_, stream.number); }
  bool query() const { return true; }

 private:
  lanes::Clock reached_;
};

}  // namespace c10::cuda
