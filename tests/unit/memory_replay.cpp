// Memory of a step: what is live when, on programs small enough to count by hand, and on the real builder's.
#include <catch2/catch.hpp>

#include "configs/files/microbatches.hpp"
#include "sim/program/memory/memory_moments.hpp"
#include "tests/fixtures/random_layout.hpp"

using namespace wt;

namespace {

Op segment(const std::string& name, std::vector<Buffer> allocates, std::vector<Ref> frees, double transient = 0) {
  Op op;
  op.name = name;
  op.allocates = std::move(allocates);
  op.frees = std::move(frees);
  op.transient = {{transient, 0}};
  return op;
}

Program program_of(std::vector<Op> ops) {
  Program p;
  p.layers = p.microbatches = 1;
  p.resident = {{"masters", {100, 0}}};
  for (Op& op : ops) p.nodes.emplace_back(std::move(op));
  return p;
}

double no_rows(int, int) { return 0; }

}  // namespace

TEST_CASE("a segment's transient counts while it runs, its frees after it") {
  const Program program =
      program_of({segment("a", {{"x", {10, 0}}}, {}, 5), segment("b", {{"y", {3, 0}}}, {{"x"}, {"absent"}}, 4)});
  const auto m = replay_memory(program, no_rows, true);
  CHECK(m.peak_bytes == 117);
  CHECK(m.peak_id == "b");
  CHECK(m.peak_op == 1);
  CHECK(m.peak_bytes_of == std::vector<double>{115, 117});
  CHECK(m.live_bytes == std::vector<double>{110, 103});
  const std::vector<MemoryMoment> moments = memory_moments(program, m);
  REQUIRE(moments.size() == 1);
  CHECK(moments[0].op == "b");
  CHECK(moments[0].bytes_of == std::map<std::string, double>{{"masters", 100}, {"x", 10}, {"y", 3}, {"transient", 4}});
}

TEST_CASE("an asynchronous op holds what it frees until an op waits for it") {
  Op a = segment("a", {{"x", {10, 0}}}, {}), send = segment("send", {{"r", {7, 0}}}, {{"x"}});
  send.kind = OpKind::all_to_all, send.lane = Lane::all_to_all;
  Op busy = segment("busy", {{"z", {1, 0}}}, {}), after = segment("after", {}, {});
  after.waits = {{"send"}};
  const auto m = replay_memory(program_of({a, send, busy, after}), no_rows);
  CHECK(m.live_bytes == std::vector<double>{110, 117, 118, 108});
  CHECK(m.peak_id == "busy");
}

TEST_CASE("buffers of a layer loop are bound to their layer's rows") {
  Op fwd = segment("fwd", {{"act", {1, 2}}}, {}), bwd = segment("bwd", {}, {{"act"}});
  fwd.group = bwd.group = Group::expert;
  Program p;
  p.layers = 3, p.microbatches = 1;
  Loop mb{Loop::Index::microbatch,
          0,
          0,
          false,
          {Loop{Loop::Index::layer, 0, 2, false, {fwd}}, Loop{Loop::Index::layer, 2, 0, true, {bwd}}}};
  p.nodes.push_back(mb);
  const auto m = replay_memory(p, [](int, int layer) { return 10.0 * (layer + 1); });
  CHECK(m.live_bytes == std::vector<double>{21, 62, 123, 62, 21, 0});
  CHECK(m.peak_id == "mb0.L2.fwd");
}

TEST_CASE("allocating what is live is refused") {
  CHECK_THROWS_WITH(
      replay_memory(program_of({segment("a", {{"x", {1, 0}}}, {}), segment("b", {{"x", {1, 0}}}, {})}), no_rows),
      Catch::Contains("b allocates x"));
}

TEST_CASE("a real step gives everything back, and needs more with more rows, sequences and less recompute") {
  const ModelSpec model = test::small_model(4);
  const auto peak = [&](std::int64_t expert, Recompute recompute, std::int64_t microbatch, double rows) {
    const Layout layout{2, 4, expert, microbatch, recompute, {}};
    const auto set = build_program_set(model, layout, {512, 2, Precision::bf16, true});
    const auto m = replay_memory(set.programs[0], [&](int, int) { return rows; });
    INFO(layout.name());
    CHECK(m.live_bytes.back() == Approx(m.resident_bytes));
    return m.peak_bytes;
  };
  for (std::int64_t expert : {1, 2, 4}) {
    CHECK(peak(expert, Recompute::none, 2, 4096) > peak(expert, Recompute::none, 1, 2048));
    CHECK(peak(expert, Recompute::none, 1, 2048) > peak(expert, Recompute::block, 1, 2048));
    if (expert > 1) CHECK(peak(expert, Recompute::none, 1, 4096) > peak(expert, Recompute::none, 1, 2048));
  }
}

TEST_CASE("the moments of a step: each part's highest, made of its buffers; the highest of all is the peak") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const test::RandomStep step = test::random_step(seed, false);
    INFO(seed << ": " << step.layout.name());
    const auto rows = [](int microbatch, int layer) { return 700.0 + 50 * microbatch + 10 * layer; };
    for (const Program& program : step.set.programs) {
      const MemoryReplay m = replay_memory(program, rows, true);
      double live = 0, most = 0;
      for (std::size_t op = 0, taken = 0; op < m.peak_bytes_of.size(); ++op) {
        for (; taken < m.events_until[op]; ++taken) live += m.events[taken].bytes;
        CHECK(live == Approx(m.peak_bytes_of[op]));
      }
      for (const MemoryMoment& moment : memory_moments(program, m)) {
        double sum = 0;
        for (const auto& [name, bytes] : moment.bytes_of) sum += bytes;
        CHECK(sum == Approx(moment.bytes));
        most = std::max(most, moment.bytes);
      }
      CHECK(most == m.peak_bytes);
    }
  }
}

TEST_CASE("GeGLU makes fp32 tensors on a GPU; on a CPU, and where gates are fused, none worth a word") {
  ModelSpec model = test::small_model(4);
  const auto ffn = static_cast<double>(model.ffn), d = static_cast<double>(model.d_model);
  const auto moments = [&](Activation activation, Precision precision, bool gloo, const std::string& name,
                           const MemoryFacts& facts = {}) {
    model.activation = activation;
    ProgramOptions options{512, 2, precision, gloo};
    options.memory = facts;
    const auto set = build_program_set(model, {2, 4, 4, 2, Recompute::none, {}}, options);
    for (const OpInstance& instance : unroll(set.programs[0]))
      if (instance.op->name == name) return instance.op->transient;
    FAIL("no op " << name);
    return std::vector<Amount>{};
  };
  for (const auto& [precision, word, forward, backward] :
       {std::tuple{Precision::bf16, 2.0, 12.0, 20.0}, {Precision::fp32, 4.0, 4.0, 8.0}}) {
    const auto plain = moments(Activation::swiglu, precision, false, "experts.bwd");
    const auto gated = moments(Activation::geglu, precision, false, "experts.bwd");
    REQUIRE(gated.size() == plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i)
      CHECK(gated[i].per_row - plain[i].per_row == (i == 2 ? backward * ffn : 0));  // the third: the activation's
    CHECK(moments(Activation::swiglu, precision, false, "experts.fwd").empty());
    const auto first = moments(Activation::geglu_tanh, precision, false, "experts.fwd");
    REQUIRE(first.size() == 1);  // before the second product's result is there
    CHECK(first[0].per_row == forward * ffn - word * d);
    MemoryFacts fused;
    fused.weight_gradients = WeightGradients::in_place;  // Megatron's
    for (const bool on_gpu : {false, true})
      CHECK(moments(Activation::geglu, precision, !on_gpu, "experts.bwd", on_gpu ? fused : MemoryFacts{}) ==
            moments(Activation::swiglu, precision, !on_gpu, "experts.bwd", on_gpu ? fused : MemoryFacts{}));
  }
}

TEST_CASE("with the loss in pieces the head holds one piece's logits") {
  const ModelSpec model = test::small_model(4);
  const auto in_head = [&](std::int64_t chunks) {
    ProgramOptions options{512, 2, Precision::bf16, false};
    options.loss_chunks = chunks;
    const auto set = build_program_set(model, {2, 4, 4, 2, Recompute::none, {}}, options);
    for (const OpInstance& instance : unroll(set.programs[0]))
      if (instance.op->action == Action::head_loss) return instance.op->transient.back().fixed;
    return 0.0;
  };
  const double logits = 2.0 * 1024 * static_cast<double>(model.vocab);
  for (const double chunks : {2.0, 8.0, 1024.0})
    CHECK(in_head(1) - in_head(static_cast<std::int64_t>(chunks)) == Approx(logits * (1 - 1 / chunks)));
  CHECK(in_head(1) - in_head(3) == Approx(logits * (1 - 342.0 / 1024)));  // the largest piece
  CHECK(in_head(5000) == in_head(1024));
}

TEST_CASE("a smaller last microbatch gives everything back and needs no more than the others") {
  const ModelSpec model = test::small_model(4);
  for (std::int64_t expert : {1, 4}) {
    const Layout layout{2, 4, expert, 4, Recompute::none, {}};
    const auto peak = [&](const Microbatches& n) {
      const auto set = build_program_set(model, layout, {512, n.count, Precision::bf16, true, n.last});
      const auto m = replay_memory(set.programs[0],
                                   [&](int microbatch, int) { return static_cast<double>(n.of(microbatch) * 2048); });
      CHECK(m.live_bytes.back() == Approx(m.resident_bytes));
      return m;
    };
    const auto uneven = peak({3, 4, 1});
    CHECK(uneven.peak_bytes == peak({2, 4, 4}).peak_bytes);
    CHECK_FALSE(uneven.peak_id.starts_with("mb2."));
    CHECK(peak({1, 4, 1}).peak_bytes < uneven.peak_bytes);
  }
}
