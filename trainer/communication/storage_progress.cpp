#include "trainer/communication/storage_progress.hpp"

#include "configs/base/clock.hpp"
#include "trainer/pch.hpp"

namespace wt {

void StorageProgress::moves() noexcept try {
  constexpr double kBetween_s = 10;  // thousands of ranks share one store
  const std::lock_guard lock(mutex_);
  const double now_s = steady_s();
  if (told_at_s_ > 0 && now_s - told_at_s_ < kBetween_s) return;
  told_at_s_ = now_s;
  store_.set(kStorageMoves, fmt::format("{} {}", rank_, now_s));
} catch (const std::exception&) {
}

}  // namespace wt
