// The step program: names, order, waits and sizes of what FSDP with experts does.
#include <catch2/catch.hpp>
#include <set>

#include "configs/base/error.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "sim/program/routing/routing.hpp"
#include "tests/fixtures/temp_directory.hpp"

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

/// Layouts with everything whose sizes depend on the sequences of a microbatch, two a microbatch.
std::vector<Layout> layouts_of_two() {
  std::vector<Layout> out;
  for (const char* policy : {"none", "block", "attention/int8", "experts+norm"})
    for (auto [replicate, shard, expert] : {std::array{1, 1, 1}, {2, 2, 2}, {1, 4, 4}})
      out.push_back({replicate, shard, expert, 2, recompute_from_string(policy), {}});
  out.push_back(out[1]), out.back().reduce_every_microbatch = false;
  out.push_back(out[1]), out.back().optimizer_shard = 2;
  out.push_back(out[2]), out.back().context = 2;
  out.push_back(out[2]), out.back().placement.assign(3, {0, 1, 2, 3, 0, 1, 2, 3});
  return out;
}

/// Everything of an instance that has a size.
std::string sizes_of(const OpInstance& instance) {
  const auto text = [](const Amount& a) { return fmt::format(" {}+{}r", a.fixed, a.per_row); };
  std::string out = instance.id() + text(instance.op->collective.bytes);
  for (const WorkItem& item : instance.op->work) out += " " + to_string(item.kernel) + text(item.rows);
  for (const Buffer& buffer : instance.op->allocates) out += " " + buffer.name + text(buffer.bytes);
  for (const Amount& moment : instance.op->transient) out += text(moment);
  for (int wait : instance.waits) out += fmt::format(" {}", wait);
  return out;
}

std::vector<std::string> sizes_of(Layout layout, std::int64_t microbatch, std::int64_t count, std::int64_t last) {
  layout.microbatch = microbatch;
  const ProgramSet set = build_program_set(tiny(), layout, {16, count, Precision::bf16, true, last});
  std::vector<std::string> out;
  for (const Program& program : set.programs)
    for (const OpInstance& instance : unroll(program)) out.push_back(sizes_of(instance));
  return out;
}

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

TEST_CASE("a program whose ops wait for none that is there, or have no such microbatch, is refused by name") {
  Program program;
  program.layers = 2, program.microbatches = 1;
  Op first, second;
  first.name = "first", second.name = "second";
  const auto over_layers = [&] { return Loop{Loop::Index::layer, 0, 1, false, {first, second}}; };
  second.waits = {{"first", -1}};  // void in the first layer
  program.nodes = {over_layers()};
  CHECK(unroll(program).at(3).waits == std::vector<int>{0});
  for (const Ref& missing : {Ref{"third"}, Ref{"second"}}) {
    second.waits = {missing};
    program.nodes = {over_layers()};
    CHECK_THROWS_WITH(unroll(program),
                      Catch::Contains("op L0.second waits for " + missing.name + " of layer 0, which no earlier op"));
  }
  program.nodes = {Loop{Loop::Index::microbatch, 0, 1, false, {first}}};
  CHECK_THROWS_WITH(unroll(program), Catch::Contains("op first is of microbatch 1 of 1"));
}

TEST_CASE("weights of the next layer are gathered before this layer computes") {
  const ProgramSet set =
      build_program_set(tiny(), Layout{1, 4, 2, 1, Recompute::none, {}}, {16, 1, Precision::fp32, true});
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

TEST_CASE("a smaller last microbatch has the ops of its size, the others those of theirs") {
  for (const Layout& layout : layouts_of_two()) {
    INFO(layout.name() << ", recompute " << to_string(layout.recompute));
    const auto all = sizes_of(layout, 2, 3, 1), two = sizes_of(layout, 2, 3, 0), one = sizes_of(layout, 1, 3, 0);
    REQUIRE((all.size() == two.size() && all.size() == one.size()));
    std::int64_t smaller = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      CHECK(all[i] == (all[i].starts_with("mb2.") ? one[i] : two[i]));
      smaller += all[i] != two[i];
    }
    CHECK(smaller > 0);
    CHECK(sizes_of(layout, 2, 3, 2) == two);
  }
}

TEST_CASE("microbatches conserve the tokens of a batch") {
  for (const Layout& layout : layouts_of_two())
    for (const std::int64_t batch : {2, 3, 5, 8}) {
      const Microbatches n = Microbatches::split(batch, 2);
      const ProgramSet set = build_program_set(tiny(), layout, {16, n.count, Precision::fp32, true, n.last});
      double tokens = 0, sequences = 0;
      std::int64_t cut = 0;
      for (const OpInstance& instance : unroll(set.programs[0])) {
        if (instance.op->name == "embed.fwd") tokens += instance.op->work[0].rows.fixed;
        if (instance.op->name == "attn.fwd" && instance.layer == 0)
          for (const WorkItem& item : instance.op->work)
            if (item.kernel == Kernel::attention) sequences += item.rows.fixed;
      }
      for (std::int64_t m = 0; m < n.count; ++m) cut += n.of(m);
      CHECK(cut == batch);
      CHECK(tokens == static_cast<double>(batch * 16 / layout.context));
      CHECK(sequences == static_cast<double>(batch) / static_cast<double>(layout.context));
    }
}

TEST_CASE("a last microbatch that is larger than the others is refused") {
  const Layout layout{1, 2, 1, 2, Recompute::none, {}};
  for (const std::int64_t last : {-1, 3})
    CHECK_THROWS_WITH((build_program_set(tiny(), layout, {16, 2, Precision::fp32, true, last})),
                      Catch::Contains("needs 1 to 2"));
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

TEST_CASE("ranks of a mesh stand in Megatron's order: tensor, context and expert, replicas, stages") {
  const Mesh mesh(2, 4, 2, 4, 2, 2, 3);
  CHECK(mesh.members(Axis::tensor, 1) == std::vector<std::int64_t>{2, 3});
  CHECK(mesh.members(Axis::expert, 1) == std::vector<std::int64_t>{1, 3});
  CHECK(mesh.members(Axis::context, 0) == std::vector<std::int64_t>{0, 2, 4, 6});
  CHECK(mesh.members(Axis::replicate, 0) == std::vector<std::int64_t>{0, 8});
  CHECK(mesh.members(Axis::pipeline, 5) == std::vector<std::int64_t>{5, 21, 37});
  CHECK(mesh.size(Axis::state) == 16);
  CHECK(mesh.neighbour(Axis::pipeline, 37, 1) == 5);
  CHECK(mesh.neighbour(Axis::pipeline, 5, -1) == 37);
  for (std::size_t a = 0; a < kAxes; ++a) {
    const Axis axis = static_cast<Axis>(a);
    std::set<std::int64_t> seen;
    for (std::int64_t g = 0; g < mesh.world() / mesh.size(axis); ++g)
      for (std::int64_t rank : mesh.members(axis, g)) {
        CHECK(seen.insert(rank).second);
        CHECK(mesh.group_index(axis, rank) == g);
      }
    CHECK(seen.size() == 48);
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

TEST_CASE("routing gives a smaller last microbatch its rows, from shares and from a recording") {
  const ModelSpec m = tiny();
  const Microbatches tokens = {3, 32, 16};
  const test::TempDirectory folder;
  test::write_bytes(
      folder / "routing.csv",
      "step,microbatch,layer,rank,e0,e1,e2,e3\n1,0,0,0,20,20,12,12\n1,1,0,0,30,14,10,10\n1,2,0,0,9,8,8,7\n");
  const auto recorded = recorded_routing(folder / "routing.csv", m, tokens);
  CHECK(recorded->counts(1, 2, 0, 0) == std::vector<double>{9, 8, 8, 7});  // as it was, not as shares
  CHECK(recorded->counts(1, 1, 0, 0) == std::vector<double>{30, 14, 10, 10});
  for (const auto& source : {balanced_routing(m, tokens), histogram_routing(m, tokens, {{4, 3, 2, 1}}, "test"),
                             recorded_routing(folder / "routing.csv", m, tokens)})
    for (const std::int64_t rank : {0, 1})  // rank 1 was not recorded
      for (std::int64_t microbatch = 0; microbatch < 3; ++microbatch) {
        double rows = 0;
        for (double count : source->counts(1, microbatch, 0, rank)) rows += count;
        CHECK(rows == Approx(static_cast<double>(2 * tokens.of(microbatch))));
      }
}

TEST_CASE("a model's capacity takes the rows beyond it from every routing, and from what a rank holds at most") {
  ModelSpec m = tiny();
  m.router.capacity_factor = 1.25;
  const Microbatches tokens = {3, 32, 16};
  const test::TempDirectory folder;
  test::write_bytes(folder / "routing.csv", "step,microbatch,layer,rank,e0,e1,e2,e3\n1,0,0,0,30,14,10,10\n");
  const auto recorded = recorded_routing(folder / "routing.csv", m, tokens);
  CHECK(recorded->counts(1, 0, 0, 0) == std::vector<double>{20, 14, 10, 10});  // 1.25 * 64 / 4
  CHECK(recorded->counts(1, 2, 0, 0) == std::vector<double>{10, 7, 5, 5});     // the same shares of half as many
  CHECK(histogram_routing(m, 32, {{4, 2, 1, 1}}, "test")->counts(1, 0, 0, 0) == std::vector<double>{20, 16, 8, 8});
  CHECK(balanced_routing(m, 32)->counts(1, 0, 0, 0) == std::vector<double>(4, 16));
  const auto sent = [&](double factor) {
    m.router.capacity_factor = factor;
    const auto set = build_program_set(m, Layout{1, 2, 2, 1, Recompute::none, {}}, {32, 1, Precision::fp32, true});
    for (const OpInstance& each : unroll(set.programs[0]))
      if (each.op->action == Action::dispatch) return each.op->collective.bytes.fixed;
    return 0.0;
  };
  CHECK((sent(0) > 0 && sent(1.25) == sent(0) && sent(0.5) == sent(0) / 2));
}

TEST_CASE("layouts that do not fit the model are refused by name") {
  CHECK_THROWS_WITH(
      (build_program_set(tiny(), Layout{1, 4, 3, 1, Recompute::none, {}}, {16, 1, Precision::fp32, true})),
      Catch::Contains("expert parallelism 3 does not divide shard = 4"));
  ModelSpec m = tiny();
  m.experts = 6;
  CHECK_THROWS_WITH((build_program_set(m, Layout{1, 4, 4, 1, Recompute::none, {}}, {16, 1, Precision::fp32, true})),
                    Catch::Contains("does not divide the model's 6 experts"));
}

namespace {

const Op* find(const std::vector<OpInstance>& ops, const std::string& id) {
  for (const OpInstance& each : ops)
    if (each.id() == id) return each.op;
  return nullptr;
}

/// Whether the op waits for the other one, directly or through ops that it waits for.
bool follows(const std::vector<OpInstance>& ops, const std::string& id, const std::string& other) {
  std::set<int> before;
  for (std::size_t i = ops.size(); i-- > 0;)
    if (ops[i].id() == id || before.contains(static_cast<int>(i)))
      before.insert(ops[i].waits.begin(), ops[i].waits.end());
  for (const int i : before)
    if (ops[static_cast<std::size_t>(i)].id() == other) return true;
  return false;
}

}  // namespace

TEST_CASE("the allgather dispatcher gathers every token once and sums the experts' outputs") {
  Layout layout{1, 4, 4, 2, Recompute::none, {}};
  layout.dispatcher = Dispatcher::allgather;
  const ProgramSet set = build_program_set(tiny(), layout, {16, 1, Precision::bf16});
  const std::vector<OpInstance> ops = instances(set.programs[0]);
  for (const auto& [name, kind] : {std::pair{"dispatch.fwd", OpKind::all_gather},
                                   {"collect.fwd", OpKind::reduce_scatter},
                                   {"collect.bwd", OpKind::all_gather},
                                   {"dispatch.bwd", OpKind::reduce_scatter}}) {
    const Op* op = find(ops, fmt::format("mb0.L1.{}", name));
    REQUIRE(op);
    CHECK(op->kind == kind);
    CHECK(op->collective.axis == Axis::expert);
    CHECK(op->collective.bytes.fixed == 4 * (2 * 16) * 8 * 2);
    CHECK(op->collective.bytes.per_row == 0);
  }
}

TEST_CASE("gathers and reductions that do not overlap run between layers") {
  ModelSpec model = tiny();
  model.layers = 4;
  const Layout layout{1, 4, 2, 1, Recompute::block, {}};
  ProgramOptions options{16, 2, Precision::bf16};
  const ProgramSet ahead = build_program_set(model, layout, options);
  options.memory.gathers_overlap = false;
  const ProgramSet between = build_program_set(model, layout, options);
  const std::vector<OpInstance> early = instances(ahead.programs[0]), late = instances(between.programs[0]);
  std::multiset<std::string> names, same;
  for (const OpInstance& each : early) names.insert(each.id());
  for (const OpInstance& each : late) same.insert(each.id());
  CHECK(names == same);
  for (const char* group : {"dense", "expert"}) {
    const std::string fwd = fmt::format("mb1.L2.{}.unshard.fwd", group),
                      bwd = fmt::format("mb1.L1.{}.unshard.bwd", group);
    CHECK(follows(late, fwd, "mb1.L1.combine.fwd"));
    CHECK_FALSE(follows(early, fwd, "mb1.L1.combine.fwd"));
    CHECK(follows(late, bwd, "mb1.L2.attn.bwd"));
    CHECK_FALSE(follows(early, bwd, "mb1.L2.attn.bwd"));
    CHECK(follows(late, "mb1.L1.attn.rec", fmt::format("mb1.L2.{}.reduce", group)));
    CHECK_FALSE(follows(early, "mb1.L1.attn.rec", fmt::format("mb1.L2.{}.reduce", group)));
  }
}

TEST_CASE("activations on the host leave the GPU after their layer, and are back before its backward") {
  ModelSpec model = tiny();
  model.layers = 5;
  for (const char* policy : {"none", "block", "experts+norm"}) {
    INFO(policy);
    Layout layout{1, 4, 2, 1, recompute_from_string(policy), {}};
    const ProgramOptions options{16, 2, Precision::bf16};
    const ProgramSet here = build_program_set(model, layout, options);
    layout.offload_activations = true;
    const ProgramSet there = build_program_set(model, layout, options);
    const auto rows = [](int, int) { return 16.0; };
    const MemoryReplay kept = replay_memory(here.programs[0], rows), sent = replay_memory(there.programs[0], rows);
    CHECK(sent.peak_bytes < kept.peak_bytes);
    CHECK(sent.live_bytes.back() == kept.live_bytes.back());
    const std::vector<OpInstance> ops = instances(there.programs[0]);
    CHECK_FALSE(find(ops, "mb0.L4.activations.out"));  // the last layer's are needed at once
    CHECK(follows(ops, "mb1.L3.activations.out", "mb1.L3.combine.fwd"));
    CHECK(follows(ops, "mb1.L2.attn.bwd", "mb1.L2.activations.back"));
    CHECK(follows(ops, "mb1.L2.attn.bwd", "mb1.L1.input.back"));
    CHECK(follows(ops, "mb1.L2.activations.back", "mb1.L2.activations.out"));
    double out = 0, back = 0;
    for (const OpInstance& each : ops)
      if (each.op->action == Action::offload_kept || each.op->action == Action::offload_input)
        (each.op->direction == Direction::forward ? out : back) += each.op->work.front().rows.at(16);
    CHECK(back == Approx(out));
    CHECK_FALSE(find(ops, "mb0.activations.out"));
  }
  Layout kept{1, 4, 2, 1, Recompute::none, {}};
  kept.offload_activations = true;
  const auto refused = [&](const Layout& layout, const MemoryFacts& memory = {}) {
    ProgramOptions options{16, 2, Precision::bf16};
    options.memory = memory;
    try {
      build_program_set(model, layout, options);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(refused(kept).empty());
  Layout compressed = kept, staged = kept, stays = kept;
  compressed.recompute = recompute_from_string("block/int8");
  CHECK(refused(compressed).find("no compression") != std::string::npos);
  staged.pipeline = 5, staged.reshard_after_forward = staged.reduce_every_microbatch = false;
  CHECK(refused(staged).find("needs one stage") != std::string::npos);
  stays.reshard_after_forward = stays.reduce_every_microbatch = false;
  MemoryFacts resident;
  resident.resident_weights = true;
  CHECK(refused(stays, resident).find("where weights stay") != std::string::npos);
}
