// The CUDA backend's table.
#include "kernels/cuda/common.cuh"

namespace wt::kernels {
namespace {

template <class E>
constexpr Backend backend_of() {
  return {cuda::rmsnorm_forward<E>,
          cuda::rmsnorm_backward<E>,
          cuda::rope_forward<E>,
          cuda::rope_backward<E>,
          cuda::router_forward,
          cuda::router_backward,
          cuda::sort_by_expert,
          cuda::gather<E>,
          cuda::permute_backward<E>,
          cuda::combine_forward<E>,
          cuda::combine_backward<E>,
          cuda::swiglu_forward<E>,
          cuda::swiglu_backward<E>,
          cuda::cross_entropy<E>,
          cuda::quantize_blocks<E>,
          cuda::dequantize_blocks<E>,
          cuda::grouped_gemm<E>,
          cuda::adamw,
          cuda::lion};
}

const Backend kTable[] = {backend_of<float>(), backend_of<__nv_bfloat16>()};

}  // namespace

WtStatus cuda_backend(const char* function, int device, const Backend** table) {
  int current = -1;
  if (WtStatus bad = cuda::status_of(cudaGetDevice(&current), function)) return bad;
  if (current != device)
    return fail(WT_INVALID_ARGUMENT, "%s: device is %d; allowed the current device, %d; call cudaSetDevice first",
                function, device, current);
  *table = kTable;
  return WT_OK;
}

}  // namespace wt::kernels
