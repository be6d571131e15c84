// The kernels that a mixture-of-experts layer needs beyond library GEMMs, as one C API on raw pointers. They run on the
// CPU (vectorised, instruction set chosen at run time, one thread by default) and on CUDA devices (asynchronously on
// the given stream).
//
// Promises. Activations are fp32 or bf16 (`dtype`); arithmetic is fp32; bf16 results round to nearest even. The same
// arguments on the same device (and CPU instruction set) give the same bits: there are no floating-point atomics. All
// arrays are contiguous and row-major, and in the memory of the stream's device. Outputs must not overlap inputs unless
// a function says so. An array of zero elements may be null. Sizes: T tokens, D width, E experts, k choices a token, N
// = T*k rows.
//
// Errors. Every function returns a WtStatus; wt_kernel_error() then says what was found, what is allowed and what to
// do. On the CPU, index arrays are checked before anything is written. On CUDA a bad index is undefined behaviour, and
// the caller's next synchronisation reports a failure of the kernel itself.
#ifndef WT_KERNELS_KERNELS_H_
#define WT_KERNELS_KERNELS_H_
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { WT_FP32 = 0, WT_BF16 = 1 } WtDtype;

typedef enum {
  WT_OK = 0,
  WT_INVALID_ARGUMENT = 1,  ///< a size, a null pointer, a dtype or an index
  WT_NO_CUDA = 2,           ///< device >= 0 in a build without WT_CUDA
  WT_CUDA_FAILURE = 3,      ///< the CUDA runtime refused a launch
  WT_UNSUPPORTED = 4,       ///< valid arguments, but this device has no kernel for them: use the library
  WT_OUT_OF_MEMORY = 5      ///< valid arguments, but no memory for temporary arrays; nothing is written
} WtStatus;

/// Where a kernel runs. device -1 = CPU (handle unused); device >= 0 = that CUDA device, which must be the calling
/// thread's current one, and handle = its cudaStream_t (null = default stream).
typedef struct {
  int device;
  void* handle;
} WtStream;

/// Message of this thread's last call that did not return WT_OK ("" before any).
const char* wt_kernel_error(void);

/// Instruction set of the CPU kernels: "avx512", "avx2" or "baseline"; by default the best one of this machine.
const char* wt_kernel_isa(void);
/// Sets it for the whole process (tests, comparisons); WT_INVALID_ARGUMENT if the machine or the build lacks it. Do not
/// call it while another thread is inside a kernel.
WtStatus wt_kernel_set_isa(const char* name);

/// Threads that one call may use on the CPU, for the whole process. Default 1, because the ranks of one machine share
/// its cores; training never sets it. The results have the same bits for any number.
WtStatus wt_kernel_set_threads(int threads);

// RMSNorm.
/// rstd[t] = 1 / sqrt(mean_d x[t,d]^2 + eps);  y[t,d] = x[t,d] * rstd[t] * gain[d].
/// x, y (T,D) dtype; gain (D) dtype; rstd (T) fp32.
WtStatus wt_rmsnorm_forward(WtStream stream, WtDtype dtype, const void* x, const void* gain, float eps, int64_t T,
                            int64_t D, void* y, float* rstd);
/// h = dy * gain;  dx = rstd * (h - x * rstd^2 * mean_d(h * x));  dgain[d] += sum_t dy * x * rstd.
/// dy, x, dx (T,D) dtype; gain (D) dtype; rstd (T) fp32; dgain (D) fp32, accumulated into. dx may be dy.
/// The CPU kernel temporarily allocates T / 256 rows of D floats.
WtStatus wt_rmsnorm_backward(WtStream stream, WtDtype dtype, const void* dy, const void* x, const void* gain,
                             const float* rstd, int64_t T, int64_t D, void* dx, float* dgain);

// Rotary embedding.
/// Tables in host memory: cos, sin (S, hd/2) fp32, amplitude times cosine and sine of angle s * frequency[i], computed
/// in double. frequency (hd/2): radians per position, theta^(-2i/hd) unless positions are scaled.
WtStatus wt_rope_table(int64_t S, int64_t hd, const double* frequency, double amplitude, float* cos, float* sin);
/// Splits a fused projection and rotates queries and keys. qkv (B*S, (H+2*KV)*hd) dtype, heads in the order H queries,
/// KV keys, KV values; cos, sin (S, hd/2) fp32; q (B,H,S,hd), k and v (B,KV,S,hd) dtype. Pairs are (i, i+hd/2), the
/// rotate-half convention of Hugging Face Llama: a' = a cos - b sin, b' = b cos + a sin. hd even.
WtStatus wt_rope_split_forward(WtStream stream, WtDtype dtype, const void* qkv, const float* cos, const float* sin,
                               int64_t B, int64_t S, int64_t H, int64_t KV, int64_t hd, void* q, void* k, void* v);
/// The transpose: dq (B,H,S,hd), dk and dv (B,KV,S,hd) to dqkv (B*S, (H+2*KV)*hd), rotating by the negative angle.
WtStatus wt_rope_split_backward(WtStream stream, WtDtype dtype, const void* dq, const void* dk, const void* dv,
                                const float* cos, const float* sin, int64_t B, int64_t S, int64_t H, int64_t KV,
                                int64_t hd, void* dqkv);

// Router.
typedef enum { WT_SOFTMAX = 0, WT_SIGMOID = 1 } WtRouterScore;

/// How tokens choose their experts. There are S = T / sequence sequences; experts are in `groups` equal ranges.
typedef struct {
  int64_t T, E, k;     ///< 1 <= k <= experts of top_groups groups
  int64_t sequence;    ///< tokens of a sequence, over which the statistics are summed; divides T
  int score;           ///< a WtRouterScore: softmax of the logits over all experts, or sigmoid of each
  int64_t groups;      ///< divides E; 1 = no groups
  int64_t top_groups;  ///< experts of this many groups can be chosen
  int group_best;      ///< groups are ranked by the sum of their best 1 (DeepSeek-V2) or 2 (DeepSeek-V3) scores
  int normalize;       ///< divide the weights by their sum
  float scale;         ///< factor on the weights after normalisation
  int given;           ///< index is an input: forced routing, or a choice made before
} WtRouterSpec;

/// scores[t] = softmax(logits[t]) or sigmoid(logits[t]); index[t] = the k largest of scores[t] + bias in descending
/// order, among the best groups only; weights[t,c] = scale * scores[t,index[t,c]], divided by their sum over c + 1e-20
/// if normalize. Ties go to the lowest expert and group; a NaN counts as larger than any number, so that it reaches the
/// weights. For the balancing losses, per sequence: counts[s,e] = rows that chose e; share_sums[s,e] = sum of
/// scores[t,e], with sigmoid of scores[t,e] / (sum over e + 1e-20) (DeepSeek-V3 report, eq. 18); lse_squares[s] = sum
/// of log(sum_e exp(logits[t,e]))^2. Overwritten; each may be null. logits, scores (T,E) fp32; bias (E) fp32 or null;
/// weights (T,k) fp32; index (T,k); counts, share_sums (S,E); lse_squares (S). At most 1024 experts on CUDA.
WtStatus wt_router_forward(WtStream stream, WtRouterSpec spec, const float* logits, const float* bias, int64_t* index,
                           float* scores, float* weights, int64_t* counts, double* share_sums, double* lse_squares);
/// The gradient of sum(dweights * weights) + sum(dshare_sums * share_sums) + dlse_squares * sum(lse_squares).
/// dweights (T,k), dshare_sums (S,E) or null, logits (T,E), null unless dlse_squares is not zero, dlogits (T,E): fp32.
WtStatus wt_router_backward(WtStream stream, WtRouterSpec spec, const float* dweights, const float* scores,
                            const int64_t* index, const float* dshare_sums, const float* logits, float dlse_squares,
                            float* dlogits);

// Permute, gather, combine.
enum { WT_DROPPED = -1 };  ///< in an inverse index: the choice has no row, adds nothing and gets no gradient
/// Stable counting sort of n routed rows by slot_of_expert[index[i]] (by index[i] if slot_of_expert is null).
/// order[j] = flat (token*k + choice) number of sorted row j; inverse[order[j]] = j; slot_counts[s] = rows in slot s.
/// index, order, inverse (n); slot_of_expert (E) with values in [0, E), or null; slot_counts (E), or null.
/// At most 8192 experts on CUDA.
WtStatus wt_sort_by_expert(WtStream stream, const int64_t* index, const int64_t* slot_of_expert, int64_t n, int64_t E,
                           int64_t* order, int64_t* inverse, int64_t* slot_counts);
/// y[j] = x[order[j] / k]. x (T,D), y (T*k,D) dtype; order (T*k), every value in [0, T*k) once.
WtStatus wt_permute_forward(WtStream stream, WtDtype dtype, const void* x, const int64_t* order, int64_t T, int64_t k,
                            int64_t D, void* y);
/// dx[t] = sum_c dy[inverse[t*k+c]], summed in fp32 in the order of c; added to dx if accumulate. dy (T*k,D), with
/// dropped choices fewer rows; dx (T,D).
WtStatus wt_permute_backward(WtStream stream, WtDtype dtype, const void* dy, const int64_t* inverse, int64_t T,
                             int64_t k, int64_t D, int accumulate, void* dx);
/// y[j] = x[index[j]]. x (rows,D), y (n,D) dtype; index (n) with values in [0, rows). If index is a permutation, the
/// same function with the inverse index is the backward.
WtStatus wt_gather_rows(WtStream stream, WtDtype dtype, const void* x, const int64_t* index, int64_t rows, int64_t n,
                        int64_t D, void* y);
/// out[t] = residual[t] + sum_c weights[t,c] * rows[inverse[t*k+c]], summed in fp32 in the order of c.
/// rows (T*k,D) sorted, with dropped choices fewer; residual (T,D) or null, out (T,D) dtype; inverse (T*k); weights
/// (T,k) fp32. out may be residual.
WtStatus wt_combine_forward(WtStream stream, WtDtype dtype, const void* rows, const int64_t* inverse,
                            const float* weights, const void* residual, int64_t T, int64_t k, int64_t D, void* out);
/// drows[inverse[t*k+c]] = weights[t,c] * dout[t];  dweights[t,c] = sum_d dout[t,d] * rows[inverse[t*k+c],d].
/// dout (T,D), rows and drows (T*k,D) dtype, with dropped choices fewer, for which dweights is 0; dweights (T,k) fp32.
/// The residual's gradient is dout. drows may be rows.
WtStatus wt_combine_backward(WtStream stream, WtDtype dtype, const void* dout, const void* rows, const int64_t* inverse,
                             const float* weights, int64_t T, int64_t k, int64_t D, void* drows, float* dweights);

// SwiGLU.
/// act = silu(gate) * up, silu(g) = g / (1 + exp(-g)). gate_up (R,2F) dtype, a row is [gate | up]; act (R,F) dtype.
WtStatus wt_swiglu_forward(WtStream stream, WtDtype dtype, const void* gate_up, int64_t R, int64_t F, void* act);
/// s = 1/(1+exp(-gate)); dgate = dact * up * s * (1 + gate * (1 - s)); dup = dact * gate * s. dgate_up may be gate_up.
WtStatus wt_swiglu_backward(WtStream stream, WtDtype dtype, const void* dact, const void* gate_up, int64_t R, int64_t F,
                            void* dgate_up);

// Grouped GEMM: one weight matrix for each group of consecutive rows (experts, after a sort). ends (groups) int32 in
// the memory of the stream's device, as for LibTorch's _grouped_mm: group g has rows ends[g-1] (0 for g = 0) to ends[g]
// - 1; values do not fall, and the last is `rows`. Groups may be empty. x (rows,K), weight (groups,N,K), y (rows,N)
// dtype; sums in fp32. 1 <= groups <= 1024, sizes below 2^31. CUDA requires compute capability 9.0, bf16, N and K
// multiples of 8, and arrays aligned to 16 bytes; otherwise WT_UNSUPPORTED, and nothing is done.
/// y[i] = weight[g] x[i] for the rows i of group g.
WtStatus wt_grouped_gemm_forward(WtStream stream, WtDtype dtype, const void* x, const void* weight, const int32_t* ends,
                                 int64_t rows, int64_t groups, int64_t N, int64_t K, void* y);
/// dx[i] = weight[g]^T dy[i].
WtStatus wt_grouped_gemm_backward_rows(WtStream stream, WtDtype dtype, const void* dy, const void* weight,
                                       const int32_t* ends, int64_t rows, int64_t groups, int64_t N, int64_t K,
                                       void* dx);
/// dweight[g] = sum over the group's rows of dy[i] x[i]^T; zeros for an empty group.
WtStatus wt_grouped_gemm_backward_weight(WtStream stream, WtDtype dtype, const void* dy, const void* x,
                                         const int32_t* ends, int64_t rows, int64_t groups, int64_t N, int64_t K,
                                         void* dweight);

// Block quantisation, for activations that only recompute reads.
typedef enum { WT_INT8 = 0, WT_FP8 = 1 } WtBlockFormat;  ///< FP8: 4 exponent and 3 mantissa bits (OCP E4M3), to 448
enum { WT_QUANTIZE_BLOCK = 128 };
/// Blocks of 128 values of a row; the last block may be shorter. scale = max |x| / top of the format (127 or 448),
/// fp32; q = x / scale, rounded to nearest even. A block with a NaN or an infinity gets scale NaN, a block below 2^-100
/// scale 0; both q = 0. x (T,D) dtype; q (T,D) bytes; scale (T, ceil(D/128)) fp32.
WtStatus wt_quantize_blocks(WtStream stream, WtDtype dtype, WtBlockFormat format, const void* x, int64_t T, int64_t D,
                            void* q, float* scale);
/// x = q * scale, rounded to dtype. Error up to max |x| / 254 of the block (INT8), or up to the larger of |x| / 16 and
/// max |x| / 448 / 1024 (FP8). All NaN for a block that had a NaN or an infinity.
WtStatus wt_dequantize_blocks(WtStream stream, WtDtype dtype, WtBlockFormat format, const void* q, const float* scale,
                              int64_t T, int64_t D, void* x);

// Loss and optimiser.
enum { WT_IGNORED_TARGET = -100 };  ///< a row without loss and gradient; PyTorch's default ignore_index
/// loss_sum += sum_t -log softmax(logits[t])[target[t]] (not scaled);  logits <- scale * (softmax(logits) - onehot).
/// logits (T,V) dtype, overwritten by its gradient; target (T), WT_IGNORED_TARGET or in [0, V); loss_sum one double
/// in the memory of the stream's device. On CUDA an invalid target makes loss_sum NaN. The CPU kernel temporarily
/// allocates T doubles.
WtStatus wt_cross_entropy_forward_backward(WtStream stream, WtDtype dtype, void* logits, const int64_t* target,
                                           int64_t T, int64_t V, float scale, double* loss_sum);
/// AdamW with decoupled decay (Loshchilov and Hutter 2019, algorithm 2, decay scaled by lr as in PyTorch):
/// G = grad_scale * g;  m = beta1 m + (1-beta1) G;  v = beta2 v + (1-beta2) G^2;  p -= lr * weight_decay * p;
/// p -= lr / (1-beta1^step) * m / (sqrt(v / (1-beta2^step)) + eps). p, m, v, g (n) fp32; step counts from 1.
WtStatus wt_adamw(WtStream stream, float* p, float* m, float* v, const float* g, int64_t n, double lr, double beta1,
                  double beta2, double eps, double weight_decay, int64_t step, float grad_scale);
/// Lion with decoupled decay (Chen et al. 2023, algorithm 2, decay scaled by lr): G = grad_scale * g;
/// p -= lr * weight_decay * p;  p -= lr * sign(beta1 m + (1-beta1) G);  m = beta2 m + (1-beta2) G. p, m, g (n) fp32.
WtStatus wt_lion(WtStream stream, float* p, float* m, const float* g, int64_t n, double lr, double beta1, double beta2,
                 double weight_decay, float grad_scale);

#ifdef __cplusplus
}
#endif
#endif  // WT_KERNELS_KERNELS_H_
