#include "trainer/model/attention.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "trainer/pch.hpp"

#include <ATen/SDPBackend.h>

namespace wt {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// RMSNorm of the q and k parts of qkv (T, (H + 2 KV) * hd), over the whole projection or every head; v is unchanged.
/// Saves q and k, not qkv.
struct QkNorm : torch::autograd::Function<QkNorm> {
  static Tensor forward(AutogradContext* ctx, const Tensor& qkv, const Tensor& q_gain, const Tensor& k_gain,
                        std::int64_t q_width, std::int64_t k_width, double eps) {
    Tensor out = qkv.clone();
    const auto part = [&](std::int64_t begin, std::int64_t width, const Tensor& gain) {
      const Tensor x = qkv.narrow(1, begin, width).contiguous().view({-1, gain.size(0)});
      Tensor y = at::empty_like(x), rstd = at::empty({x.size(0)}, x.options().dtype(at::kFloat));
      check_kernel(wt_rmsnorm_forward(stream_of(x), dtype_of(x), x.data_ptr(), gain.data_ptr(), static_cast<float>(eps),
                                      x.size(0), x.size(1), y.data_ptr(), rstd.data_ptr<float>()));
      out.narrow(1, begin, width).copy_(y.view({qkv.size(0), width}));
      return std::pair{x, rstd};
    };
    const auto [q, q_rstd] = part(0, q_width, q_gain);
    const auto [k, k_rstd] = part(q_width, k_width, k_gain);
    ctx->save_for_backward({q, q_gain, q_rstd, k, k_gain, k_rstd});
    ctx->saved_data["q_width"] = q_width;
    ctx->saved_data["k_width"] = k_width;
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& dy = gradients[0];
    Tensor dqkv = dy.clone();
    const auto part = [&](std::int64_t begin, std::int64_t width, std::size_t first) {
      const Tensor &x = saved[first], &gain = saved[first + 1];
      Tensor d = dy.narrow(1, begin, width).contiguous().view_as(x),
             dgain = at::zeros({gain.size(0)}, x.options().dtype(at::kFloat));
      check_kernel(wt_rmsnorm_backward(stream_of(x), dtype_of(x), d.data_ptr(), x.data_ptr(), gain.data_ptr(),
                                       saved[first + 2].data_ptr<float>(), x.size(0), x.size(1), d.data_ptr(),
                                       dgain.data_ptr<float>()));
      dqkv.narrow(1, begin, width).copy_(d.view({dy.size(0), width}));
      return dgain.to(gain.scalar_type());
    };
    const std::int64_t q_width = ctx->saved_data["q_width"].toInt(), k_width = ctx->saved_data["k_width"].toInt();
    const Tensor dq_gain = part(0, q_width, 0), dk_gain = part(q_width, k_width, 3);
    return {dqkv, dq_gain, dk_gain, Tensor(), Tensor(), Tensor()};
  }
};

/// The same with LayerNorm: q and k of the projection (T, ...) with gains and, if defined, biases.
struct QkLayerNorm : torch::autograd::Function<QkLayerNorm> {
  using Bias = std::optional<Tensor>;  // an autograd function cannot take an undefined tensor
  static Tensor forward(AutogradContext* ctx, const Tensor& qkv, const Tensor& q_gain, const Bias& q_bias,
                        const Tensor& k_gain, const Bias& k_bias, std::int64_t q_width, std::int64_t k_width,
                        double eps) {
    Tensor out = qkv.clone();
    variable_list saved;
    const auto part = [&](std::int64_t begin, std::int64_t width, const Tensor& gain, const Bias& bias) {
      const Tensor x = qkv.narrow(1, begin, width).contiguous().view({-1, gain.size(0)});
      const auto [y, mean, rstd] = at::native_layer_norm(x, {gain.size(0)}, gain, bias, eps);
      out.narrow(1, begin, width).copy_(y.view({qkv.size(0), width}));
      saved.insert(saved.end(), {x, gain, mean, rstd, bias.value_or(Tensor())});
    };
    part(0, q_width, q_gain, q_bias), part(q_width, k_width, k_gain, k_bias);
    ctx->save_for_backward(saved);
    ctx->saved_data["q_width"] = q_width;
    ctx->saved_data["k_width"] = k_width;
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& dy = gradients[0];
    Tensor dqkv = dy.clone();
    const auto part = [&](std::int64_t begin, std::int64_t width, std::size_t first) {
      const Tensor &x = saved[first], &gain = saved[first + 1], &bias = saved[first + 4];
      const auto [dx, dgain, dbias] = at::native_layer_norm_backward(
          dy.narrow(1, begin, width).contiguous().view_as(x), x, {gain.size(0)}, saved[first + 2], saved[first + 3],
          gain, bias.defined() ? Bias(bias) : std::nullopt, {true, true, bias.defined()});
      dqkv.narrow(1, begin, width).copy_(dx.view({dy.size(0), width}));
      return std::pair{dgain, dbias};
    };
    const std::int64_t q_width = ctx->saved_data["q_width"].toInt(), k_width = ctx->saved_data["k_width"].toInt();
    const auto [dq_gain, dq_bias] = part(0, q_width, 0);
    const auto [dk_gain, dk_bias] = part(q_width, k_width, 5);
    return {dqkv, dq_gain, dq_bias, dk_gain, dk_bias, Tensor(), Tensor(), Tensor()};
  }
};

/// Clamps in place; saves one byte per value.
struct Clip : torch::autograd::Function<Clip> {
  static Tensor forward(AutogradContext* ctx, Tensor x, double limit) {
    const Tensor inside = at::logical_and(x.ge(-limit), x.le(limit));
    x.clamp_(-limit, limit);
    ctx->mark_dirty({x});
    ctx->save_for_backward({inside});
    return x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    return {gradients[0] * ctx->get_saved_variables()[0], Tensor()};
  }
};

/// Rotates (.., 2h) by halves, in fp32; sign -1 rotates back. cosine, sine: (S, h), broadcast over leading dims.
Tensor rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine, double sign) {
  const std::int64_t half = x.size(-1) / 2;
  const Tensor a = x.narrow(-1, 0, half).to(at::kFloat), b = x.narrow(-1, half, half).to(at::kFloat), s = sine * sign;
  return at::cat({a * cosine - b * s, b * cosine + a * s}, -1).to(x.scalar_type());
}

/// Joins latent attention's parts by head: q (T, H * (nope + rope)), kv_a (T, lora + rope), kv_b (T, H * (nope + v)) ->
/// q, k and v, each (B, H, S, nope + rope). v is padded with zeros, as the fused attention kernels require. Saves none
/// of its inputs.
struct Assemble : torch::autograd::Function<Assemble> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q_flat, const Tensor& kv_a, const Tensor& kv_b,
                               const Tensor& cosine, const Tensor& sine, std::int64_t batch, std::int64_t heads,
                               const MlaSpec* m) {
    const std::int64_t seq = q_flat.size(0) / batch, nope = m->qk_nope_head_dim, rope = m->qk_rope_head_dim,
                       v_dim = m->v_head_dim;
    Tensor q = q_flat.view({batch, seq, heads, nope + rope}).transpose(1, 2).contiguous();
    q.narrow(3, nope, rope).copy_(rotate(q.narrow(3, nope, rope), cosine, sine, 1));
    const Tensor up = kv_b.view({batch, seq, heads, nope + v_dim}).transpose(1, 2);
    const Tensor shared = rotate(kv_a.narrow(1, m->kv_lora_rank, rope).view({batch, 1, seq, rope}), cosine, sine, 1);
    Tensor k = at::empty_like(q), v = at::zeros_like(q);
    k.narrow(3, 0, nope).copy_(up.narrow(3, 0, nope));
    k.narrow(3, nope, rope).copy_(shared.expand({batch, heads, seq, rope}));
    v.narrow(3, 0, v_dim).copy_(up.narrow(3, nope, v_dim));
    ctx->saved_data["cosine"] = cosine;
    ctx->saved_data["sine"] = sine;
    ctx->saved_data["spec"] = reinterpret_cast<std::int64_t>(m);
    return {q, k, v};
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto& m = *reinterpret_cast<const MlaSpec*>(ctx->saved_data["spec"].toInt());
    const Tensor cosine = ctx->saved_data["cosine"].toTensor(), sine = ctx->saved_data["sine"].toTensor();
    const Tensor &dq = gradients[0], &dk = gradients[1], &dv = gradients[2];
    const std::int64_t batch = dq.size(0), heads = dq.size(1), seq = dq.size(2), nope = m.qk_nope_head_dim,
                       rope = m.qk_rope_head_dim;
    const Tensor turned = rotate(dq.narrow(3, nope, rope), cosine, sine, -1);
    const Tensor q =
        at::cat({dq.narrow(3, 0, nope), turned}, 3).transpose(1, 2).reshape({batch * seq, heads * (nope + rope)});
    const Tensor shared = rotate(dk.narrow(3, nope, rope).sum(1), cosine, sine, -1).view({batch * seq, rope});
    const Tensor kv_a = at::cat({at::zeros({batch * seq, m.kv_lora_rank}, dq.options()), shared}, 1);
    const Tensor kv_b = at::cat({dk.narrow(3, 0, nope), dv.narrow(3, 0, m.v_head_dim)}, 3)
                            .transpose(1, 2)
                            .reshape({batch * seq, heads * (nope + m.v_head_dim)});
    return {q, kv_a, kv_b, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

variable_list latent_qkv(const Tensor& normed, const Slot& w, const ModelSpec& m, const RopeTable& rope,
                         std::int64_t batch) {
  const MlaSpec& a = m.attention.mla;
  Tensor q;
  if (a.q_lora_rank > 0) {
    const Tensor low = rms_norm(product(normed, w, "attention.q_a"), w["attention.q_a_norm.weight"], m.norm_eps);
    q = at::mm(low, w["attention.q_b.weight"].t());
  } else {
    q = at::mm(normed, w["attention.q.weight"].t());
  }
  const Tensor kv_a = product(normed, w, "attention.kv_a");
  const Tensor latent =
      rms_norm(kv_a.narrow(1, 0, a.kv_lora_rank).contiguous(), w["attention.kv_a_norm.weight"], m.norm_eps);
  return Assemble::apply(q, kv_a, at::mm(latent, w["attention.kv_b.weight"].t()), rope.cosine, rope.sine, batch,
                         m.heads, &a);
}

variable_list split_qkv(Tensor qkv, const Slot& w, const ModelSpec& m, const RopeTable& rope, std::int64_t batch) {
  const AttentionSpec& a = m.attention;
  const auto bias = [&](const char* name) {
    const Tensor found = w.find(name);
    return found.defined() ? std::optional<Tensor>(found) : std::nullopt;
  };
  if (a.qk_layernorm)
    qkv = QkLayerNorm::apply(qkv, w["attention.q_norm.weight"], bias("attention.q_norm.bias"),
                             w["attention.k_norm.weight"], bias("attention.k_norm.bias"), m.heads * m.head_dim,
                             m.kv_heads * m.head_dim, m.norm_eps);
  else if (a.qk_norm != AttentionSpec::QkNorm::none)
    qkv = QkNorm::apply(qkv, w["attention.q_norm.weight"], w["attention.k_norm.weight"], m.heads * m.head_dim,
                        m.kv_heads * m.head_dim, m.norm_eps);
  if (a.clip_qkv > 0) qkv = Clip::apply(qkv, a.clip_qkv);
  return rope_split(qkv, rope, batch, m.heads, m.kv_heads);
}

/// Adds the adapters of that product of x to its result y (T, N).
Tensor with_adapters(Tensor y, const Tensor& x, const Slot& weights, std::string_view name) {
  for (const FactorPair& f : weights.adapters)
    if (f.product == name) y = add_low_rank(y, x, f.a, f.b, f.first, f.scale);
  return y;
}

/// Press et al. 2022; for head counts that are not powers of two like MPT.
std::vector<double> alibi_slopes(std::int64_t heads) {
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(heads)));
  std::vector<double> all, slopes;
  for (std::int64_t i = 1; i <= power; ++i)
    all.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(power)));
  if (power == heads) return all;
  for (std::size_t i = 1; i < all.size(); i += 2) slopes.push_back(all[i]);
  for (std::size_t i = 0; i < all.size(); i += 2) slopes.push_back(all[i]);
  slopes.resize(static_cast<std::size_t>(heads));
  return slopes;
}

/// Positions::masks for the tokens at `own`, by piece. first_key(query): the first key that it sees.
template <typename FirstKey>
std::vector<Tensor> make_masks(const std::vector<std::int64_t>& own, std::int64_t pieces,
                               const std::vector<double>& slopes, FirstKey&& first_key) {
  std::vector<Tensor> out;
  const std::int64_t heads = static_cast<std::int64_t>(slopes.size()),
                     length = static_cast<std::int64_t>(own.size()) / pieces;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const std::int64_t* query = own.data() + piece * length;
    const std::int64_t keys = query[length - 1] + 1;
    Tensor mask = at::full({1, heads, length, keys}, -std::numeric_limits<float>::infinity(), at::kFloat);
    float* bias = mask.data_ptr<float>();
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t key = first_key(query[i]); key <= query[i]; ++key)
          bias[(h * length + i) * keys + key] =
              static_cast<float>(slopes[static_cast<std::size_t>(h)] * static_cast<double>(key - query[i]));
    out.push_back(std::move(mask));
  }
  return out;
}

const std::vector<Tensor>& masks_of(const ModelSpec& m, const Positions& positions, std::int64_t layer) {
  return m.local_attention(layer) && !positions.local_masks.empty() ? positions.local_masks : positions.masks;
}

}  // namespace

std::vector<std::int64_t> context_positions(std::int64_t seq, std::int64_t context, std::int64_t rank) {
  std::vector<std::int64_t> out;
  if (context == 1) {
    for (std::int64_t i = 0; i < seq; ++i) out.push_back(i);
    return out;
  }
  const std::int64_t length = seq / (2 * context);
  for (const std::int64_t piece : {rank, 2 * context - 1 - rank})
    for (std::int64_t i = 0; i < length; ++i) out.push_back(piece * length + i);
  return out;
}

void Positions::add_to(std::vector<Tensor>& tensors) const {
  tensors.insert(tensors.end(), {rope.cosine, rope.sine});
  tensors.insert(tensors.end(), masks.begin(), masks.end());
  tensors.insert(tensors.end(), local_masks.begin(), local_masks.end());
}

Positions Positions::make(const ModelSpec& m, std::int64_t seq, std::int64_t context, std::int64_t rank) {
  Positions out;
  out.context = context;
  const std::vector<std::int64_t> own = context_positions(seq, context, rank);
  const std::int64_t tokens = static_cast<std::int64_t>(own.size());
  if (m.no_rotation()) {
    out.rope = {at::ones({tokens, m.rope_dim() / 2}, at::kFloat), at::zeros({tokens, m.rope_dim() / 2}, at::kFloat)};
  } else {
    out.rope = RopeTable::make(m, seq);
    const Tensor rows = at::tensor(own, at::kLong);
    if (context > 1) out.rope = {out.rope.cosine.index_select(0, rows), out.rope.sine.index_select(0, rows)};
  }
  const std::vector<double> slopes = m.attention.alibi ? alibi_slopes(m.heads) : std::vector<double>{0};
  const std::int64_t pieces = context == 1 ? 1 : 2;
  if (context > 1 || m.attention.alibi)
    out.masks = make_masks(own, pieces, slopes, [](std::int64_t) { return std::int64_t{0}; });
  const std::int64_t window = m.attention.window, chunk = m.attention.chunk;
  if (m.attention.any_local() && std::max(window, chunk) < seq)
    out.local_masks = make_masks(own, pieces, slopes, [&](std::int64_t query) {
      return window > 0 ? std::max<std::int64_t>(0, query - window + 1) : query / chunk * chunk;
    });
  return out;
}

Positions Positions::to(at::Device device, at::ScalarType type) const {
  Positions out{rope.to(device), {}, {}, context};
  const auto move = [&](const std::vector<Tensor>& from, std::vector<Tensor>& moved) {
    for (const Tensor& mask : from) moved.push_back(mask.to(device, device.is_cpu() ? at::kFloat : type));
  };
  move(masks, out.masks), move(local_masks, out.local_masks);
  return out;
}

Tensor product(const Tensor& x, const Slot& weights, const std::string& name) {
  const Tensor& weight = weights[name + ".weight"];
  const Tensor bias = weights.find(name + ".bias");
  return with_adapters(bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t()), x, weights, name);
}

Tensor norm(const Tensor& x, const Slot& weights, const std::string& name, const ModelSpec& m) {
  const Tensor& gain = weights[name + ".weight"];
  if (m.norm == Norm::rmsnorm) return rms_norm(x, gain, m.norm_eps);
  const Tensor bias = weights.find(name + ".bias");
  return at::layer_norm(x, {x.size(1)}, gain, bias.defined() ? std::optional<Tensor>(bias) : std::nullopt, m.norm_eps);
}

Projected norm_then_product(const Tensor& x, const Slot& weights, const std::string& name, const Tensor& weight,
                            const ModelSpec& m, at::ScalarType type, bool recompute_norm) {
  if (m.norm == Norm::rmsnorm) {
    NormProduct out = norm_product(x, weights[name + ".weight"], weight, m.norm_eps, type, recompute_norm);
    return {std::move(out.normed), std::move(out.product)};
  }
  const Tensor normed = norm(x, weights, name, m);
  return {normed, at::mm(normed.to(type), weight.to(type).t())};
}

Qkv project_qkv(const Tensor& x, const Slot& dense, const ModelSpec& m, const Positions& positions, std::int64_t batch,
                bool recompute_norm) {
  Qkv out;
  variable_list qkv;
  if (m.attention.mla.on()) {
    out.normed = norm(x, dense, "attention_norm", m);
    qkv = latent_qkv(out.normed, dense, m, positions.rope, batch);
  } else {
    Projected fused = norm_then_product(x, dense, "attention_norm", dense["attention.qkv.weight"], m, x.scalar_type(),
                                        recompute_norm);
    out.normed = std::move(fused.normed);
    fused.product = with_adapters(std::move(fused.product), out.normed, dense, "attention.qkv");
    if (const Tensor bias = dense.find("attention.qkv.bias"); bias.defined())
      fused.product.add_(bias);  // in place, because backward does not read the product
    qkv = split_qkv(std::move(fused.product), dense, m, positions.rope, batch);
  }
  if (m.attention.parallel != AttentionSpec::Parallel::one_norm) out.normed.reset();
  out.q = std::move(qkv[0]), out.k = std::move(qkv[1]), out.v = std::move(qkv[2]);
  return out;
}

Tensor in_sequence_order(const Tensor& gathered) {
  const std::int64_t ranks = gathered.size(0), length = gathered.size(4) / 2;
  const Tensor pieces = gathered.view({ranks, 2, gathered.size(2), gathered.size(3), 2, length, gathered.size(5)});
  // The inverse of context_positions: first pieces by rank, then second pieces in reverse order.
  return at::cat({pieces.select(4, 0), pieces.select(4, 1).flip(0)}, 0)
      .permute({1, 2, 3, 0, 4, 5})
      .reshape({2, gathered.size(2), gathered.size(3), 2 * ranks * length, gathered.size(5)});
}

Tensor in_rank_order(const Tensor& k, const Tensor& v, std::int64_t ranks) {
  const std::int64_t length = k.size(2) / (2 * ranks);
  Tensor out = at::empty({ranks, 2, k.size(0), k.size(1), 2, length, k.size(3)}, k.options());
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::int64_t piece = half == 0 ? rank : 2 * ranks - 1 - rank;
      out.select(0, rank).select(0, 0).select(2, half).copy_(k.narrow(2, piece * length, length));
      out.select(0, rank).select(0, 1).select(2, half).copy_(v.narrow(2, piece * length, length));
    }
  return out.view({ranks, 2, k.size(0), k.size(1), 2 * length, k.size(3)});
}

std::string attention_backend(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask) {
  const at::AutoGradMode training(true);
  const Tensor learned = q.detach().requires_grad_(true);
  switch (static_cast<at::SDPBackend>(
      at::_fused_sdp_choice(learned, k, v, mask, 0.0, !mask, std::nullopt, q.size(1) != k.size(1)))) {
    case at::SDPBackend::flash_attention:
      return "flash";
    case at::SDPBackend::efficient_attention:
      return "efficient";
    case at::SDPBackend::cudnn_attention:
      return "cudnn";
    case at::SDPBackend::math:
      return "math";
    default:
      return "unknown";
  }
}

std::string attention_backend(const ModelSpec& m, const Positions& positions, std::int64_t sequences,
                              at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type).device(positions.rope.cosine.device());
  if (m.attention.sinks && !options.device().is_cpu()) return "math";
  const std::vector<Tensor>& masks = masks_of(m, positions, 0);
  const bool context_parallel = positions.context > 1, masked = !masks.empty();
  const std::int64_t tokens = positions.rope.cosine.size(0), queries = context_parallel ? tokens / 2 : tokens;
  const std::int64_t keys = masked ? masks.back().size(3) : tokens;
  const Tensor k = at::empty({sequences, m.kv_heads, keys, m.head_dim}, options);
  std::optional<Tensor> mask;
  if (masked) mask = masks.back();
  return attention_backend(at::empty({sequences, m.heads, queries, m.head_dim}, options), k, k, mask);
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Slot& dense, const ModelSpec& m,
              const Positions& positions, std::int64_t layer, const Documents& documents) {
  const double scale = m.softmax_scale();
  const Tensor sinks = dense.find("attention.sinks");
  const auto core = [&](const Tensor& queries, const Tensor& keys, const Tensor& values,
                        const std::optional<Tensor>& mask) {
    if (sinks.defined()) return sink_attention(queries, keys, values, sinks, mask, scale, q.is_cpu());
    return at::scaled_dot_product_attention(queries, keys, values, mask, 0.0, !mask, scale, m.heads != m.kv_heads);
  };
  const std::vector<Tensor>& masks = masks_of(m, positions, layer);
  if (!documents.empty())
    return attend_documents(q, k, v, documents, masks, positions.context, m.v_head_dim(), core)
        .reshape({q.size(0) * q.size(2), m.heads * m.v_head_dim()});
  Tensor attended;
  if (positions.context == 1) {
    attended = core(q, k, v, masks.empty() ? std::nullopt : std::optional(masks[0]));
  } else {
    const std::int64_t length = q.size(2) / 2;
    std::vector<Tensor> pieces;
    for (std::int64_t piece = 0; piece < 2; ++piece) {
      const Tensor& mask = masks[static_cast<std::size_t>(piece)];
      const std::int64_t keys = mask.size(3);
      pieces.push_back(core(q.narrow(2, piece * length, length), k.narrow(2, 0, keys), v.narrow(2, 0, keys), mask));
    }
    attended = at::cat(pieces, 2);
  }
  return attended.narrow(3, 0, m.v_head_dim())
      .transpose(1, 2)
      .reshape({q.size(0) * q.size(2), m.heads * m.v_head_dim()});
}

}  // namespace wt
