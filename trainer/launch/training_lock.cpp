#include "trainer/launch/training_lock.hpp"

#include <fcntl.h>

#include <cstdlib>

#include "trainer/communication/rank_environment.hpp"
#include "trainer/launch/rank_processes.hpp"

namespace wt {
namespace {

/// What torchrun calls a launch that was given no --rdzv-id.
constexpr const char* kNoName = "none";

}  // namespace

std::unique_ptr<FolderLock> lock_for_training(const std::filesystem::path& folder) {
  if (std::getenv(kHeldVariable)) return nullptr;
  const std::string launch = launch_name();
  return std::make_unique<FolderLock>(
      folder, FolderLock::Use{".train.lock", "launch that trains into it", launch == kNoName ? "" : launch});
}

void keep_lock_from_children() {
  if (const char* held = std::getenv(kHeldVariable)) fcntl(std::atoi(held), F_SETFD, FD_CLOEXEC);
}

}  // namespace wt
