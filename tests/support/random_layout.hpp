// Random steps to simulate: small models of several shapes, every kind of layout up to 64 ranks, uneven routing,
// clusters with and without oversubscription. Half of them are of other stacks: tensor groups, pipelines, rings of
// context ranks, ZeRO-1. A seed gives the same case on every machine.
#pragma once
#include <numeric>
#include <random>

#include "configs/spec/support/error.hpp"
#include "sim/replay/representatives.hpp"
#include "tests/support/fake_cost.hpp"

namespace wt::test {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  /// 0..below-1; std::uniform_int_distribution differs between libraries.
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(limit));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool once_in(std::int64_t n) { return below(n) == 0; }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double scaled(double low, double high) { return low * std::pow(high / low, unit()); }  ///< even in the logarithm
  template <class T>
  T of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
  }
  std::int64_t divisor(std::int64_t n) {
    std::vector<std::int64_t> all;
    for (std::int64_t d = 1; d <= n; ++d)
      if (n % d == 0) all.push_back(d);
    return of(all);
  }

 private:
  std::mt19937_64 engine_;
};

/// Every (microbatch, layer, rank) sends its rows by weights of its own; some experts get none. `same` = every rank's
/// alike.
class RandomRouting : public RoutingSource {
 public:
  RandomRouting(std::uint64_t seed, std::int64_t experts, std::int64_t top_k, Microbatches tokens, bool same)
      : seed_(seed), experts_(experts), top_k_(top_k), tokens_(tokens), same_(same) {}
  std::vector<double> counts(std::int64_t, std::int64_t microbatch, std::int64_t layer,
                             std::int64_t rank) const override {
    Draw draw(seed_ + static_cast<std::uint64_t>((microbatch * 1009 + layer) * 1009 + (same_ ? 0 : rank)));
    std::vector<double> weights;
    for (std::int64_t e = 0; e < experts_; ++e)
      weights.push_back(e > 0 && draw.once_in(4) ? 0 : std::pow(draw.unit(), 3) + 1e-3);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& w : weights) w *= static_cast<double>(tokens_.of(static_cast<int>(microbatch)) * top_k_) / sum;
    return weights;
  }
  std::string description() const override { return "random"; }

 private:
  std::uint64_t seed_;
  std::int64_t experts_, top_k_;
  Microbatches tokens_;
  bool same_;
};

struct RandomStep {
  ModelSpec model;
  Layout layout;
  ClusterSpec cluster;
  FakeCost cost;
  std::int64_t rank = 0;  ///< one of them
  std::unique_ptr<RoutingSource> routing;
  ProgramSet set;
};

inline ModelSpec random_model(Draw& draw) {
  ModelSpec m = small_model(draw.between(1, 4));
  m.d_model = 128 * draw.between(1, 8), m.head_dim = 32 * draw.between(1, 4), m.ffn = 256 * draw.between(1, 8);
  m.vocab = 512 * draw.between(1, 16), m.tied = draw.once_in(3);
  m.experts = draw.of<std::int64_t>({0, 2, 4, 6, 8, 16});
  m.top_k = m.experts == 0 ? 0 : draw.between(1, std::min<std::int64_t>(4, m.experts));
  if (draw.once_in(3)) m.norm = Norm::layernorm, m.activation = Activation::gelu;
  if (m.experts > 0 && draw.once_in(3)) m.shared_ffn = 256 * draw.between(1, 4);
  if (m.experts > 0 && m.layers > 1 && draw.once_in(3)) m.dense_layers = 1, m.dense_ffn = 512 * draw.between(1, 4);
  if (m.experts > 0 && m.layers > 1 && draw.once_in(4))
    m.moe_pattern = {draw.of<std::vector<bool>>({{false, true}, {true, false}, {false, true, true}})},
    m.dense_ffn = 512 * draw.between(1, 4);
  if (draw.once_in(4)) m.attention.window = 16 * draw.between(1, 8), m.attention.local = {{true, false}};
  if (draw.once_in(4)) m.mtp_layers = draw.between(1, 2);
  m.ffn_bias = draw.once_in(4), m.attention.sinks = draw.once_in(4);
  if (draw.once_in(4)) {
    const std::int64_t rotary = m.head_dim / 2;
    m.kv_heads = m.heads;
    m.attention.mla = {.kv_lora_rank = 64,
                       .q_lora_rank = draw.once_in(2) ? 0 : 128,
                       .qk_nope_head_dim = m.head_dim - rotary,
                       .qk_rope_head_dim = rotary,
                       .v_head_dim = m.head_dim};
  }
  return m;
}

/// Of at most `ranks` data ranks.
inline Layout random_layout(Draw& draw, const ModelSpec& model, std::int64_t ranks = 64) {
  Layout l;
  l.shard = draw.between(1, draw.once_in(2) ? ranks : std::min<std::int64_t>(16, ranks)),
  l.replicate = draw.between(1, ranks / l.shard);
  l.context = draw.once_in(3) ? std::gcd(draw.divisor(l.shard), std::int64_t{32}) : 1;
  if (model.experts > 0) l.expert = std::gcd(draw.divisor(l.shard), draw.divisor(model.experts));
  if (draw.once_in(4)) l.optimizer_shard = draw.divisor(l.replicate);
  l.reshard_after_forward = !draw.once_in(4), l.reduce_every_microbatch = !draw.once_in(4);
  l.recompute =
      recompute_from_string(draw.of<std::string>({"none", "none", "block", "block/int8", "attention", "experts",
                                                  "attention+experts", "attention:last-1+experts:first-1"}));
  if (model.experts > 0 && draw.once_in(4)) {  // moved experts, and up to two more slots a rank for copies
    const std::int64_t slots = model.experts + l.expert * draw.below(3);
    for (std::int64_t layer = 0; layer < model.blocks(); ++layer) {
      auto& row = l.placement.emplace_back();
      for (std::int64_t slot = 0; slot < slots; ++slot)
        row.push_back(slot < model.experts ? slot : draw.below(model.experts));
      for (std::size_t i = row.size(); i > 1; --i)
        std::swap(row[i - 1], row[static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(i)))]);
    }
  }
  return l;
}

/// Leaves the embedding, the head or modules of multi-token prediction a chunk each.
inline void move_layers_off_ends(Draw& draw, const ModelSpec& model, Layout& l) {
  std::vector<std::int64_t>& chunks = l.chunk_layers;
  chunks = l.layers_of_chunks(model.layers);
  const auto move = [&](std::size_t from, std::size_t to) { chunks[to] += chunks[from], chunks[from] = 0; };
  const std::size_t last = chunks.size() - 1;
  if (draw.once_in(2)) move(last, last - 1);
  l.modules_before_head =
      chunks[last] == 0 && model.mtp_layers > 0 && l.schedule != Schedule::dualpipe_v && draw.once_in(2);
  if (l.modules_before_head && last > 1 && draw.once_in(2)) move(last - 1, last - 2);
  if (last > 1 && draw.once_in(2)) move(0, 1);
}

/// What our trainer does not run, in any mixture; some are refused by Layout::check. Gives the model the layers that
/// its stages need. Pipelines are of 32 ranks at most: all of their passes are simulated one by one.
inline Layout random_simulated_layout(Draw& draw, ModelSpec& model) {
  const std::int64_t stages = draw.of<std::int64_t>({1, 1, 2, 2, 3, 4}),
                     tensor = draw.of<std::int64_t>({1, 1, 2, 4, 8}),
                     chunks = stages > 1 && draw.once_in(3) ? draw.between(2, 3) : 1;
  if (stages > 1) model.layers = stages * chunks * draw.between(1, chunks > 1 ? 1 : 2);
  Layout l = random_layout(draw, model, (stages > 1 ? 32 : 64) / (stages * tensor));
  l.pipeline = stages, l.virtual_stages = chunks;
  if (stages > 1 && draw.once_in(3)) l.schedule = chunks == 2 ? Schedule::dualpipe_v : Schedule::zero_bubble;
  l.tensor = tensor, l.sequence_parallel = tensor > 1 && (model.experts > 0 || draw.once_in(2));
  if (stages > 1 || (tensor > 1 && draw.once_in(2))) l.reshard_after_forward = l.reduce_every_microbatch = false;
  l.exchange_overlap = l.resident_weights() && l.expert > 1 && l.schedule != Schedule::zero_bubble && draw.once_in(2);
  l.context_ring = l.context > 1 && !draw.once_in(3);
  if (l.context_ring) model.attention.window = 0, model.attention.local = {}, model.attention.sinks = false;
  if (stages > 1 && model.mtp_layers > 0) model.tied = false;
  if (draw.once_in(3))
    l.recompute = recompute_from_string(draw.of<std::string>(
        {"core", "core+experts", "norm", "core:first-1", "moe", "moe+norm:first-1", "moe_act+core", "norm+moe_act",
         "mlp+shared_experts", "mla_up_proj", "mla_up_proj+moe_act+norm", "attention+moe:last-1"}));
  if (l.context == 1 && l.expert == 1 && draw.once_in(3))  // ZeRO-1
    l.replicate *= l.shard, l.shard = 1, l.optimizer_shard = l.replicate;
  if (stages > 1 && draw.once_in(3)) move_layers_off_ends(draw, model, l);
  return l;
}

/// Around A100 to B200 nodes of 1 to 8 GPUs, a third of them behind oversubscribed uplinks.
inline ClusterSpec random_cluster(Draw& draw, std::int64_t ranks) {
  const std::int64_t gpus = std::int64_t{1} << draw.below(4);
  ClusterSpec c = small_cluster((ranks + gpus - 1) / gpus, draw.once_in(3) ? draw.of<double>({2, 3, 8}) : 1);
  c.gpus_per_node = c.nic_count = gpus, c.nodes_per_leaf = draw.between(1, 8);
  c.nvswitch_Bps = draw.scaled(100e9, 900e9), c.nic_Bps = draw.scaled(5e9, 100e9);
  return c;
}

/// Beside a third of the steps that a run with adapters may have (check_lora.hpp): of q and of the output.
inline std::optional<AdapterShape> random_adapters(Draw draw, const ModelSpec& m, const Layout& l) {
  const bool blocks_alone = std::ranges::all_of(
      l.recompute.rules(), [](const Recompute::Rule& rule) { return rule.module == Module::block; });
  if (!draw.once_in(3) || m.attention.mla.on() || m.mtp_layers > 0 || l.tensor > 1 || l.optimizer_shard > 1 ||
      l.schedule != Schedule::one_f_one_b || l.exchange_overlap || !l.placement.empty() || !blocks_alone)
    return std::nullopt;
  AdapterShape out{draw.between(1, 64), {}};
  const std::int64_t width = m.heads * m.head_dim;
  for (std::int64_t layer = 0; layer < m.layers; ++layer)
    out.products.push_back({width, m.d_model, layer, false}), out.products.push_back({m.d_model, width, layer, true});
  return out;
}

/// `host`: ranks that share the cores of one machine, not GPUs. `simulated`: a layout that our trainer does not run.
inline RandomStep drawn_step(Draw& draw, std::uint64_t seed, bool host, bool simulated) {
  RandomStep s;
  s.model = random_model(draw);
  s.layout = simulated ? random_simulated_layout(draw, s.model) : random_layout(draw, s.model);
  const std::int64_t world = s.layout.world();
  s.cluster = host ? shared_host(world, static_cast<double>(draw.between(1, 8))) : random_cluster(draw, world);
  s.cost.flops = draw.scaled(1e13, 1e15), s.cost.Bps = draw.scaled(5e11, 8e12),
  s.cost.latency_s = draw.scaled(1e-6, 1e-3);
  s.cost.efficiency = draw.scaled(0.3, 1), s.cost.host_computes = host,
  s.cost.cpu_per_byte = host ? draw.scaled(1e-12, 1e-9) : 0;
  s.rank = draw.below(world);
  const std::int64_t seq = 32 * draw.between(1, 16);
  std::int64_t count = draw.between(1, 3);
  const std::int64_t each = draw.between(1, 3), fewer = draw.between(1, each);
  const std::int64_t last = s.layout.resident_weights() ? each : fewer;
  if (s.layout.pipeline > 1)
    count = s.layout.schedule == Schedule::dualpipe_v ? 2 * s.layout.pipeline + draw.below(2)
            : s.layout.virtual_stages > 1             ? s.layout.pipeline * draw.between(1, 2)
                                                      : draw.between(1, 6);
  s.layout.microbatch = each;
  const std::int64_t tokens = seq / s.layout.context;
  s.routing = std::make_unique<RandomRouting>(seed, std::max<std::int64_t>(1, s.model.experts), s.model.top_k,
                                              Microbatches{count, each * tokens, last * tokens}, draw.once_in(2));
  ProgramOptions options{seq, count, draw.once_in(2) ? Precision::bf16 : Precision::fp32, false, last};
  if (simulated && !host && draw.once_in(4)) options.optimizer = OptimizerKind::muon;
  if (options.optimizer == OptimizerKind::adamw) options.lora = random_adapters(Draw(seed * 31), s.model, s.layout);
  s.set = build_program_set(s.model, s.layout, options);
  s.cost.algorithm = kAllReduces[static_cast<std::size_t>(draw.below(kAllReduces.size()))];
  if (!host && draw.once_in(2)) s.cost.slowdown = draw.scaled(0.02, 0.5);
  if (host) s.cost.crowded = draw.scaled(1, 1.3);
  if (!host) s.cost.separate = draw.once_in(2);
  return s;
}

/// Draws again where a layout is refused.
inline RandomStep random_step(std::uint64_t seed, bool host) {
  Draw draw(seed);
  const bool simulated = Draw(~seed).once_in(2);
  while (true) try {
      return drawn_step(draw, seed, host, simulated);
    } catch (const Error& refused) {
      if (refused.code() != Code::usage) throw;
    }
}

}  // namespace wt::test
