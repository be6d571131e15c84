// The backend table of one instruction set. One source file per set includes it, compiled with that set's flags.
#pragma once
#include "kernels/cpu/adamw.hpp"
#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/cpu_rope.hpp"
#include "kernels/cpu/cpu_router.hpp"
#include "kernels/cpu/grouped.hpp"
#include "kernels/cpu/lion.hpp"
#include "kernels/cpu/loss.hpp"
#include "kernels/cpu/norm.hpp"
#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/swiglu.hpp"

namespace {

template <class E>
constexpr Backend backend_of() {
  return {rmsnorm_forward<E>,
          rmsnorm_backward<E>,
          rope_forward<E>,
          rope_backward<E>,
          router_forward,
          router_backward,
          sort_by_expert,
          gather<E>,
          permute_backward<E>,
          combine_forward<E>,
          combine_backward<E>,
          swiglu_forward<E>,
          swiglu_backward<E>,
          cross_entropy<E>,
          quantize_blocks<E>,
          dequantize_blocks<E>,
          grouped_gemm<E>,
          adamw,
          lion};
}

constexpr Backend kTable[] = {backend_of<float>(), backend_of<Bf16>()};

}  // namespace
