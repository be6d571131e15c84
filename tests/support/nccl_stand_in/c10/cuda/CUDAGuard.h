#pragma once
#include "c10/cuda/CUDAEvent.h"

namespace c10::cuda {

class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(const CUDAStream& stream) : before_(lanes::current_stream()) {
    lanes::set_current_stream(stream.number);
  }
  ~CUDAStreamGuard() { lanes::set_current_stream(before_); }
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;

 private:
  int before_;
};

}  // namespace c10::cuda
