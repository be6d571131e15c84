// Hopper's asynchronous instructions, one function each: barriers in shared memory (mbarrier), the tensor copy engine
// (TMA), warpgroup matrix products (wgmma), and moving registers between warpgroups. PTX ISA 9.0; only for sm_90a.
#pragma once
#include <cuda.h>
#include <stdint.h>

namespace wt::kernels::cuda {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void barrier_init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to the copy engine; then a block barrier.
__device__ inline void barrier_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// Arrives. The phase ends only after the copy engine has written `bytes`.
__device__ inline void barrier_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
__device__ inline bool barrier_passed(uint64_t* barrier, uint32_t parity) {
  uint32_t passed;
  asm volatile(
      "{ .reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p; }"
      : "=r"(passed)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return passed != 0;
}
/// Waits for the end of the phase with that parity. A lost wait becomes an error at the caller's next synchronisation
/// instead of a hang: it fails after 2^35 cycles, 17 s at 2 GHz; a normal wait takes microseconds.
__device__ inline void barrier_wait(uint64_t* barrier, uint32_t parity) {
  if (barrier_passed(barrier, parity)) return;
  const long long start = clock64();
  while (!barrier_passed(barrier, parity)) {
    if (clock64() - start > (1ll << 35)) __trap();
  }
}

/// Copies the box at (inner, outer, depth) of the tensor to shared memory; its bytes count towards `barrier`.
__device__ inline void copy_box(const CUtensorMap* map, uint32_t target, uint64_t* barrier, int inner, int outer,
                                int depth) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(target),
      "l"(map), "r"(shared_address(barrier)), "r"(inner), "r"(outer), "r"(depth)
      : "memory");
}
__device__ inline void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// Orders this thread's writes to shared memory before later accesses by tensor cores and copy engine.
__device__ inline void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
template <int kNumber, int kThreadCount>
__device__ inline void named_barrier() {
  asm volatile("bar.sync %0, %1;" ::"n"(kNumber), "n"(kThreadCount) : "memory");
}

template <int kRegisters>
__device__ inline void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Required before the first product of a series: makes accumulators written by other instructions visible.
__device__ inline void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most `kInFlight` committed series are running.
template <int kInFlight>
__device__ inline void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kInFlight) : "memory");
}

#define WT_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WT_D16(i) WT_D4(i), WT_D4(i + 4), WT_D4(i + 8), WT_D4(i + 12)
#define WT_D64(i) WT_D16(i), WT_D16(i + 16), WT_D16(i + 32), WT_D16(i + 48)
#define WT_NAMES_0_63                                                                                              \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
  "%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,"   \
  "%57,%58,%59,%60,%61,%62,%63"
#define WT_NAMES_64_127                                                                                              \
  "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91," \
  "%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115," \
  "%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

/// d (64 x 128, fp32) += A (64 x 16, bf16) B (16 x 128, bf16) from shared memory, by the whole warpgroup. Transposed
/// means that the operand's contiguous dimension is M or N instead of K.
template <bool kTransposedA, bool kTransposedB>
__device__ inline void product(float (&d)[64], uint64_t a, uint64_t b) {
  asm volatile(
      "{ .reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" WT_NAMES_0_63
      "}, %64, %65, accumulate, 1, 1, %66, %67; }"
      : WT_D64(0)
      : "l"(a), "l"(b), "n"(int{kTransposedA}), "n"(int{kTransposedB}));
}
/// The same, 256 columns wide.
template <bool kTransposedA, bool kTransposedB>
__device__ inline void product(float (&d)[128], uint64_t a, uint64_t b) {
  asm volatile(
      "{ .reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" WT_NAMES_0_63 "," WT_NAMES_64_127
      "}, %128, %129, accumulate, 1, 1, %130, %131; }"
      : WT_D64(0), WT_D64(64)
      : "l"(a), "l"(b), "n"(int{kTransposedA}), "n"(int{kTransposedB}));
}

#undef WT_D4
#undef WT_D16
#undef WT_D64
#undef WT_NAMES_0_63
#undef WT_NAMES_64_127

}  // namespace wt::kernels::cuda
