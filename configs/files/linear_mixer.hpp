// Mixers that pass a state along the sequence instead of attending to all earlier tokens: gated delta net (Yang et al.
// 2024, arXiv 2412.06464; Qwen3-Next) and Mamba-2's SSD (Dao & Gu 2024, arXiv 2405.21060; Nemotron-H). Both are written
// with the words of attention, as SSD's duality has it: Mamba's C is the query, B the key, x the value, its groups are
// key heads, its state size is the key's head_dim.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "configs/files/layer_pattern.hpp"

namespace wt {

struct LinearMixerSpec {
  enum class Kind { none, gated_delta_net, mamba2 };
  /// Products of one kind in a chunked kernel: for every token and head a row of `n` times `k`.
  struct Product {
    std::int64_t heads, n, k;
  };
  Kind kind = Kind::none;
  LayerPattern layers;  ///< that have this mixer; the others have softmax attention
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_head_dim = 0, value_head_dim = 0;
  std::int64_t conv_kernel = 4;  ///< taps of the causal convolution over q, k and v, one filter a channel
  std::int64_t chunk = 0;        ///< tokens that the kernel treats together

  /// Layers that have the mixer; none of them = the model has none.
  void set_layers(std::vector<bool> which) {
    if (std::find(which.begin(), which.end(), true) == which.end())
      *this = {};
    else
      layers = LayerPattern::of(std::move(which));
  }
  bool on() const { return kind != Kind::none; }
  std::int64_t key_width() const { return key_heads * key_head_dim; }
  std::int64_t value_width() const { return value_heads * value_head_dim; }
  std::int64_t conv_channels() const { return 2 * key_width() + value_width(); }
  /// Rows of the input projections: q, k, v, the output's gate z, and a step size (Mamba-2), or decay and write
  /// strength (delta net) of each value head.
  std::int64_t input_rows() const {
    return conv_channels() + value_width() + (kind == Kind::gated_delta_net ? 2 : 1) * value_heads;
  }
  std::int64_t projections(std::int64_t d_model) const { return d_model * (input_rows() + value_width()); }
  /// Besides the projections, as transformers' Qwen3NextGatedDeltaNet and NemotronHMamba2Mixer have them: filters (with
  /// a bias in Mamba-2), A, the step's bias, in Mamba-2 D, and the gated norm, over a head or over the whole width.
  std::int64_t other_parameters() const {
    const bool mamba = kind == Kind::mamba2;
    return conv_channels() * (conv_kernel + (mamba ? 1 : 0)) + (mamba ? 3 : 2) * value_heads +
           (mamba ? value_width() : value_head_dim);
  }
  /// What the chunked kernel computes forward, C = chunk, K and V the head_dims. SSD (section 6): Q K^T (C x K a
  /// group), that times V (V x C), each chunk's state (V x K), and Q times the state before it (V x K). Delta net
  /// (section 3.3): K K^T and Q K^T, the triangular inverse (C / 2 terms an entry), W and U from it, then the state
  /// with W, Q and K.
  std::vector<Product> products() const {
    const std::int64_t c = chunk, k = key_head_dim, v = value_head_dim, h = value_heads;
    if (kind == Kind::mamba2) return {{key_heads, c, k}, {h, v, c}, {h, v, k}, {h, v, k}};
    return {{h, c, k}, {h, c, k}, {h, c, (c + 1) / 2}, {h, k, c}, {h, v, c},
            {h, v, c}, {h, v, k}, {h, v, k},           {h, v, k}};
  }
  /// Of these products, forward, a token: 2 heads n k each.
  std::int64_t flops() const {
    std::int64_t sum = 0;
    for (const Product& product : products()) sum += 2 * product.heads * product.n * product.k;
    return sum;
  }
};

}  // namespace wt
