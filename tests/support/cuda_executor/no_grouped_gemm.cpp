// The grouped GEMM's instructions are not the executor's: the API says so.
#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {

template <class E>
WtStatus grouped_gemm(void*, GroupedForm, GroupedShape, const void*, const void*, const int32_t*, void*) {
  return fail(WT_UNSUPPORTED,
              "wt_grouped_gemm: the executor has no Hopper instructions; allowed the CPU; run it there");
}
template decltype(grouped_gemm<float>) grouped_gemm<float>;
template decltype(grouped_gemm<__nv_bfloat16>) grouped_gemm<__nv_bfloat16>;

}  // namespace wt::kernels::cuda
