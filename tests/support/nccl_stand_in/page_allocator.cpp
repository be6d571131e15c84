// LibTorch's memory of the host in whole pages, each tensor in its own, so that lanes.hpp can protect it.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "lanes.hpp"

namespace {

void give_back(void* pointer) {
  if (pointer) lanes::give_back_pages(static_cast<char*>(pointer));
}

class PageAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    char* const begin = n == 0 ? nullptr : lanes::take_pages(n);
    if (n > 0 && !begin) throw std::bad_alloc();
    return {begin, begin, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t n) const override { default_copy_data(to, from, n); }
};

/// Above the priority of the trainer's counter of memory.
const bool installed = [] {
  static PageAllocator* const pages = new PageAllocator;
  c10::SetCPUAllocator(pages, 101);
  return true;
}();

}  // namespace
