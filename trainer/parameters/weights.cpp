#include "trainer/parameters/weights.hpp"

#include <cmath>
#include <numeric>
#include <thread>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "sim/program/compose/expert_copies.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// Not hash.hpp's, because all published losses were trained from weights drawn by this hash.
std::uint64_t fnv1a(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325ull ^ (seed * 0x9e3779b97f4a7c15ull);
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

/// Standard normal numbers 2 * pair and 2 * pair + 1 of a sequence (Box and Muller 1958 with splitmix64 of Steele et
/// al. 2014). Random access costs the same everywhere, so that a rank draws only its slice, with the same values in any
/// layout.
std::array<double, 2> normal_pair(std::uint64_t key, std::int64_t pair) {
  const std::uint64_t bits = splitmix64(key ^ splitmix64(static_cast<std::uint64_t>(pair)));
  const double radius = std::sqrt(-2 * std::log((static_cast<double>(bits >> 32) + 0.5) * 0x1p-32));
  const double angle = 6.283185307179586 * (static_cast<double>(bits & 0xffffffffu) * 0x1p-32);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// values[i] = std * (number first + i), for all i < count.
void draw(std::uint64_t key, double std, std::int64_t first, std::int64_t count, float* values) {
  for (std::int64_t i = first; i < first + count;) {
    const std::array<double, 2> drawn = normal_pair(key, i / 2);
    for (std::int64_t half = i % 2; half < 2 && i < first + count; ++half, ++i)
      values[i - first] = static_cast<float>(std * drawn[static_cast<std::size_t>(half)]);
  }
}

/// values[i] = (number first + i) of a uniform sequence between -bound and bound, for all i < count.
void draw_uniform(std::uint64_t key, double bound, std::int64_t first, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = splitmix64(key ^ splitmix64(static_cast<std::uint64_t>(first + i)));
    values[i] = static_cast<float>(bound * (static_cast<double>(bits >> 11) * 0x1p-52 - 1));
  }
}

/// Like draw(), on all cores if it is large enough.
void draw_in_parallel(std::uint64_t key, double std, std::int64_t first, std::int64_t count, float* values) {
  constexpr std::int64_t kAlone = 1 << 22;
  const std::int64_t threads =
      std::clamp<std::int64_t>(count / kAlone, 1, std::max(1u, std::thread::hardware_concurrency()));
  const std::int64_t each = (count + threads - 1) / threads;
  std::vector<std::jthread> workers;
  for (std::int64_t at = each; at < count; at += each)
    workers.emplace_back([=] { draw(key, std, first + at, std::min(each, count - at), values + at); });
  draw(key, std, first, std::min(each, count), values);
}

class LayoutBuilder {
 public:
  LayoutBuilder(GroupLayout& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}
  /// A leaf that is a single parameter.
  void parameter(const std::string& name, std::vector<std::int64_t> shape, double init_std) {
    leaf(name, shape);
    entry(name, std::move(shape), init_std);
  }
  void leaf(const std::string& name, std::vector<std::int64_t> shape) {
    out_.leaves.push_back({name, std::move(shape), out_.elements});
  }
  void entry(const std::string& name, std::vector<std::int64_t> shape, double init_std) {
    out_.parameters.push_back({prefix_ + name, std::move(shape), out_.elements, init_std});
    out_.elements += out_.parameters.back().elements();
  }
  void norm(const ModelSpec& m, const std::string& name) {
    parameter(name + ".weight", {m.d_model}, kOnes);
    if (m.norm_bias) parameter(name + ".bias", {m.d_model}, kZeros);
  }

 private:
  GroupLayout& out_;
  std::string prefix_;
};

constexpr double kBase = 0.02;
/// Standard deviation for projections into the residual stream (GPT-2).
double into_residual(const ModelSpec& m) { return kBase / std::sqrt(2.0 * static_cast<double>(m.layers)); }

void add_attention(LayoutBuilder& build, const ModelSpec& m) {
  const AttentionSpec& a = m.attention;
  const auto bias = [&](const char* name, std::int64_t rows) {
    if (a.bias != AttentionSpec::Bias::none) build.parameter(name, {rows}, kZeros);
  };
  const std::int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim, d = m.d_model;
  if (a.mla.on()) {
    const std::int64_t low = a.mla.q_lora_rank, lora = a.mla.kv_lora_rank;
    if (low > 0) {
      build.parameter("attention.q_a.weight", {low, d}, kBase);
      bias("attention.q_a.bias", low);
      build.parameter("attention.q_a_norm.weight", {low}, kOnes);
      build.parameter("attention.q_b.weight", {q, low}, kBase);
    } else {
      build.parameter("attention.q.weight", {q, d}, kBase);
    }
    build.parameter("attention.kv_a.weight", {lora + a.mla.qk_rope_head_dim, d}, kBase);
    bias("attention.kv_a.bias", lora + a.mla.qk_rope_head_dim);
    build.parameter("attention.kv_a_norm.weight", {lora}, kOnes);
    build.parameter("attention.kv_b.weight", {m.heads * (a.mla.qk_nope_head_dim + a.mla.v_head_dim), lora}, kBase);
  } else {
    build.parameter("attention.qkv.weight", {q + 2 * kv, d}, kBase);
    bias("attention.qkv.bias", q + 2 * kv);
  }
  if (a.qk_norm != AttentionSpec::QkNorm::none) {
    const bool full = a.qk_norm == AttentionSpec::QkNorm::full;
    build.parameter("attention.q_norm.weight", {full ? q : m.head_dim}, kOnes);
    build.parameter("attention.k_norm.weight", {full ? kv : m.head_dim}, kOnes);
    if (a.qk_layernorm && m.norm_bias) {
      build.parameter("attention.q_norm.bias", {full ? q : m.head_dim}, kZeros);
      build.parameter("attention.k_norm.bias", {full ? kv : m.head_dim}, kZeros);
    }
  }
  build.parameter("attention.output.weight", {d, m.heads * m.v_head_dim()}, into_residual(m));
  if (a.bias == AttentionSpec::Bias::all) bias("attention.output.bias", d);
  if (a.sinks) build.parameter("attention.sinks", {m.heads}, kBase);
}

/// Learned positions precede the embedding.
void add_positions(LayoutBuilder& build, const ModelSpec& m) {
  if (m.learned_positions > 0) build.parameter("positions.weight", {m.learned_positions, m.d_model}, kBase);
}

std::vector<at::Tensor> views(const at::Tensor& flat, const GroupLayout& layout) {
  std::vector<at::Tensor> out;
  for (const LeafInfo& leaf : layout.leaves) {
    const std::int64_t n = std::accumulate(leaf.shape.begin(), leaf.shape.end(), std::int64_t{1}, std::multiplies<>());
    out.push_back(flat.narrow(0, leaf.offset, n).view(leaf.shape));
  }
  return out;
}

}  // namespace

std::int64_t ParameterInfo::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

GroupLayout group_layout(const ModelSpec& m, const Layout& layout, Group group, std::int64_t layer, std::int64_t rank) {
  GroupLayout out;
  out.group = group;
  LayoutBuilder build(out, layer < 0 ? "" : fmt::format("layers.{}.", layer));
  const Mesh mesh(layout);
  switch (group) {
    case Group::dense: {
      if (m.mtp(layer)) {
        build.norm(m, "enorm"), build.norm(m, "hnorm");
        build.parameter("eh_proj.weight", {m.d_model, 2 * m.d_model}, kBase);
        build.norm(m, "shared_head.norm");
      }
      build.norm(m, "attention_norm");
      add_attention(build, m);
      if (m.attention.parallel != AttentionSpec::Parallel::one_norm) build.norm(m, "ffn_norm");
      if (m.moe(layer)) {
        build.parameter("router.weight", {m.experts, m.d_model}, kBase);
        if (m.ffn_bias) build.parameter("router.logit_bias", {m.experts}, kZeros);
      }
      const std::string ffn = m.moe(layer) ? "shared_experts." : "ffn.";
      if (const std::int64_t width = m.ffn_width(layer); width > 0) {
        const std::string first = ffn + (m.gated() ? "gate_up" : "up");
        build.parameter(first + ".weight", {m.ffn_rows(width), m.d_model}, kBase);
        build.parameter(ffn + "down.weight", {m.d_model, width}, into_residual(m));
        if (m.ffn_bias) {
          build.parameter(first + ".bias", {m.ffn_rows(width)}, kZeros);
          build.parameter(ffn + "down.bias", {m.d_model}, kZeros);
        }
      }
      break;
    }
    case Group::expert: {
      if (!m.moe(layer)) break;
      const std::int64_t local = layout.slots_per_rank(m), first = mesh.coordinate(Axis::expert, rank) * local;
      const auto name = [&](std::int64_t slot, const char* what) {
        return fmt::format("experts.{}.{}", layout.expert_in_slot(layer, first + slot), what);
      };
      const auto stacked = [&](const char* what, std::vector<std::int64_t> shape, double std) {
        std::vector<std::int64_t> all{local};
        all.insert(all.end(), shape.begin(), shape.end());
        build.leaf(fmt::format("experts.{}", what), std::move(all));
        for (std::int64_t slot = 0; slot < local; ++slot) {
          build.entry(name(slot, what), shape, std);
          out.parameters.back().further_copy = is_further_copy(layout, layer, first + slot);
        }
      };
      const std::string into = m.gated() ? "gate_up" : "up";
      stacked((into + ".weight").c_str(), {m.ffn_rows(m.ffn), m.d_model}, kBase);
      stacked("down.weight", {m.d_model, m.ffn}, into_residual(m));
      if (m.ffn_bias)
        stacked((into + ".bias").c_str(), {m.ffn_rows(m.ffn)}, kZeros), stacked("down.bias", {m.d_model}, kZeros);
      break;
    }
    case Group::embedding:
      if (m.tied) break;
      add_positions(build, m);
      build.parameter("embedding.weight", {m.vocab, m.d_model}, kBase);
      break;
    case Group::head:
      if (m.tied) add_positions(build, m);
      build.norm(m, "norm");
      build.parameter(m.tied ? "embedding.weight" : "output.weight", {m.vocab, m.d_model}, kBase);
      break;
    case Group::router_bias:
      for (std::int64_t l = 0; l < m.blocks(); ++l)
        if (m.moe(l)) build.parameter(fmt::format("layers.{}.router.bias", l), {m.experts}, kZeros);
      break;
    case Group::adapter:
    case Group::none:
      break;
  }
  if (out.elements != group_elements(m, layout, group, layer))
    throw_runtime("{} group holds {} elements, the step program says {}; fix trainer/parameters/weights.cpp",
                  to_string(group), out.elements, group_elements(m, layout, group, layer));
  if (group == Group::router_bias) {
    out.copied = true;
    out.shard_elements = out.state_elements = out.elements;
    return out;
  }
  out.shard_ranks = mesh.size(shard_axis(group));
  out.shard_index = mesh.coordinate(shard_axis(group), rank);
  out.shard_elements = shard_elements(m, layout, group, layer);
  out.state_index = mesh.coordinate(Axis::optimizer_shard, rank);
  out.state_elements = state_elements(m, layout, group, layer);
  return out;
}

ShardedGroup make_group(GroupLayout layout, std::uint64_t seed, at::Device device, Moments moments) {
  ShardedGroup g;
  g.layout = std::move(layout);
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  const std::int64_t n = g.layout.state_elements;
  g.master = at::zeros({n}, options);
  if (moments != Moments::none)
    g.exp_avg = at::zeros({n}, options), g.gradient = at::zeros({g.layout.shard_elements}, options);
  if (moments == Moments::two) g.exp_avg_sq = at::zeros({n}, options);
  fill_from_host(g.master, [&](float* master) {
    g.layout.for_state_parts([&](const ParameterInfo& p, std::int64_t first, std::int64_t count, std::int64_t at) {
      const std::uint64_t key = fnv1a(p.name, seed);
      if (p.init_std > 0)
        draw_in_parallel(key, p.init_std, first, count, master + at);
      else if (p.init_std == kUniform)
        draw_uniform(key, 1 / std::sqrt(static_cast<double>(p.shape.back())), first, count, master + at);
      else
        std::fill_n(master + at, count, p.init_std == kOnes ? 1.0f : 0.0f);
    });
  });
  return g;
}

at::Tensor ShardedGroup::state_gradient() const {
  if (frozen()) return {};
  return gradient.narrow(0, layout.state_index * layout.state_elements, layout.state_elements);
}

std::vector<at::Tensor> ShardedGroup::states() const {
  std::vector<at::Tensor> out{master};
  for (const at::Tensor& moment : {exp_avg, exp_avg_sq})
    if (moment.defined()) out.push_back(moment);
  return out;
}

GradientBuffer GradientBuffer::make(const GroupLayout& layout, at::Device device, const at::Tensor& storage) {
  GradientBuffer out;
  out.flat = storage.defined() ? storage.narrow(0, 0, layout.padded())
                               : at::zeros({layout.padded()}, at::TensorOptions().dtype(at::kFloat).device(device));
  out.leaves = views(out.flat, layout);
  return out;
}

at::Tensor Slot::find(std::string_view name) const {
  const auto it = std::ranges::find(names, name);
  return it == names.end() ? at::Tensor() : leaves[static_cast<std::size_t>(it - names.begin())];
}

const at::Tensor& Slot::operator[](std::string_view name) const {
  const auto it = std::ranges::find(names, name);
  if (it == names.end()) throw_runtime("a block's weights have no '{}'; fix trainer/parameters/weights.cpp", name);
  return leaves[static_cast<std::size_t>(it - names.begin())];
}

Slot Slot::make(const GroupLayout& layout, at::TensorOptions options, const at::Tensor& storage, bool learned) {
  Slot slot;
  slot.flat = storage.defined() ? storage.narrow(0, 0, layout.padded()) : at::zeros({layout.padded()}, options);
  slot.leaves = views(slot.flat, layout);
  // Separate version counters: the next gather intentionally overwrites memory that saved tensors still reference.
  for (at::Tensor& leaf : slot.leaves) leaf = leaf.variable_data().requires_grad_(learned);
  for (const LeafInfo& leaf : layout.leaves) slot.names.push_back(leaf.name);
  return slot;
}

void Slot::accumulate_into(const GradientBuffer& gradient) {
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].mutable_grad() = gradient.leaves[i];
}

}  // namespace wt
