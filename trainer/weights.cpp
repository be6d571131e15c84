#include "trainer/weights.hpp"

#include <cmath>
#include <numeric>
#include <random>

#include "configs/spec/error.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

std::uint64_t fnv1a(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325ull ^ (seed * 0x9e3779b97f4a7c15ull);
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

class LayoutBuilder {
 public:
  explicit LayoutBuilder(GroupLayout& out) : out_(out) {}
  /// A leaf that is a parameter of its own.
  void parameter(std::string name, std::vector<std::int64_t> shape, double init_std) {
    out_.leaves.push_back({shape, out_.elements});
    entry(std::move(name), std::move(shape), init_std);
  }
  void leaf(std::vector<std::int64_t> shape) { out_.leaves.push_back({std::move(shape), out_.elements}); }
  void entry(std::string name, std::vector<std::int64_t> shape, double init_std) {
    out_.parameters.push_back({std::move(name), std::move(shape), out_.elements, init_std});
    out_.elements += out_.parameters.back().elements();
  }

 private:
  GroupLayout& out_;
};

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
  LayoutBuilder build(out);
  const double base = 0.02, into_residual = 0.02 / std::sqrt(2.0 * static_cast<double>(m.layers));
  const std::string prefix = fmt::format("layers.{}.", layer);
  const std::int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  const Mesh mesh(layout);
  switch (group) {
    case Group::dense:
      build.parameter(prefix + "attention_norm.weight", {m.d_model}, 0);
      build.parameter(prefix + "attention.qkv.weight", {q + 2 * kv, m.d_model}, base);
      build.parameter(prefix + "attention.output.weight", {m.d_model, q}, into_residual);
      build.parameter(prefix + "ffn_norm.weight", {m.d_model}, 0);
      build.parameter(prefix + "router.weight", {m.experts, m.d_model}, base);
      break;
    case Group::expert: {
      const std::int64_t local = layout.slots_per_rank(m), first = mesh.coordinate(Axis::expert, rank) * local;
      const auto name = [&](std::int64_t slot, const char* what) {
        return fmt::format("{}experts.{}.{}", prefix, layout.expert_in_slot(layer, first + slot), what);
      };
      build.leaf({local, 2 * m.ffn, m.d_model});
      for (std::int64_t slot = 0; slot < local; ++slot) build.entry(name(slot, "gate_up.weight"), {2 * m.ffn, m.d_model}, base);
      build.leaf({local, m.d_model, m.ffn});
      for (std::int64_t slot = 0; slot < local; ++slot) build.entry(name(slot, "down.weight"), {m.d_model, m.ffn}, into_residual);
      break;
    }
    case Group::embedding: build.parameter("embedding.weight", {m.vocab, m.d_model}, base); break;
    case Group::head:
      build.parameter("norm.weight", {m.d_model}, 0);
      build.parameter("output.weight", {m.vocab, m.d_model}, base);
      break;
    case Group::none: break;
  }
  out.shard_ranks = mesh.size(shard_axis(group));
  out.shard_index = mesh.coordinate(shard_axis(group), rank);
  out.shard_elements = shard_elements(m, layout, group);
  out.state_index = mesh.coordinate(Axis::optimizer_shard, rank);
  out.state_elements = state_elements(m, layout, group);
  if (out.elements != group_elements(m, layout, group))
    throw_error(Code::runtime, "{} group holds {} elements, the step program says {}; mend trainer/weights.cpp",
                to_string(group), out.elements, group_elements(m, layout, group));
  return out;
}

ShardedGroup make_group(GroupLayout layout, std::uint64_t seed) {
  ShardedGroup g;
  g.layout = std::move(layout);
  const auto options = at::TensorOptions().dtype(at::kFloat);
  const std::int64_t n = g.layout.state_elements;
  g.master = at::zeros({n}, options), g.exp_avg = at::zeros({n}, options);
  g.exp_avg_sq = at::zeros({n}, options), g.gradient = at::zeros({g.layout.shard_elements}, options);
  float* master = g.master.data_ptr<float>();
  const std::int64_t begin = g.layout.state_begin(), end = begin + n;
  for (const ParameterInfo& p : g.layout.parameters) {
    if (p.offset >= end || p.offset + p.elements() <= begin) continue;
    std::mt19937_64 generator(fnv1a(p.name, seed));
    std::normal_distribution<double> normal(0.0, 1.0);
    for (std::int64_t i = 0; i < p.elements(); ++i) {  // drawn whole, so that the slice does not depend on the layout
      const double value = p.init_std > 0 ? p.init_std * normal(generator) : 1.0;
      if (const std::int64_t at = p.offset + i; at >= begin && at < end) master[at - begin] = static_cast<float>(value);
    }
  }
  return g;
}

at::Tensor ShardedGroup::state_gradient() const {
  return gradient.narrow(0, layout.state_index * layout.state_elements, layout.state_elements);
}

GradientBuffer GradientBuffer::make(const GroupLayout& layout) {
  GradientBuffer out;
  out.flat = at::zeros({layout.padded()}, at::TensorOptions().dtype(at::kFloat));
  out.leaves = views(out.flat, layout);
  return out;
}

Slot Slot::make(const GroupLayout& layout, at::ScalarType type) {
  Slot slot;
  slot.flat = at::zeros({layout.padded()}, at::TensorOptions().dtype(type));
  slot.leaves = views(slot.flat, layout);
  // A version counter of their own: the next gather writes into memory that saved tensors still name, on purpose.
  for (at::Tensor& leaf : slot.leaves) leaf = leaf.variable_data().requires_grad_(true);
  return slot;
}

void Slot::accumulate_into(const GradientBuffer& gradient) {
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].mutable_grad() = gradient.leaves[i];
}

}  // namespace wt
