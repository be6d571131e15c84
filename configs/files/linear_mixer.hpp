// Sequence mixers that carry a state along the sequence instead of attending to all earlier tokens: gated delta net
// (Yang et al. 2024, arXiv 2412.06464; Qwen3-Next) and Mamba-2's SSD (Dao & Gu 2024, arXiv 2405.21060; Nemotron-H).
// Both are described in attention's terms, by SSD's duality: Mamba's C is the query, B the key, x the value, its groups
// are key heads, its state size is the key's head_dim.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "configs/files/layer_pattern.hpp"

namespace wt {

struct LinearMixerSpec {
  enum class Kind { none, gated_delta_net, mamba2 };
  /// Matrix products of one kind in a chunked kernel: per token and head, a row of `n` with inner size `k`.
  struct Product {
    std::int64_t heads, n, k;
  };
  Kind kind = Kind::none;
  LayerPattern layers;  ///< layers with this mixer; the others have softmax attention
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_head_dim = 0, value_head_dim = 0;
  std::int64_t conv_kernel = 4;  ///< taps of the causal convolution over q, k and v, one filter a channel
  std::int64_t chunk = 0;        ///< tokens that the kernel processes together

  /// Sets the layers with the mixer; if none is set, the model has no mixer.
  void set_layers(std::vector<bool> which) {
    if (std::ranges::find(which, true) == which.end())
      *this = {};
    else
      layers = LayerPattern::of(std::move(which));
  }
  bool on() const { return kind != Kind::none; }
  std::int64_t key_width() const { return key_heads * key_head_dim; }
  std::int64_t value_width() const { return value_heads * value_head_dim; }
  std::int64_t conv_channels() const { return 2 * key_width() + value_width(); }
  /// Rows of the input projections: q, k, v, the output gate z, and per value head a step size (Mamba-2) or decay and
  /// write strength (delta net).
  std::int64_t input_rows() const {
    return conv_channels() + value_width() + (kind == Kind::gated_delta_net ? 2 : 1) * value_heads;
  }
  std::int64_t projections(std::int64_t d_model) const { return d_model * (input_rows() + value_width()); }
  /// Parameters outside the projections, as in transformers' Qwen3NextGatedDeltaNet and NemotronHMamba2Mixer: filters
  /// (Mamba-2: with bias), A, the step's bias, Mamba-2's D, and the gated norm over a head or the whole width.
  std::int64_t other_parameters() const {
    const bool mamba = kind == Kind::mamba2;
    return conv_channels() * (conv_kernel + (mamba ? 1 : 0)) + (mamba ? 3 : 2) * value_heads +
           (mamba ? value_width() : value_head_dim);
  }
  /// Products of the chunked kernel's forward pass, with C = chunk, K and V the head_dims. SSD (section 6): Q K^T (C x
  /// K a group), its product with V (V x C), each chunk's state (V x K), and Q times the previous state (V x K). Delta
  /// net (section 3.3): K K^T and Q K^T, the triangular inverse (C / 2 terms an entry), W and U from it, then the state
  /// with W, Q and K.
  std::vector<Product> products() const {
    const std::int64_t c = chunk, k = key_head_dim, v = value_head_dim, h = value_heads;
    if (kind == Kind::mamba2) return {{key_heads, c, k}, {h, v, c}, {h, v, k}, {h, v, k}};
    return {{h, c, k}, {h, c, k}, {h, c, (c + 1) / 2}, {h, k, c}, {h, v, c},
            {h, v, c}, {h, v, k}, {h, v, k},           {h, v, k}};
  }
  /// Forward FLOPs of these products per token: 2 heads n k each.
  std::int64_t flops() const {
    std::int64_t sum = 0;
    for (const Product& product : products()) sum += 2 * product.heads * product.n * product.k;
    return sum;
  }
};

}  // namespace wt
