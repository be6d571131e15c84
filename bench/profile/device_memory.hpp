// Memory of NVIDIA devices, asked of the driver's library NVML, which is loaded when asked: no CUDA is needed to build this.
#pragma once

namespace wt {

/// Free bytes of the first device that nvidia-smi lists. Throws Error{runtime}: no driver, no device.
double free_device_memory();

}  // namespace wt
