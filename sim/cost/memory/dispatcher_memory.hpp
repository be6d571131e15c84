// Buffers of a dispatcher of expert rows, which it takes from the driver: they are outside of the framework's
// allocator. One buffer serves all layers.
#pragma once
#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"

namespace wt {

/// DeepEP (dd758ca, legacy interface; UCCL-EP has its formulas): buffers of 10 channels (20 SMs) to the up to 8 ranks
/// of a node and to each node, by the configuration for the number of expert ranks, in bf16, and 32 MiB of workspace.
/// NVSHMEM's part is a multiple of 512 MiB. 0 for other dispatchers (all-to-all has none; what HybridEP takes is not
/// published).
double dispatcher_bytes(const ModelSpec& model, const Layout& layout);

}  // namespace wt
