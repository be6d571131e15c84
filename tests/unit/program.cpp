// The step program: names, order, waits and sizes of what FSDP with experts does.
#include <catch2/catch.hpp>
#include <set>

#include "configs/spec/error.hpp"
#include "sim/program/build.hpp"
#include "sim/program/routing.hpp"

using namespace wt;

namespace {

ModelSpec tiny() {
  ModelSpec m;
  m.name = "tiny";
  m.layers = 3, m.d_model = 8, m.heads = 2, m.kv_heads = 1, m.head_dim = 4, m.ffn = 16, m.experts = 4, m.top_k = 2;
  m.vocab = 32;
  return m;
}

std::vector<OpInstance> instances(const Program& p) { return unroll(p); }

}  // namespace

TEST_CASE("every layout unrolls, with unique ids and waits that point back") {
  for (auto [r, s, e] : {std::array{1, 1, 1}, {4, 1, 1}, {2, 2, 1}, {2, 2, 2}, {1, 4, 1}, {1, 4, 2}, {1, 4, 4}})
    for (const Recompute& policy : {Recompute::none, Recompute::block})
      for (std::int64_t layers : {1, 2, 3, 5}) {
        ModelSpec model = tiny();
        model.layers = layers;
        Layout layout{r, s, e, 1, policy, {}};
        ProgramOptions options{16, 2, Precision::fp32, true};
        const ProgramSet set = build_program_set(model, layout, options);
        std::set<std::string> ids;
        const auto ops = instances(set.programs[0]);
        for (std::size_t i = 0; i < ops.size(); ++i) {
          CHECK(ids.insert(ops[i].id()).second);
          for (int wait : ops[i].waits) CHECK(wait < static_cast<int>(i));
        }
        CHECK(ids.count("mb0.head") == 1);
        CHECK(ids.count("mb1.L0.attn.bwd") == 1);
        CHECK(ids.count("mb0.L0.dispatch.fwd") == (e > 1 ? 1u : 0u));
        CHECK(ids.count("mb1.L0.dense.replicas") == (r > 1 ? 1u : 0u));
        CHECK(ids.count("mb0.L0.dense.replicas") == 0);  // replicas are summed once a step
      }
}

TEST_CASE("weights of the next layer are gathered before this layer computes") {
  const ProgramSet set = build_program_set(tiny(), Layout{1, 4, 2, 1, Recompute::none, {}}, {16, 1, Precision::fp32, true});
  const auto ops = instances(set.programs[0]);
  const auto at = [&](const std::string& id) {
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].id() == id) return static_cast<int>(i);
    return -1;
  };
  CHECK(at("mb0.L1.dense.unshard.fwd") < at("mb0.L0.attn.fwd"));
  CHECK(at("mb0.L0.dense.unshard.bwd") < at("mb0.L1.combine.bwd"));
  CHECK(at("mb0.L2.dense.reduce") < at("mb0.L1.dense.reduce"));
}

TEST_CASE("work is named by what the model has: its norm, its activation, its biases") {
  using Bias = AttentionSpec::Bias;
  const auto widths = [](const ModelSpec& m, const std::string& op, Kernel kernel) {
    std::multiset<std::int64_t> out;
    const ProgramSet set = build_program_set(m, Layout{}, {16, 1, Precision::fp32, true});
    for (const OpInstance& instance : instances(set.programs[0]))
      if (instance.id() == op)
        for (const WorkItem& item : instance.op->work)
          if (item.kernel == kernel) out.insert(item.dims[0]);
    return out;
  };
  using Widths = std::multiset<std::int64_t>;
  ModelSpec m = tiny();
  m.experts = m.top_k = 0;
  CHECK(widths(m, "mb0.L0.attn.fwd", Kernel::rmsnorm) == Widths{8, 8});
  CHECK(widths(m, "mb0.L0.ffn.fwd", Kernel::swiglu) == Widths{16});
  CHECK(widths(m, "mb0.L0.attn.fwd", Kernel::bias).empty());
  m.norm = Norm::layernorm, m.activation = Activation::gelu, m.attention.bias = Bias::all;
  for (const char* pass : {"fwd", "bwd"}) {
    CHECK(widths(m, fmt::format("mb0.L0.attn.{}", pass), Kernel::layernorm) == Widths{8, 8});
    CHECK(widths(m, fmt::format("mb0.L0.attn.{}", pass), Kernel::rmsnorm).empty());
    CHECK(widths(m, fmt::format("mb0.L0.ffn.{}", pass), Kernel::gelu) == Widths{16});
    CHECK(widths(m, fmt::format("mb0.L0.attn.{}", pass), Kernel::bias) == Widths{8, 16});  // output; q and 2 kv
  }
  CHECK(widths(m, "mb0.head", Kernel::layernorm) == Widths{8, 8});
  m.attention.bias = Bias::qkv;
  CHECK(widths(m, "mb0.L0.attn.fwd", Kernel::bias) == Widths{16});
  const std::int64_t with = m.total_parameters();
  m.attention.bias = Bias::none;
  CHECK(with - m.total_parameters() == 3 * 16);
}

TEST_CASE("published parameter counts and FLOPs of DBRX") {
  ModelSpec m;
  m.name = "dbrx";
  m.layers = 40, m.d_model = 6144, m.heads = 48, m.kv_heads = 8, m.head_dim = 128, m.ffn = 10752, m.experts = 16;
  m.top_k = 4, m.vocab = 100352;
  const std::int64_t norms = m.layers * 2 * m.d_model + m.d_model;  // the published count leaves the norms out
  CHECK(m.total_parameters() - norms == 131596025856);
  CHECK(m.active_parameters() - norms == 36469211136);
  CHECK(m.flops_per_token(4096) == Approx(221.1e9).epsilon(1e-3));
  CHECK(m.flops_per_token(8192) - m.flops_per_token(4096) == Approx(0.001475e9 * 4096).epsilon(1e-3));
}

TEST_CASE("mesh groups partition the world on every axis, experts innermost") {
  const Mesh mesh(2, 4, 2);
  CHECK(mesh.members(Axis::expert, 1) == std::vector<std::int64_t>{2, 3});
  CHECK(mesh.members(Axis::expert_shard, 1) == std::vector<std::int64_t>{1, 3});
  CHECK(mesh.members(Axis::replicate, 1) == std::vector<std::int64_t>{1, 5});
  for (Axis axis : {Axis::replicate, Axis::shard, Axis::expert, Axis::expert_shard, Axis::world}) {
    std::set<std::int64_t> seen;
    for (std::int64_t g = 0; g < mesh.world() / mesh.size(axis); ++g)
      for (std::int64_t rank : mesh.members(axis, g)) {
        CHECK(seen.insert(rank).second);
        CHECK(mesh.group_index(axis, rank) == g);
        CHECK(mesh.members(axis, g)[static_cast<std::size_t>(mesh.coordinate(axis, rank))] == rank);
      }
    CHECK(seen.size() == 8);
  }
}

TEST_CASE("routing conserves rows, and placement moves them") {
  const ModelSpec m = tiny();
  const auto routing = histogram_routing(m, 10, {{4, 3, 2, 1}}, "test");
  const auto counts = routing->counts(0, 0, 0, 0);
  Layout layout{1, 2, 2, 1, Recompute::none, {}};
  CHECK(rows_received({counts, counts}, layout, 0) == std::vector<double>{28, 12});
  layout.placement = {{0, 3, 1, 2}, {0, 3, 1, 2}, {0, 3, 1, 2}};
  CHECK(rows_received({counts, counts}, layout, 0) == std::vector<double>{20, 20});
}

TEST_CASE("layouts that do not fit the model are refused by name") {
  CHECK_THROWS_WITH((build_program_set(tiny(), Layout{1, 4, 3, 1, Recompute::none, {}}, {16, 1, Precision::fp32, true})),
                    Catch::Contains("expert parallelism 3 does not divide shard = 4"));
  ModelSpec m = tiny();
  m.experts = 6;
  CHECK_THROWS_WITH((build_program_set(m, Layout{1, 4, 4, 1, Recompute::none, {}}, {16, 1, Precision::fp32, true})),
                    Catch::Contains("does not divide the model's 6 experts"));
}
