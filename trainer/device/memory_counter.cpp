#include "trainer/device/memory_counter.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#ifdef WT_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace wt {
namespace {

std::atomic<std::int64_t> live{0}, peak{0};

/// Every block is preceded by its size. 64 bytes keep LibTorch's alignment.
constexpr std::size_t kHeader = 64;

void give_back(void* pointer) {
  if (!pointer) return;
  char* block = static_cast<char*>(pointer) - kHeader;
  live.fetch_sub(*reinterpret_cast<std::int64_t*>(block), std::memory_order_relaxed);
  c10::free_cpu(block);
}

/// The context is the pointer itself, as raw_allocate (oneDNN's scratch) requires.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (n == 0) return {nullptr, nullptr, &give_back, cpu};
    char* block = static_cast<char*>(c10::alloc_cpu(n + kHeader));
    const std::int64_t bytes = static_cast<std::int64_t>(n);
    *reinterpret_cast<std::int64_t*>(block) = bytes;
    const std::int64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    for (std::int64_t seen = peak.load(); now > seen && !peak.compare_exchange_weak(seen, now);) {
    }
    return {block + kHeader, block + kHeader, &give_back, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t n) const override { default_copy_data(to, from, n); }
};

}  // namespace

#ifdef WT_CUDA
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingDeviceAllocator::DeviceStats;

std::int64_t held_before = 0;  ///< bytes on the device when counting began

const Stat& of_all_pools(const c10::CachingAllocator::StatArray& pools) {
  return pools[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

DeviceStats stats_of(c10::Device device) { return c10::cuda::CUDACachingAllocator::getDeviceStats(device.index()); }

}  // namespace
#endif

void install_memory_counter([[maybe_unused]] c10::Device device) {
  static CountingAllocator counting;
  c10::SetCPUAllocator(&counting, 100);  // a higher priority than the default's
#ifdef WT_CUDA
  if (!device.is_cpu()) held_before = of_all_pools(stats_of(device).requested_bytes).current;
#endif
}

std::int64_t live_tensor_bytes([[maybe_unused]] c10::Device device) {
#ifdef WT_CUDA
  if (!device.is_cpu()) return of_all_pools(stats_of(device).requested_bytes).current - held_before;
#endif
  return live.load();
}

std::int64_t peak_tensor_bytes([[maybe_unused]] c10::Device device) {
#ifdef WT_CUDA
  if (!device.is_cpu()) return of_all_pools(stats_of(device).requested_bytes).peak - held_before;
#endif
  return peak.load();
}

void reset_peak_tensor_bytes([[maybe_unused]] c10::Device device) {
#ifdef WT_CUDA
  if (!device.is_cpu()) return c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
#endif
  peak.store(live.load());
}

std::int64_t reserved_tensor_bytes([[maybe_unused]] c10::Device device) {
#ifdef WT_CUDA
  if (!device.is_cpu()) return of_all_pools(stats_of(device).reserved_bytes).current;
#endif
  return 0;
}

std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace wt
