// Hopper's asynchronous instructions on the executor, written from PTX ISA 9.0: barriers in shared memory, the tensor
// copy engine, warpgroup products, registers moved between warpgroups, named barriers. include/kernels/cuda/sm90.cuh
// gives them the names that kernels call. Copies and products are agents, which run at some later time, in pieces.
//
// Beside what executor.hpp finds, these end a launch: a stage that is overwritten while it is read or read before it is
// there (agents race like threads), ordinary stores that agents read without a fence between, accumulators touched
// while a product is on its way or without the fence before it, warps of a warpgroup that do not issue the same, a
// descriptor that the manual leaves undefined, arrivals and bytes beyond a barrier's, waits that nothing ends.
#pragma once
#include "tests/support/cuda_executor/executor.hpp"
#include "tests/support/cuda_executor/tensor_map.hpp"

namespace wt::cuda_executor {

/// A mistake for tests to find: the instruction does something else than the kernel asked for.
enum class Planted {
  nothing,
  full_phase,        ///< consumers wait for the other parity
  empty_phase,       ///< the producer does
  early_reuse,       ///< one more product may be on its way than the kernel allows
  no_products_wait,  ///< sums are stored while products are on their way
  start_of_a,        ///< a descriptor starts one unit too far
  start_of_b,
  stride_of_b,   ///< the next 8 rows one unit too far
  few_bytes,     ///< 16 bytes fewer are expected of a stage
  many_bytes,    ///< and more
  one_arrival,   ///< a barrier of one arrival fewer
  no_init_done,  ///< no fence after initialisation
  no_async_fence,
  no_named_barrier,
  no_products_begin,
  many_registers  ///< 8 a thread more are asked for
};
extern Planted planted;

uint32_t shared_address(const void* in_dynamic);

void barrier_init(uint64_t* barrier, int arrivals);
void barrier_init_done();
void barrier_arrive(uint64_t* barrier, Where where);
void barrier_expect(uint64_t* barrier, int bytes, Where where);
void barrier_wait(uint64_t* barrier, uint32_t parity, Where where);

void copy_box(const TensorMap& map, uint32_t target, uint64_t* barrier, const std::array<int, 5>& corner, Where where);
void fence_async_proxy();
void named_barrier(unsigned number, unsigned threads, Where where);
void change_registers(int count, bool more, Where where);

void products_begin(Where where);
/// d (64 x columns) += A (64 x 16) B (16 x columns).
void product(float* d, unsigned columns, uint64_t a, uint64_t b, bool transposed_a, bool transposed_b, Where where);
void products_commit(Where where);
void products_wait(unsigned in_flight, Where where);

}  // namespace wt::cuda_executor
