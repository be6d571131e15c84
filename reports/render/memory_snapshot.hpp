// A rank's memory over a step as the snapshot file that PyTorch's memory viewer opens (pytorch.org/memory_viz), in the
// form of torch.cuda.memory._dump_snapshot.
#pragma once
#include <string>

#include "sim/program/memory/memory_replay.hpp"

namespace wt {

/// The bytes of the file, a pickle of protocol 2: one segment for all addresses, and an event for every buffer that
/// is allocated or freed. A buffer's stack names the buffer, its layer and the op. `replay` has events, and is of
/// `program`. Addresses are the lowest free ones, not those of PyTorch's allocator.
std::string memory_snapshot(const Program& program, const MemoryReplay& replay);

}  // namespace wt
