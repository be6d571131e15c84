// Versions of NVIDIA's libraries that this process has loaded.
#pragma once
#include "configs/machine/fingerprint.hpp"

namespace wt {

/// cublas, cudnn and nccl: "13.1.0", "9.19.0", "2.28.9". Found by the libraries' own version functions among the
/// process's global symbols, so that this builds without CUDA. Libraries that are not loaded are left out.
Fingerprint cuda_library_facts();

}  // namespace wt
