// The clock of the kernel suite.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>

#include "bench/suites/suite_sampler.hpp"

namespace wt {

/// Thread-CPU time, or CUDA events on the current stream.
std::unique_ptr<Stopwatch> make_stopwatch(at::Device device);

}  // namespace wt
