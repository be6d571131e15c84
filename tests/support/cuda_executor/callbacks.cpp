// What g++ calls before every load and store of code compiled with -fsanitize=thread, and where an index leaves an
// array
// (-fsanitize=bounds), in place of those sanitizers' own libraries.
#include <fmt/format.h>

#include <cstdint>

#include "tests/support/cuda_executor/threads.hpp"

using wt::cuda_executor::Access;
using wt::cuda_executor::touch;

namespace {
void touch_aligned(void* at, size_t bytes, Access access, const void* code) {
  if (wt::cuda_executor::running && reinterpret_cast<uintptr_t>(at) % bytes != 0)
    wt::cuda_executor::fail(fmt::format("an access of {} bytes at {}, which is no multiple of them", bytes, at));
  touch(at, bytes, access, code);
}
}  // namespace

extern "C" {
void __tsan_init() {}
#define WT_OF_SIZE(bytes)                                                                                      \
  void __tsan_read##bytes(void* at) { touch_aligned(at, bytes, Access::read, __builtin_return_address(0)); }   \
  void __tsan_write##bytes(void* at) { touch_aligned(at, bytes, Access::write, __builtin_return_address(0)); } \
  void __tsan_unaligned_read##bytes(void* at) { touch(at, bytes, Access::read, __builtin_return_address(0)); } \
  void __tsan_unaligned_write##bytes(void* at) { touch(at, bytes, Access::write, __builtin_return_address(0)); }
WT_OF_SIZE(1)
WT_OF_SIZE(2)
WT_OF_SIZE(4)
WT_OF_SIZE(8)
WT_OF_SIZE(16)
#undef WT_OF_SIZE
void __tsan_read_range(void* at, size_t bytes) { touch(at, bytes, Access::read, __builtin_return_address(0)); }
void __tsan_write_range(void* at, size_t bytes) { touch(at, bytes, Access::write, __builtin_return_address(0)); }
// Of the host's code beside the kernels.
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
uint64_t __tsan_atomic64_load(const volatile uint64_t* at, int) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
void __tsan_atomic64_store(volatile uint64_t* at, uint64_t value, int) {
  __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}

struct WtSourceLocation {  // of the sanitizers
  const char* file;
  uint32_t line, column;
};
void __ubsan_handle_out_of_bounds(const WtSourceLocation* where, void* index) {
  if (wt::cuda_executor::running)
    wt::cuda_executor::fail(fmt::format("{}:{}: index {} is outside of its array", where->file, where->line,
                                        reinterpret_cast<int64_t>(index)));
}
}
