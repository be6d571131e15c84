#include "trainer/memory_counter.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>

namespace wt {
namespace {

std::atomic<std::int64_t> live{0}, peak{0};

struct Counted {
  void* context;
  c10::DeleterFnPtr deleter;
  std::int64_t bytes;
};

void give_back(void* pointer) {
  auto* counted = static_cast<Counted*>(pointer);
  live.fetch_sub(counted->bytes, std::memory_order_relaxed);
  counted->deleter(counted->context);
  delete counted;
}

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}
  c10::DataPtr allocate(std::size_t n) override {
    c10::DataPtr data = inner_->allocate(n);
    const std::int64_t bytes = static_cast<std::int64_t>(n);
    const std::int64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    for (std::int64_t seen = peak.load(); now > seen && !peak.compare_exchange_weak(seen, now);) {
    }
    void* pointer = data.get();
    const c10::DeleterFnPtr deleter = data.get_deleter();
    auto* counted = new Counted{data.release_context(), deleter ? deleter : [](void*) {}, bytes};
    return {pointer, counted, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, std::size_t n) const override { default_copy_data(to, from, n); }

 private:
  c10::Allocator* inner_;
};

}  // namespace

void install_memory_counter() {
  static CountingAllocator counting(c10::GetDefaultCPUAllocator());
  c10::SetCPUAllocator(&counting, 100);  // above the default's priority
}

std::int64_t live_tensor_bytes() { return live.load(); }
std::int64_t peak_tensor_bytes() { return peak.load(); }
void reset_peak_tensor_bytes() { peak.store(live.load()); }

}  // namespace wt
