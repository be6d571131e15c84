// The ways through a step program's tree, and the clock of its lanes: closed forms, and that unroll() goes the same
// way.
#include <catch2/catch.hpp>

#include "sim/program/compose/compose.hpp"
#include "sim/program/lane_clock.hpp"
#include "sim/program/walk.hpp"

using namespace wt;

namespace {

Op named(const std::string& name, int layer_delta = 0, Group group = Group::dense) {
  Op op;
  op.name = name, op.layer_delta = layer_delta, op.group = group;
  return op;
}

/// Two microbatches over layers 2, 1, 0 of three. "next" acts on the layer above, which layer 2 has not; "out" is the
/// head's.
Program small() {
  Program program;
  program.layers = 3, program.microbatches = 2;
  const Loop layers{Loop::Index::layer, 2, 0, true, {named("next", 1), named("own"), named("out", 1, Group::head)}};
  program.nodes = {named("first"), Loop{Loop::Index::microbatch, 0, 1, false, {named("load"), layers}}, named("last")};
  return program;
}

std::vector<std::string> issued(const Program& program) {
  std::vector<std::string> ids;
  for_each_issue(program.nodes, program.layers, [&](const Op& op, const Issue& at) {
    ids.push_back(OpInstance{&op, at.microbatch, at.layer, {}}.id());
  });
  return ids;
}

/// `n` layers whose weights are gathered in `gather` seconds and used in `compute`; `ahead` gathers are issued before
/// the use of the first.
double layers_s(LaneClock clock, int n, int ahead, double gather, double compute) {
  std::vector<double> gathered;
  const auto issue_gather = [&] {
    gathered.push_back(clock.start_s(Lane::all_gather, 0) + gather);
    clock.end(Lane::all_gather, gathered.back(), false);
  };
  for (int layer = 0; layer < n; ++layer) {
    while (std::ssize(gathered) < std::min(n, layer + ahead)) issue_gather();
    clock.end(Lane::compute, clock.start_s(Lane::compute, gathered[static_cast<std::size_t>(layer)]) + compute);
  }
  return clock.end_s();
}

}  // namespace

TEST_CASE("each op is visited once with the loops around it, and as often as they repeat it") {
  const Program program = small();
  const Loop& microbatches = std::get<Loop>(program.nodes[1]);
  const Loop& layers = std::get<Loop>(microbatches.body.begin()[1]);
  std::vector<std::string> names;
  std::vector<double> times;
  for_each_op(program.nodes, [&](const Op& op, const LoopsAround& around) {
    names.push_back(op.name), times.push_back(around.times);
    const bool inside = op.name != "first" && op.name != "last";
    CHECK(around.microbatches == (inside ? &microbatches : nullptr));
    CHECK(around.layers == (inside && op.name != "load" ? &layers : nullptr));
  });
  CHECK(names == std::vector<std::string>{"first", "load", "next", "own", "out", "last"});
  CHECK(times == std::vector<double>{1, 2, 6, 6, 6, 1});
  names.clear();
  for_each_op(
      program.nodes, [&](const Op& op, const LoopsAround&) { names.push_back(op.name); },
      [](const Loop& loop) { return loop.index == Loop::Index::microbatch; });
  CHECK(names == std::vector<std::string>{"first", "load", "last"});
}

TEST_CASE("ops are issued round by round, without those of neighbours that are not there") {
  std::vector<std::string> expected{"first"};
  for (const std::string mb : {"mb0.", "mb1."})
    for (const char* id : {"load", "L2.own", "out", "L2.next", "L1.own", "out", "L1.next", "L0.own", "out"})
      expected.push_back(mb + id);
  expected.push_back("last");
  CHECK(issued(small()) == expected);
  CHECK(layer_of(named("next", 1), 2, 3) == std::nullopt);
  CHECK(layer_of(named("next", 1), -1, 3) == -1);
  CHECK(layer_of(Ref{"own", -1}, 0, 3) == std::nullopt);
  CHECK(layer_of(Ref{"own", -1}, -1, 3) == -1);
  CHECK(layer_of(Ref{"own", -1, 2}, 0, 3) == 2);
}

TEST_CASE("a step is issued as it unrolls, each op as often as loops repeat it where neighbours are there") {
  ModelSpec model;
  model.layers = 8, model.d_model = 8, model.heads = 2, model.kv_heads = 1, model.head_dim = 4, model.ffn = 16;
  model.experts = 4, model.top_k = 2, model.vocab = 32;
  Layout sharded{2, 2, 2, 1, Recompute::none, {}}, staged = sharded;
  staged.pipeline = 4, staged.virtual_stages = 2;
  staged.reshard_after_forward = staged.reduce_every_microbatch = false;
  for (const Layout& layout : {sharded, staged})
    for (const Program& program : build_program_set(model, layout, {16, 8, Precision::bf16, true}).programs) {
      std::vector<std::string> unrolled;
      for (const OpInstance& op : unroll(program)) unrolled.push_back(op.id());
      CHECK(issued(program) == unrolled);
      double times = 0;
      for_each_op(program.nodes, [&](const Op& op, const LoopsAround& around) {
        std::size_t there = 1, rounds = 1;
        if (around.layers) there = rounds = 0;
        if (around.layers)
          for (const int layer : rounds_of(*around.layers)) ++rounds, there += layer_of(op, layer, 8).has_value();
        times += around.times * static_cast<double>(there) / static_cast<double>(rounds);
      });
      CHECK(times == Approx(static_cast<double>(unrolled.size())));
    }
}

TEST_CASE("a list that loops share is changed once") {
  const Body shared{named("a"), Loop{Loop::Index::layer, 0, 1, false, {named("b")}}};
  std::vector<Node> nodes{named("c"), Loop{Loop::Index::microbatch, 0, 0, false, shared},
                          Loop{Loop::Index::microbatch, 1, 1, false, shared}};
  for_each_list(nodes, [](std::vector<Node>& list, const LoopsAround& around) {
    for (Op& op : ops_of(list)) op.name += around.layers ? "L" : around.microbatches ? "M" : "";
  });
  std::vector<std::string> names;
  for_each_op(nodes, [&](const Op& op, const LoopsAround&) { names.push_back(op.name); });
  CHECK(names == std::vector<std::string>{"c", "aM", "bL", "aM", "bL"});
}

TEST_CASE("lanes are chains, and a host that runs ahead holds none of them") {
  for (const auto& [gather, compute] : {std::pair{1.0, 3.0}, {3.0, 1.0}, {2.0, 2.0}})
    for (const int n : {1, 2, 7})
      for (const int ahead : {1, 2, 7})
        CHECK(layers_s(LaneClock(), n, ahead, gather, compute) ==
              gather + (n - 1) * std::max(gather, compute) + compute);
}

TEST_CASE("a synchronous host issues nothing while it waits or computes") {
  for (const auto& [gather, compute] : {std::pair{1.0, 3.0}, {3.0, 1.0}, {2.0, 2.0}})
    for (const int n : {1, 2, 7}) {
      const LaneClock clock(true);
      CHECK(layers_s(clock, n, 1, gather, compute) == n * (gather + compute));
      CHECK(layers_s(clock, n, 2, gather, compute) == gather + (n - 1) * std::max(gather, compute) + compute);
    }
}

TEST_CASE("a communicator's last op keeps the next one, not the host") {
  LaneClock clock(true);
  clock.end(Lane::all_gather, clock.start_s(Lane::all_gather, 0) + 5, false);
  CHECK(clock.start_s(Lane::reduce_scatter, 1, 5) == 5);
  clock.end(Lane::reduce_scatter, 9, false);
  CHECK(clock.start_s(Lane::compute, 0) == 1);
  CHECK(clock.lane_s(Lane::reduce_scatter) == 9);
  CHECK(clock.end_s() == 9);
}
