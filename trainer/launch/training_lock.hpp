// One launch at a time trains into an output folder. Its processes are one launch: the agent on this machine holds the
// folder, and its ranks with it, until the last one has ended; of ranks that torchrun, Slurm or MPI start, the first
// rank holds it for all.
#pragma once
#include <filesystem>
#include <memory>

#include "configs/base/folder_lock.hpp"

namespace wt {

/// Of an agent, or of a first rank. Null in a rank whose agent holds the folder. Throws Error{usage} naming who trains
/// into it.
std::unique_ptr<FolderLock> lock_for_training(const std::filesystem::path& folder);

/// In every rank: what its agent gave it to hold is not handed on to programs that it starts.
void keep_lock_from_children();

}  // namespace wt
