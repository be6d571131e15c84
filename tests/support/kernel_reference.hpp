// Scalar references of kernels/kernels.h in double precision, written from its formulas with no thought of speed, and
// the finite differences that check the gradients. Row-major vectors; shapes as in kernels.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace wt::reference {

using Doubles = std::vector<double>;
using Index = std::vector<int64_t>;

/// d(sum_i dy_i f(x)_i)/dx by central differences: error about h^2 = 1e-10 of the third derivative, plus 1e-11.
inline Doubles numeric_gradient(const std::function<Doubles(const Doubles&)>& f, Doubles x, const Doubles& dy) {
  const double h = 1e-5;
  Doubles gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + h;
    const Doubles above = f(x);
    x[i] = at - h;
    const Doubles below = f(x);
    x[i] = at;
    for (size_t j = 0; j < dy.size(); ++j) gradient[i] += dy[j] * (above[j] - below[j]) / (2 * h);
  }
  return gradient;
}

inline Doubles rmsnorm(const Doubles& x, const Doubles& gain, double eps) {
  const size_t D = gain.size();
  Doubles y(x.size());
  for (size_t t = 0; t < x.size() / D; ++t) {
    double squares = 0;
    for (size_t d = 0; d < D; ++d) squares += x[t * D + d] * x[t * D + d];
    const double rstd = 1 / std::sqrt(squares / double(D) + eps);
    for (size_t d = 0; d < D; ++d) y[t * D + d] = x[t * D + d] * rstd * gain[d];
  }
  return y;
}

inline Doubles rope_frequencies(int64_t hd, double theta) {
  Doubles out;
  for (int64_t i = 0; i < hd / 2; ++i) out.push_back(std::pow(theta, -2.0 * double(i) / double(hd)));
  return out;
}

/// term(to, from, partner, c, s) of every number of q, k and v one after the other, which is c * qkv[from] + s *
/// qkv[partner].
template <class Term>
void each_rotation(int64_t B, int64_t S, int64_t H, int64_t KV, int64_t hd, double theta, double amplitude, Term term) {
  size_t to = 0;
  const int64_t width = (H + 2 * KV) * hd;
  const auto heads = [&](int64_t first_head, int64_t count, bool rotate) {
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < count; ++h)
        for (int64_t s = 0; s < S; ++s)
          for (int64_t i = 0; i < hd; ++i) {
            const int64_t head = (b * S + s) * width + (first_head + h) * hd,
                          partner = i < hd / 2 ? i + hd / 2 : i - hd / 2;
            const double angle = double(s) * std::pow(theta, -2.0 * double(i % (hd / 2)) / double(hd));
            const double sine = (i < hd / 2 ? -1 : 1) * std::sin(angle);
            term(to++, size_t(head + i), size_t(head + partner), rotate ? amplitude * std::cos(angle) : 1,
                 rotate ? amplitude * sine : 0);
          }
  };
  heads(0, H, true);
  heads(H, KV, true);
  heads(H + KV, KV, false);
}

/// q, k and v one after the other, q and k rotated and multiplied by `amplitude`.
inline Doubles rope_split(const Doubles& qkv, int64_t B, int64_t S, int64_t H, int64_t KV, int64_t hd, double theta,
                          double amplitude) {
  Doubles out(qkv.size());
  each_rotation(B, S, H, KV, hd, theta, amplitude, [&](size_t to, size_t from, size_t partner, double c, double s) {
    out[to] = c * qkv[from] + s * qkv[partner];
  });
  return out;
}
inline Doubles rope_split_backward(const Doubles& dout, int64_t B, int64_t S, int64_t H, int64_t KV, int64_t hd,
                                   double theta, double amplitude) {
  Doubles dqkv(dout.size());
  each_rotation(B, S, H, KV, hd, theta, amplitude, [&](size_t to, size_t from, size_t partner, double c, double s) {
    dqkv[from] += c * dout[to];
    dqkv[partner] += s * dout[to];
  });
  return dqkv;
}

inline Doubles softmax(const Doubles& logits, size_t E) {
  Doubles probs(logits.size());
  for (size_t t = 0; t < logits.size() / E; ++t) {
    const double largest = *std::max_element(&logits[t * E], &logits[t * E] + E);
    double total = 0;
    for (size_t e = 0; e < E; ++e) total += probs[t * E + e] = std::exp(logits[t * E + e] - largest);
    for (size_t e = 0; e < E; ++e) probs[t * E + e] /= total;
  }
  return probs;
}

/// The k largest of each row, falling, ties to the lowest expert.
inline Index top_k(const Doubles& values, size_t E, size_t k) {
  Index chosen;
  for (size_t t = 0; t < values.size() / E; ++t) {
    Index experts(E);
    std::iota(experts.begin(), experts.end(), 0);
    std::stable_sort(experts.begin(), experts.end(),
                     [&](int64_t a, int64_t b) { return values[t * E + size_t(a)] > values[t * E + size_t(b)]; });
    chosen.insert(chosen.end(), experts.begin(), experts.begin() + int64_t(k));
  }
  return chosen;
}

/// Scores (T,E) of the router: softmax, or with `sigmoid` that of each logit.
inline Doubles router_scores(const Doubles& logits, size_t E, bool sigmoid) {
  if (!sigmoid) return softmax(logits, E);
  Doubles scores;
  for (double logit : logits) scores.push_back(1 / (1 + std::exp(-logit)));
  return scores;
}

/// top_k() of the experts in each row's `top_groups` best of `groups` groups, which are worth the sum of their
/// `group_best` best in fp32, so that ties are those of the kernel's arithmetic.
inline Index router_choice(const Doubles& judged, size_t E, size_t k, size_t groups, size_t top_groups,
                           size_t group_best) {
  Doubles open = judged;
  const size_t per_group = E / groups;
  for (size_t t = 0; t < judged.size() / E; ++t) {
    Doubles worth;
    for (size_t g = 0; g < groups; ++g) {
      Doubles inside(&judged[t * E + g * per_group], &judged[t * E + g * per_group] + per_group);
      std::sort(inside.rbegin(), inside.rend());
      worth.push_back(std::accumulate(inside.begin(), inside.begin() + int64_t(std::min(group_best, per_group)), 0.0f));
    }
    const Index kept = top_k(worth, groups, top_groups);
    for (size_t e = 0; e < E; ++e)
      if (std::count(kept.begin(), kept.end(), int64_t(e / per_group)) == 0) open[t * E + e] = -INFINITY;
  }
  return top_k(open, E, k);
}

/// Weights (T,k) of the experts `index`.
inline Doubles router_weights(const Doubles& scores, const Index& index, size_t E, size_t k, bool normalize,
                              double scale = 1) {
  Doubles weights(index.size());
  for (size_t t = 0; t < index.size() / k; ++t) {
    double sum = 0;
    for (size_t c = 0; c < k; ++c) sum += weights[t * k + c] = scores[t * E + size_t(index[t * k + c])];
    for (size_t c = 0; c < k; ++c) weights[t * k + c] *= normalize ? scale / sum : scale;
  }
  return weights;
}

/// (S,E) sums over each sequence of the scores, or with `sigmoid` of their shares in the token's sum.
inline Doubles share_sums(const Doubles& scores, size_t E, size_t sequence, bool sigmoid) {
  const size_t T = scores.size() / E;
  Doubles sums(T / sequence * E);
  for (size_t t = 0; t < T; ++t) {
    const double total = sigmoid ? std::accumulate(&scores[t * E], &scores[t * E] + E, 0.0) : 1;
    for (size_t e = 0; e < E; ++e) sums[t / sequence * E + e] += scores[t * E + e] / total;
  }
  return sums;
}

/// (S) sums over each sequence of log(sum_e exp(logit))^2.
inline Doubles lse_squares(const Doubles& logits, size_t E, size_t sequence) {
  const size_t T = logits.size() / E;
  Doubles sums(T / sequence);
  for (size_t t = 0; t < T; ++t) {
    double total = 0;
    for (size_t e = 0; e < E; ++e) total += std::exp(logits[t * E + e]);
    sums[t / sequence] += std::log(total) * std::log(total);
  }
  return sums;
}

/// order of wt_sort_by_expert, by a library sort.
inline Index sort_by_slot(const Index& slots) {
  Index order(slots.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return slots[size_t(a)] < slots[size_t(b)]; });
  return order;
}

inline Index inverse_of(const Index& order) {
  Index inverse(order.size());
  for (size_t j = 0; j < order.size(); ++j) inverse[size_t(order[j])] = int64_t(j);
  return inverse;
}

inline Doubles gather(const Doubles& x, const Index& rows, size_t D) {
  Doubles y;
  for (int64_t row : rows) y.insert(y.end(), x.begin() + row * int64_t(D), x.begin() + (row + 1) * int64_t(D));
  return y;
}

inline Doubles permute(const Doubles& x, const Index& order, size_t k, size_t D) {
  Index tokens = order;
  for (int64_t& row : tokens) row /= int64_t(k);
  return gather(x, tokens, D);
}

inline Doubles combine(const Doubles& rows, const Index& inverse, const Doubles& weights, const Doubles& residual,
                       size_t k) {
  const size_t T = weights.size() / k, D = residual.size() / std::max<size_t>(T, 1);
  Doubles out = residual;
  for (size_t i = 0; i < weights.size(); ++i)
    for (size_t d = 0; d < D; ++d) out[i / k * D + d] += weights[i] * rows[size_t(inverse[i]) * D + d];
  return out;
}

/// Gradients of combine()'s rows and weights.
inline std::pair<Doubles, Doubles> combine_backward(const Doubles& dout, const Doubles& rows, const Index& inverse,
                                                    const Doubles& weights, size_t k) {
  const size_t D = rows.size() / std::max<size_t>(weights.size(), 1);
  Doubles drows(rows.size()), dweights(weights.size());
  for (size_t i = 0; i < weights.size(); ++i)
    for (size_t d = 0; d < D; ++d) {
      drows[size_t(inverse[i]) * D + d] = weights[i] * dout[i / k * D + d];
      dweights[i] += dout[i / k * D + d] * rows[size_t(inverse[i]) * D + d];
    }
  return {drows, dweights};
}

inline Doubles swiglu(const Doubles& gate_up, size_t F) {
  Doubles act;
  for (size_t r = 0; r < gate_up.size() / (2 * F); ++r)
    for (size_t f = 0; f < F; ++f) {
      const double gate = gate_up[r * 2 * F + f], up = gate_up[r * 2 * F + F + f];
      act.push_back(gate / (1 + std::exp(-gate)) * up);
    }
  return act;
}

/// One loss a row; 0 where the target is negative.
inline Doubles cross_entropy(const Doubles& logits, const Index& target, size_t V) {
  const Doubles probs = softmax(logits, V);
  Doubles losses;
  for (size_t t = 0; t < target.size(); ++t)
    losses.push_back(target[t] < 0 ? 0 : -std::log(probs[t * V + size_t(target[t])]));
  return losses;
}

/// Of scale times the sum of the losses.
inline Doubles cross_entropy_gradient(const Doubles& logits, const Index& target, size_t V, double scale) {
  Doubles gradient = softmax(logits, V);
  for (size_t t = 0; t < target.size(); ++t) {
    if (target[t] >= 0) gradient[t * V + size_t(target[t])] -= 1;
    for (size_t v = 0; v < V; ++v) gradient[t * V + v] *= target[t] < 0 ? 0 : scale;
  }
  return gradient;
}

/// Value of an E4M3 code that is not NaN.
inline double fp8_value(unsigned char code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 0x80 ? -value : value;
}

/// Values of the codes (integers, or E4M3 numbers) and the scales; the nearest of all codes, ties to the even one.
inline std::pair<Doubles, Doubles> quantize_blocks(const Doubles& x, size_t T, bool fp8) {
  const size_t D = x.size() / T;
  Doubles values(x.size()), scales;
  for (size_t t = 0; t < T; ++t)
    for (size_t at = 0; at < D; at += 128) {
      double top = 0;
      for (size_t d = at; d < std::min(D, at + 128); ++d) top = std::max(top, std::abs(x[t * D + d]));
      const double scale = top / (fp8 ? 448 : 127);
      scales.push_back(scale);
      for (size_t d = at; d < std::min(D, at + 128); ++d) {
        const double exact = scale > 0 ? x[t * D + d] / scale : 0;
        double best = fp8 ? fp8_value(0) : std::nearbyint(exact);
        for (int code = 0; fp8 && code < 0xff; ++code) {
          if ((code & 0x7f) == 0x7f) continue;
          const double value = fp8_value(static_cast<unsigned char>(code)),
                       gain = std::abs(best - exact) - std::abs(value - exact);
          if (gain > 0 || (gain == 0 && code % 2 == 0)) best = value;
        }
        values[t * D + d] = best;
      }
    }
  return {values, scales};
}

}  // namespace wt::reference
