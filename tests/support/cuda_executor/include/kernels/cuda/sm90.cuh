// Stands for kernels/cuda/sm90.cuh where kernels run on the CPU (tests/support/cuda_executor/sm90.hpp).
#pragma once
#include <cuda.h>

#include <cstring>

#include "tests/support/cuda_executor/sm90.hpp"

namespace wt::kernels::cuda {

using cuda_executor::barrier_init;
using cuda_executor::barrier_init_done;
using cuda_executor::fence_async_proxy;
using cuda_executor::shared_address;
using cuda_executor::Where;

inline void barrier_arrive(uint64_t* barrier, Where where = Where::current()) {
  cuda_executor::barrier_arrive(barrier, where);
}
inline void barrier_expect(uint64_t* barrier, int bytes, Where where = Where::current()) {
  cuda_executor::barrier_expect(barrier, bytes, where);
}
inline void barrier_wait(uint64_t* barrier, uint32_t parity, Where where = Where::current()) {
  cuda_executor::barrier_wait(barrier, parity, where);
}

inline void copy_box(const CUtensorMap* map, uint32_t target, uint64_t* barrier, int inner, int outer, int depth,
                     Where where = Where::current()) {
  cuda_executor::copy_box(wt_tensor_map(*map), target, barrier, {inner, outer, depth}, where);
}
inline void prefetch_map(const CUtensorMap*) {}

template <int kNumber, int kThreadCount>
void named_barrier(Where where = Where::current()) {
  cuda_executor::named_barrier(kNumber, kThreadCount, where);
}
template <int kRegisters>
void fewer_registers(Where where = Where::current()) {
  cuda_executor::change_registers(kRegisters, false, where);
}
template <int kRegisters>
void more_registers(Where where = Where::current()) {
  cuda_executor::change_registers(kRegisters, true, where);
}

inline void products_begin(Where where = Where::current()) { cuda_executor::products_begin(where); }
inline void products_commit(Where where = Where::current()) { cuda_executor::products_commit(where); }
template <int kInFlight>
void products_wait(Where where = Where::current()) {
  cuda_executor::products_wait(kInFlight, where);
}
template <bool kTransposedA, bool kTransposedB, size_t kRegisters>
void product(float (&d)[kRegisters], uint64_t a, uint64_t b, Where where = Where::current()) {
  cuda_executor::product(d, 2 * kRegisters, a, b, kTransposedA, kTransposedB, where);
}

}  // namespace wt::kernels::cuda
