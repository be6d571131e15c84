#include "bench/studies/kernels/kernel_check.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace wt::bandwidth {
namespace {

constexpr int64_t kSampled = 61;  // step between rows; a prime, to reach every position in a thread's part

double value(const float* array, WtDtype dtype, int64_t i) {
  if (dtype == WT_FP32) return array[i];
  uint16_t half;
  std::memcpy(&half, reinterpret_cast<const char*>(array) + 2 * i, 2);
  const uint32_t bits = uint32_t{half} << 16;
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

double off(double found, double right) {
  const double error = std::abs(found - right) / (1 + std::abs(right));
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

/// Largest error over some rows, including the first and the last, and all columns.
double over(int64_t rows, int64_t width, const std::function<double(int64_t row, int64_t column)>& error) {
  double worst = 0;
  for (int64_t s = 0; s < kSampled; ++s)
    for (int64_t column = 0, row = s * (rows - 1) / (kSampled - 1); column < width; ++column)
      worst = std::max(worst, error(row, column));
  return worst;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Decodes code and scale: OCP E4M3 or a signed byte.
double decoded(const Arrays& a, bool fp8, int64_t i, int64_t width) {
  const double scale = a.scale[size_t(i / width * (width / WT_QUANTIZE_BLOCK) + i % width / WT_QUANTIZE_BLOCK)];
  const unsigned char code = a.codes[size_t(i)];
  if (!fp8) return scale * static_cast<signed char>(code);
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double size = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return scale * (code & 128 ? -size : size);
}

bool is_fp8(const std::string& kernel) { return kernel.ends_with("fp8"); }

/// 1 / sqrt(mean of squares + eps), as in the forward pass.
double rstd_of(const Arrays& a, WtDtype dtype, int64_t row) {
  double squares = 0;
  for (int64_t d = 0; d < kWidth; ++d) squares += std::pow(value(a.in.data(), dtype, row * kWidth + d), 2);
  return 1 / std::sqrt(squares / double(kWidth) + 1e-5);
}

double combine_backward_error(const Arrays& a, const std::function<double(int64_t)>& in,
                              const std::function<double(int64_t)>& also, const std::function<double(int64_t)>& out) {
  const double rows = over(kRows, kWidth, [&](int64_t j, int64_t d) {
    const int64_t i = a.order[size_t(j)];
    return off(out(j * kWidth + d), double(a.weights[size_t(i)]) * also(i / kTopK * kWidth + d));
  });
  return std::max(rows, over(kRows, 1, [&](int64_t i, int64_t) {
                    double sum = 0;
                    for (int64_t d = 0; d < kWidth; ++d)
                      sum += also(i / kTopK * kWidth + d) * in(a.inverse[size_t(i)] * kWidth + d);
                    return off(a.dweights[size_t(i)], sum);
                  }));
}

double rmsnorm_backward_error(const Arrays& a, const std::function<double(int64_t)>& in,
                              const std::function<double(int64_t)>& also, const std::function<double(int64_t)>& out) {
  int64_t row_of_mean = -1;
  double mean = 0;
  const double rows = over(kRows, kWidth, [&](int64_t t, int64_t d) {
    if (row_of_mean != t) {
      mean = 0, row_of_mean = t;
      for (int64_t e = 0; e < kWidth; ++e) mean += also(t * kWidth + e) * also(e) * in(t * kWidth + e) / double(kWidth);
    }
    const double rstd = a.rstd[size_t(t)], h = also(t * kWidth + d) * also(d);
    return off(out(t * kWidth + d), rstd * (h - in(t * kWidth + d) * rstd * rstd * mean));
  });
  return std::max(rows, over(kWidth, 1, [&](int64_t d, int64_t) {
                    double sum = 0;
                    for (int64_t t = 0; t < kRows; ++t)
                      sum += also(t * kWidth + d) * in(t * kWidth + d) * double(a.rstd[size_t(t)]);
                    return off(a.gain_gradient[size_t(d)], sum);
                  }));
}

double rope_error(const Arrays& a, bool backward, const std::function<double(int64_t)>& in,
                  const std::function<double(int64_t)>& out) {
  return over(kRows, kWidth, [&](int64_t t, int64_t d) {
    const int64_t s = t % kPositions, head = d / kHead, i = d % kHead, half = kHead / 2;
    const int64_t first = head < kQueryHeads               ? 0
                          : head < kQueryHeads + kKeyHeads ? kQueryHeads
                                                           : kQueryHeads + kKeyHeads;
    const int64_t heads = first == 0 ? kQueryHeads : kKeyHeads;
    // Offsets of the head's first number in the two layouts: projected, and split.
    const int64_t fused = t * kWidth + head * kHead;
    const int64_t apart = first * kRows * kHead + ((t / kPositions * heads + head - first) * kPositions + s) * kHead;
    const int64_t from = backward ? apart : fused, to = backward ? fused : apart;
    if (head >= kQueryHeads + kKeyHeads) return off(out(to + i), in(from + i));
    const auto at = [&](const Array<float>& table) { return double(table[size_t(s * half + i % half)]); };
    const double partner = (i < half) != backward ? -in(from + (i + half) % kHead) : in(from + (i + half) % kHead);
    return off(out(to + i), in(from + i) * at(a.cos) + partner * at(a.sin));
  });
}

double cross_entropy_error(const Arrays& a, const std::function<double(int64_t)>& in,
                           const std::function<double(int64_t)>& out) {
  std::vector<double> log_sums(a.target.size());  // sums of exponentials of numbers below 2 need no maximum
  double loss = 0;
  for (size_t t = 0; t < log_sums.size(); ++t) {
    double sum = 0;
    for (int64_t v = 0; v < kVocabulary; ++v) sum += std::exp(in(int64_t(t) * kVocabulary + v));
    log_sums[t] = std::log(sum);
    loss += log_sums[t] - in(int64_t(t) * kVocabulary + a.target[t]);
  }
  return std::max(off(a.loss, loss), over(kLossRows, kVocabulary, [&](int64_t t, int64_t v) {
                    const double p = std::exp(in(t * kVocabulary + v) - log_sums[size_t(t)]);
                    return off(out(t * kVocabulary + v), double(kLossScale) * (p - (v == a.target[size_t(t)])));
                  }));
}

double adamw_error(const Arrays& a) {
  const auto quarter = [](const Array<float>& array, int64_t which, int64_t i) {
    return double(array[size_t(which * kParameters + i)]);
  };
  return over(kParameters / kWidth, kWidth, [&](int64_t row, int64_t column) {
    const int64_t i = row * kWidth + column;
    const double g = quarter(a.in, 3, i), m = kBeta1 * quarter(a.in, 1, i) + (1 - kBeta1) * g;
    const double v = kBeta2 * std::abs(quarter(a.in, 2, i)) + (1 - kBeta2) * g * g;
    const double change = m / (1 - std::pow(kBeta1, kStep)) / (std::sqrt(v / (1 - std::pow(kBeta2, kStep))) + kEps);
    const double p = quarter(a.in, 0, i) * (1 - kRate * kDecay) - kRate * change;
    return std::max({off(quarter(a.out, 0, i), p), off(quarter(a.out, 1, i), m), off(quarter(a.out, 2, i), v)});
  });
}

}  // namespace

WtStatus prepare(const std::string& kernel, WtDtype dtype, Arrays& a) {
  std::ranges::fill(a.gain_gradient, 0.0f);
  // Fill outputs with NaN, in fp32 and in bf16, so that unwritten elements are found.
  const auto spoil = [](Array<float>& array) { std::memset(array.data(), 0xff, array.size() * sizeof(float)); };
  for (Array<float>* array : {&a.out, &a.scale, &a.dweights, &a.rstd}) spoil(*array);
  std::memset(a.codes.data(), 0x7f, a.codes.size());
  a.loss = 0;
  if (kernel == "cross_entropy" || kernel == "adamw") a.out = a.in;  // in place
  if (kernel == "adamw") {
    const auto v = a.out.begin() + 2 * kParameters;
    std::transform(v, v + kParameters, v, [](float x) { return std::abs(x); });
  }
  if (kernel.starts_with("dequantize"))
    return wt_quantize_blocks(kCpu, dtype, is_fp8(kernel) ? WT_FP8 : WT_INT8, a.in.data(), kRows, kWidth,
                              a.codes.data(), a.scale.data());
  if (kernel == "rmsnorm_backward") {
    const WtStatus status = wt_rmsnorm_forward(kCpu, dtype, a.in.data(), a.also_in.data(), 1e-5f, kRows, kWidth,
                                               a.out.data(), a.rstd.data());
    spoil(a.out);
    return status;
  }
  return WT_OK;
}

double largest_error(const std::string& kernel, WtDtype dtype, const Arrays& a) {
  constexpr int64_t D = kWidth, F = kWidth / 2;
  const auto in = [&](int64_t i) { return value(a.in.data(), dtype, i); };
  const auto also = [&](int64_t i) { return value(a.also_in.data(), dtype, i); };
  const auto out = [&](int64_t i) { return value(a.out.data(), dtype, i); };
  /// Sum over a token's rows, each times its weight or 1.
  const auto summed = [&](int64_t t, int64_t d, bool weighted) {
    double sum = 0;
    for (int64_t c = t * kTopK; c < (t + 1) * kTopK; ++c)
      sum += (weighted ? double(a.weights[size_t(c)]) : 1) * in(a.inverse[size_t(c)] * D + d);
    return sum;
  };
  if (kernel == "permute")
    return over(kRows, D,
                [&](int64_t j, int64_t d) { return off(out(j * D + d), in(a.order[size_t(j)] / kTopK * D + d)); });
  if (kernel == "permute_backward")
    return over(kTokens, D, [&](int64_t t, int64_t d) { return off(out(t * D + d), summed(t, d, false)); });
  if (kernel == "combine")
    return over(kTokens, D,
                [&](int64_t t, int64_t d) { return off(out(t * D + d), also(t * D + d) + summed(t, d, true)); });
  if (kernel == "combine_backward") return combine_backward_error(a, in, also, out);
  if (kernel == "swiglu")
    return over(kRows, F, [&](int64_t r, int64_t f) {
      const double gate = in(r * D + f);
      return off(out(r * F + f), gate * sigmoid(gate) * in(r * D + F + f));
    });
  if (kernel == "swiglu_backward")
    return over(kRows, F, [&](int64_t r, int64_t f) {
      const double gate = in(r * D + f), up = in(r * D + F + f), dact = also(r * F + f), s = sigmoid(gate);
      return std::max(off(out(r * D + f), dact * up * s * (1 + gate * (1 - s))),
                      off(out(r * D + F + f), dact * gate * s));
    });
  if (kernel.starts_with("quantize"))
    return over(kRows, D,
                [&](int64_t r, int64_t d) { return off(decoded(a, is_fp8(kernel), r * D + d, D), in(r * D + d)); });
  if (kernel.starts_with("dequantize"))
    return over(kRows, D,
                [&](int64_t r, int64_t d) { return off(out(r * D + d), decoded(a, is_fp8(kernel), r * D + d, D)); });
  if (kernel == "rmsnorm")
    return over(kRows, D, [&, row = int64_t{-1}, rstd = 0.0](int64_t t, int64_t d) mutable {
      if (row != t) row = t, rstd = rstd_of(a, dtype, t);
      return off(out(t * D + d), in(t * D + d) * rstd * also(d));
    });
  if (kernel == "rmsnorm_backward") return rmsnorm_backward_error(a, in, also, out);
  if (kernel.starts_with("rope")) return rope_error(a, kernel == "rope_backward", in, out);
  if (kernel == "cross_entropy") return cross_entropy_error(a, in, out);
  if (kernel == "adamw") return adamw_error(a);
  return std::numeric_limits<double>::infinity();  // unknown kernel
}

double allowed_error(const std::string& kernel, WtDtype dtype) {
  const double rounded = dtype == WT_FP32 ? 1e-4 : 1e-2;
  if (!kernel.starts_with("quantize")) return rounded;
  return is_fp8(kernel) ? 1.0 / 16 : std::max(rounded, 2.0 / 254);  // values are below 2
}

}  // namespace wt::bandwidth
