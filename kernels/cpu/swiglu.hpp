// SwiGLU on fused [gate | up] rows.
#pragma once
#include "kernels/cpu/vec.hpp"

namespace {

template <class E>
WtStatus swiglu_forward(void*, const void* gate_up, int64_t R, int64_t F, void* act_RF) {
  const bool streamed = streams<E>(act_RF, R, F);
  for_each_row(R, 3 * F * static_cast<int64_t>(sizeof(E)), [=](int64_t r) {
    const E* gate = static_cast<const E*>(gate_up) + r * 2 * F;
    const E* up = gate + F;
    E* act = static_cast<E*>(act_RF) + r * F;
    for_blocks(F, [&](int64_t i, auto part) WT_LAMBDA {
      fetch(gate + i + 2 * F), fetch(up + i + 2 * F);
      const Vec g = load(gate + i, part);
      put(act + i, g * sigmoid_for<E>(g) * load(up + i, part), part, streamed);
    });
  });
  return WT_OK;
}

template <class E>
WtStatus swiglu_backward(void*, const void* dact_RF, const void* gate_up, int64_t R, int64_t F, void* dgate_up) {
  const bool streamed = dgate_up != gate_up && streams<E>(dgate_up, 2 * R, F);
  for_each_row(R, 5 * F * static_cast<int64_t>(sizeof(E)), [=](int64_t r) {
    const E* gate = static_cast<const E*>(gate_up) + r * 2 * F;
    const E* up = gate + F;
    const E* dact = static_cast<const E*>(dact_RF) + r * F;
    E* dgate = static_cast<E*>(dgate_up) + r * 2 * F;
    E* dup = dgate + F;
    for_blocks(F, [&](int64_t i, auto part) WT_LAMBDA {
      fetch(gate + i + 2 * F), fetch(up + i + 2 * F), fetch(dact + i + F);
      const Vec g = load(gate + i, part), u = load(up + i, part), d = load(dact + i, part);
      const Vec s = sigmoid_for<E>(g);
      put(dgate + i, d * u * s * (1.0f + g * (1.0f - s)), part, streamed);
      put(dup + i, d * g * s, part, streamed);
    });
  });
  return WT_OK;
}

}  // namespace
