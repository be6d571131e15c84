// The functions of a backend (CPU instruction set and dtype, or CUDA and dtype), one per API entry. Before a call,
// dispatch.cpp has checked the arguments, and on the CPU the values of index arrays; empty work never reaches a
// backend. Shapes and formulas: kernels.h.
#pragma once
#include "kernels/kernels.h"

namespace wt::kernels {

struct RopeShape {
  int64_t B, S, H, KV, hd;
};

/// Products with x (rows,k), weight (groups,n,k), y (rows,n): y from x, dx from dy, dweight from dy and x.
enum class GroupedForm { forward, backward_rows, backward_weight };
struct GroupedShape {
  int64_t groups, rows, n, k;
};

struct AdamwSettings {
  float one_minus_beta1, beta2, one_minus_beta2, eps, grad_scale;
  float keep;              ///< 1 - lr * weight_decay
  float step_size;         ///< lr / (1 - beta1^step)
  float inverse_sqrt_bc2;  ///< 1 / sqrt(1 - beta2^step)
};

struct LionSettings {
  float one_minus_beta1, one_minus_beta2, grad_scale;
  float keep;       ///< 1 - lr * weight_decay
  float step_size;  ///< lr
};

/// `handle` is the cudaStream_t; the CPU ignores it.
struct Backend {
  WtStatus (*rmsnorm_forward)(void* handle, const void* x, const void* gain, float eps, int64_t T, int64_t D, void* y,
                              float* rstd);
  WtStatus (*rmsnorm_backward)(void* handle, const void* dy, const void* x, const void* gain, const float* rstd,
                               int64_t T, int64_t D, void* dx, float* dgain);
  WtStatus (*rope_forward)(void* handle, const void* qkv, const float* cos, const float* sin, RopeShape shape, void* q,
                           void* k, void* v);
  WtStatus (*rope_backward)(void* handle, const void* dq, const void* dk, const void* dv, const float* cos,
                            const float* sin, RopeShape shape, void* dqkv);
  WtStatus (*router_forward)(void* handle, WtRouterSpec spec, const float* logits, const float* bias, int64_t* index,
                             float* scores, float* weights, int64_t* counts, double* share_sums, double* lse_squares);
  WtStatus (*router_backward)(void* handle, WtRouterSpec spec, const float* dweights, const float* scores,
                              const int64_t* index, const float* dshare_sums, const float* logits, float dlse_squares,
                              float* dlogits);
  WtStatus (*sort_by_expert)(void* handle, const int64_t* index, const int64_t* slot_of_expert, int64_t n, int64_t E,
                             int64_t* order, int64_t* inverse, int64_t* slot_counts);
  /// y[j] = x[index[j] / divisor]: gather (divisor 1) and permute (divisor k) alike.
  WtStatus (*gather)(void* handle, const void* x, const int64_t* index, int64_t divisor, int64_t n, int64_t D, void* y);
  WtStatus (*permute_backward)(void* handle, const void* dy, const int64_t* inverse, int64_t T, int64_t k, int64_t D,
                               bool accumulate, void* dx);
  WtStatus (*combine_forward)(void* handle, const void* rows, const int64_t* inverse, const float* weights,
                              const void* residual, int64_t T, int64_t k, int64_t D, void* out);
  WtStatus (*combine_backward)(void* handle, const void* dout, const void* rows, const int64_t* inverse,
                               const float* weights, int64_t T, int64_t k, int64_t D, void* drows, float* dweights);
  WtStatus (*swiglu_forward)(void* handle, const void* gate_up, int64_t R, int64_t F, void* act);
  WtStatus (*swiglu_backward)(void* handle, const void* dact, const void* gate_up, int64_t R, int64_t F,
                              void* dgate_up);
  WtStatus (*cross_entropy)(void* handle, void* logits, const int64_t* target, int64_t T, int64_t V, float scale,
                            double* loss_sum);
  WtStatus (*quantize_blocks)(void* handle, const void* x, bool fp8, int64_t T, int64_t D, void* q, float* scale);
  WtStatus (*dequantize_blocks)(void* handle, const void* q, const float* scale, bool fp8, int64_t T, int64_t D,
                                void* x);
  WtStatus (*grouped_gemm)(void* handle, GroupedForm form, GroupedShape shape, const void* a, const void* b,
                           const int32_t* ends, void* out);
  WtStatus (*adamw)(void* handle, float* p, float* m, float* v, const float* g, int64_t n, AdamwSettings settings);
  WtStatus (*lion)(void* handle, float* p, float* m, const float* g, int64_t n, LionSettings settings);
};

inline constexpr int64_t kIgnoredTarget = WT_IGNORED_TARGET;
inline constexpr int64_t kQuantizeBlock = WT_QUANTIZE_BLOCK;
inline constexpr float kQuantizeZero = 7.88860905e-31f;  // 2^-100: for smaller values 127 / max could overflow
inline constexpr float kRouterTiny = 1e-20f;             // torchtitan's guard against dividing by a sum of zero
inline constexpr int32_t kRouterExcluded = INT32_MIN;    // below the order key of every number
inline constexpr int64_t kMaxCudaRouterExperts = 1024;   // 32 registers a lane
inline constexpr int64_t kMaxGroups = 1024;              // of a grouped GEMM: its schedule in shared memory, 8 KiB
inline constexpr int64_t kMaxCudaExperts = 8192;  // a sorting block's int counters per expert: 32 KiB of shared memory

/// Tables indexed by WtDtype.
const Backend* cpu_baseline();
#ifdef WT_KERNELS_X86
const Backend* cpu_avx2();
const Backend* cpu_avx512();
#endif
#ifdef WT_KERNELS_CUDA
/// Fails unless `device` is the calling thread's current device.
WtStatus cuda_backend(const char* function, int device, const Backend** table);
#endif

/// Records the message of a failed call and returns its status.
WtStatus fail(WtStatus status, const char* format, ...) __attribute__((format(printf, 2, 3)));
/// WT_OUT_OF_MEMORY: `function` could not allocate `count` things; the message says that a smaller `argument` needs
/// less.
WtStatus out_of_memory(const char* function, int64_t count, const char* things, const char* argument);

}  // namespace wt::kernels
