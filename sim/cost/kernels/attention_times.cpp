#include "sim/cost/kernels/attention_times.hpp"

#include <algorithm>
#include <cmath>

namespace wt {
namespace {

// Chosen to fit the published rates of attention in configs/measurements/kernel_rates.csv and the dense FSDP runs of
// training_runs.csv together. With two thirds or four thirds of each, the mean errors change by less than a point. If
// all three are 0, the mean error of the rates grows by 7 points.
constexpr double kSoftmaxWidth = 16, kStartupKeys = 192, kMaskedKeys = 64;
constexpr double kLibraryShare = 0.6;  // reached by batched products; small next to the scores' traffic
constexpr double kRowsTile = 128;      // queries of a thread block, in all libraries

/// Bytes of memory traffic per score of attention that is not fused, forward: scaled, masked and normalised (two
/// passes, in and out), dropped (in, mask, out), and read by the second product.
double score_bytes(Precision precision) {
  const double word = precision == Precision::fp32 ? 4 : 2;
  return 2 * (word + word) + (word + 1 + word) + word;
}

/// Keys that a query meets on average: tiles that are fully masked, beyond the diagonal and behind the window, are
/// skipped.
double keys_met(const KernelShape& attention) {
  if (!attention.causal) return attention.k;
  const double all = attention.k - attention.m / 2 + kMaskedKeys, w = attention.window;
  return w > 0 && w < attention.k ? std::min(all, w - w * w / (2 * attention.k) + 2 * kMaskedKeys) : all;
}

}  // namespace

double attention_time_s(const KernelShape& attention, double relative_rate, const DataSheet& gpu) {
  const double keys = keys_met(attention) + kStartupKeys;
  const double blocks = attention.groups * std::ceil(attention.m / kRowsTile) / static_cast<double>(gpu.processors);
  const double idle = std::max(1.0, 1 / blocks);  // fewer tiles of rows than processors
  return 4 * attention.groups * attention.m * keys * (attention.n + kSoftmaxWidth) / (relative_rate * gpu.flops) *
         idle * (attention.op == "attention_backward" ? 2.5 : 1);
}

double attention_time_s(const WorkItem& attention, const DataSheet& gpu) {
  KernelShape row;
  row.op = attention.pass == Pass::forward ? "attention_forward" : "attention_backward";
  row.m = row.k = static_cast<double>(attention.dims[0]);
  row.n = static_cast<double>(attention.dims[3]);
  row.groups = attention.rows.at(0) * static_cast<double>(attention.dims[1]);
  row.causal = true;
  row.window = static_cast<double>(attention.window);
  return attention_time_s(row, 1, gpu);
}

UnfusedAttention unfused_attention(const WorkItem& attention, const DataSheet& gpu) {
  const double passes = attention.pass == Pass::forward ? 1 : 2;
  WorkItem whole = attention;  // scores outside the window are computed, then masked
  whole.window = 0;
  const double forward_flops = whole.flops(0) / (attention.pass == Pass::forward ? 1 : 2.5);
  const double scores =
      attention.rows.at(0) * static_cast<double>(attention.dims[0] * attention.dims[0] * attention.dims[1]);
  return {2 * forward_flops * passes / (kLibraryShare * gpu.flops),
          scores * score_bytes(attention.precision) * passes / gpu.memory_Bps};
}

}  // namespace wt
