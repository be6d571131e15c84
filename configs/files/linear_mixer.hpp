// Sequence mixers that carry a state along the sequence instead of attending to all earlier tokens: gated delta net
// (Yang et al. 2024, arXiv 2412.06464; Qwen3-Next), Mamba-2's SSD (Dao & Gu 2024, arXiv 2405.21060; Nemotron-H),
// lightning attention (Qin et al. 2024, arXiv 2401.04658; MiniMax-01), Kimi delta attention (arXiv 2510.26692), and
// gated short convolutions (LFM2). They are described in attention's terms, by SSD's duality: Mamba's C is the query, B
// the key, x the value, its groups are key heads, its state size is the key's head_dim.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "configs/files/layer_pattern.hpp"

namespace wt {

struct LinearMixerSpec {
  enum class Kind { none, gated_delta_net, mamba2, lightning, kimi_delta, short_conv };
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
  std::int64_t conv_channels() const {
    return kind == Kind::lightning ? 0 : kind == Kind::short_conv ? value_width() : 2 * key_width() + value_width();
  }
  /// Rows of the projections of the block's input: q, k, v and the output gate z; per value head a step size (Mamba-2)
  /// or decay and write strength (delta net). Kimi delta attention has gate and decay in two steps through key_head_dim
  /// rows each, and a write strength a head. A short convolution has its input and two gates.
  std::int64_t input_rows() const {
    const std::int64_t qkv = 2 * key_width() + value_width();
    switch (kind) {
      case Kind::kimi_delta:
        return qkv + 2 * key_head_dim + value_heads;
      case Kind::lightning:
        return qkv + value_width();
      case Kind::short_conv:
        return 3 * value_width();
      case Kind::mamba2:
        return qkv + value_width() + value_heads;
      default:
        return qkv + value_width() + 2 * value_heads;
    }
  }
  /// Weights of the second steps of kimi_delta's gate and decay.
  std::int64_t second_projections() const {
    return kind == Kind::kimi_delta ? key_head_dim * (key_width() + value_width()) : 0;
  }
  std::int64_t projections(std::int64_t d_model) const {
    return d_model * (input_rows() + value_width()) + second_projections();
  }
  /// Parameters outside the projections, as in transformers' classes: filters (Mamba-2: with bias), A, the step's bias,
  /// Mamba-2's D, and the norm over a head (delta nets) or the whole width.
  std::int64_t other_parameters() const {
    const std::int64_t filters = conv_channels() * conv_kernel;
    switch (kind) {
      case Kind::kimi_delta:
        return filters + value_heads + key_width() + value_head_dim;
      case Kind::lightning:
        return value_width();
      case Kind::short_conv:
        return filters;
      case Kind::mamba2:
        return filters + conv_channels() + 3 * value_heads + value_width();
      default:
        return filters + 2 * value_heads + value_head_dim;
    }
  }
  /// Products of the chunked kernel's forward pass, with C = chunk, K and V the head_dims. SSD (section 6): Q K^T (C x
  /// K a group), its product with V (V x C), each chunk's state (V x K), and Q times the previous state (V x K). Delta
  /// net (section 3.3): K K^T and Q K^T, the triangular inverse (C / 2 terms an entry), W and U from it, then the state
  /// with W, Q and K.
  std::vector<Product> products() const {
    const std::int64_t c = chunk, k = key_head_dim, v = value_head_dim, h = value_heads;
    if (kind == Kind::short_conv) return {};
    if (kind == Kind::mamba2 || kind == Kind::lightning)  // lightning attention is SSD with a decay a head
      return {{key_heads, c, k}, {h, v, c}, {h, v, k}, {h, v, k}};
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
