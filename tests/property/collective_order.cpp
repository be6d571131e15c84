// Every rank issues the same collectives in the same order: checked from the program set alone, by unrolling each
// rank's program and comparing, group by group of every axis, what the members would issue.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "sim/program/compose/compose.hpp"
#include "tests/fixtures/fake_cost.hpp"

using namespace wt;

namespace {

struct Case {
  Layout layout;
  std::int64_t layers = 4, microbatches = 2;
  Precision precision = Precision::bf16;
};

/// Every way to split up to 16 ranks into replicas, shards and expert ranks, each with every way to treat weights,
/// gradients and optimizer state. What a layout learns to do gets a line in `variants`.
std::vector<Layout> layouts() {
  std::vector<Layout> out;
  const std::int64_t experts = test::small_model(4).experts;
  for (const std::int64_t world : {1, 2, 3, 4, 6, 8, 16})
    for (std::int64_t replicate = 1; replicate <= world; ++replicate)
      for (std::int64_t expert = 1; expert <= world / replicate; ++expert) {
        Layout plain;
        plain.replicate = replicate, plain.shard = world / replicate, plain.expert = expert;
        if (plain.world() != world || plain.shard % expert != 0 || experts % expert != 0) continue;
        std::vector<Layout> variants(5, plain);
        variants[1].recompute = Recompute::block;
        variants[2].recompute = recompute_from_string("attention:first-1+experts");
        variants[3].reshard_after_forward = false;
        variants[4].reduce_every_microbatch = false;
        for (std::int64_t degree = 2; degree <= replicate; ++degree)
          if (replicate % degree == 0) variants.push_back(plain), variants.back().optimizer_shard = degree;
        for (std::int64_t degree = 2; degree <= plain.shard; degree *= 2)
          if (plain.shard % degree == 0) variants.push_back(plain), variants.back().context = degree;
        if (world <= 8) {
          variants.push_back(plain), variants.back().tensor = 2, variants.back().sequence_parallel = true;
          variants.push_back(variants.back()), variants.back().recompute = Recompute::block;
          variants.push_back(variants.back()), variants.back().optimizer_shard = replicate;
          variants.push_back(variants.back()),
              variants.back().reshard_after_forward = variants.back().reduce_every_microbatch = false;
        }
        for (const std::int64_t stages : {2, 4}) {
          if (world * stages > 8) continue;
          variants.push_back(plain),
              variants.back().reshard_after_forward = variants.back().reduce_every_microbatch = false;
          variants.back().pipeline = stages, variants.back().optimizer_shard = replicate;
          variants.push_back(variants.back()), variants.back().schedule = Schedule::zero_bubble;
          variants.push_back(variants.back()), variants.back().schedule = Schedule::dualpipe_v;
          variants.back().virtual_stages = 2;
        }
        variants.push_back(plain);
        for (std::int64_t layer = 0; layer < 4;
             ++layer) {  // as many further copies as expert ranks, others in every layer
          auto& row = variants.back().placement.emplace_back();
          for (std::int64_t slot = 0; slot < experts + expert; ++slot) row.push_back((slot + layer) % experts);
        }
        out.insert(out.end(), variants.begin(), variants.end());
      }
  return out;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Layout& layout : layouts())
    for (const auto& [layers, microbatches] : {std::pair{1, 1}, {2, 3}, {4, 2}}) {
      if (layers % (layout.pipeline * layout.virtual_stages) != 0) continue;
      const bool turns = layout.schedule == Schedule::dualpipe_v;
      out.push_back({layout, layers, turns ? 2 * static_cast<int>(layout.pipeline) : microbatches});
      out.back().layout.microbatch = microbatches == 3 ? 2 : 1;
      if (!layout.placement.empty()) out.back().layout.placement.resize(static_cast<std::size_t>(layers));
    }
  return out;
}

ProgramSet programs_of(const Case& c) {
  return build_program_set(
      test::small_model(c.layers), c.layout,
      {128, c.microbatches, c.precision, true, c.layout.resident_weights() ? 0 : 1});  // the last has one sequence
}

struct Issued {
  std::string id;
  OpKind kind;
  Lane lane;
  double bytes;  ///< 0 for all_to_all: each rank sends what its routing says
  friend bool operator==(const Issued&, const Issued&) = default;
};
using ByAxis = std::map<Axis, std::vector<Issued>>;

ByAxis issued_by(const Program& program) {
  ByAxis out;
  for (const OpInstance& instance : unroll(program)) {
    const Op& op = *instance.op;
    if (!op.collective_kind() || op.kind == OpKind::send || op.kind == OpKind::receive) continue;
    const bool same_everywhere =
        op.kind != OpKind::all_to_all && op.collective.axis != Axis::tensor;  // whose ranks have the same rows
    if (same_everywhere) REQUIRE(op.collective.bytes.per_row == 0);
    out[op.collective.axis].push_back(
        {instance.id(), op.kind, op.lane, op.kind == OpKind::all_to_all ? 0 : op.collective.bytes.fixed});
  }
  return out;
}

/// "" or where a member of a group departs from the first one.
std::string departure(const ProgramSet& set, const Mesh& mesh) {
  std::vector<ByAxis> by_class;
  for (const Program& program : set.programs) by_class.push_back(issued_by(program));
  const auto of_rank = [&](std::int64_t rank) -> ByAxis& {
    return by_class[static_cast<std::size_t>(set.class_of_rank.at(static_cast<std::size_t>(rank)))];
  };
  std::map<Axis, bool> axes;
  for (const ByAxis& issued : by_class)
    for (const auto& [axis, calls] : issued) axes[axis] = true;
  for (const auto& [axis, used] : axes)
    for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
      const std::int64_t first = mesh.members(axis, mesh.group_index(axis, rank)).front();
      const auto &own = of_rank(rank)[axis], &expected = of_rank(first)[axis];
      const auto [a, b] = std::mismatch(own.begin(), own.end(), expected.begin(), expected.end());
      if (a == own.end() && b == expected.end()) continue;
      return fmt::format("axis {}: rank {} issues {}, rank {} {}", to_string(axis), rank,
                         a == own.end() ? "nothing" : a->id, first, b == expected.end() ? "nothing" : b->id);
    }
  return "";
}

/// The first op of this name, wherever it stands.
Op* find_op(std::vector<Node>& nodes, const std::string& name) {
  for (Node& node : nodes) {
    if (Op* op = std::get_if<Op>(&node)) {
      if (op->name == name) return op;
    } else if (Op* found = find_op(std::get<Loop>(node).body.own(), name)) {
      return found;
    }
  }
  return nullptr;
}

/// The program set of 2 x 4 expert 2 in which rank 5 has a program of its own, changed by `change`.
template <typename Change>
std::string departure_with(Change&& change) {
  Case c;
  c.layout.replicate = 2, c.layout.shard = 4, c.layout.expert = 2;
  ProgramSet set = programs_of(c);
  set.programs.push_back(set.programs[static_cast<std::size_t>(set.class_of_rank[5])]);
  set.class_of_rank[5] = static_cast<int>(set.programs.size() - 1);
  change(set.programs.back());
  return departure(set, Mesh(c.layout));
}

}  // namespace

TEST_CASE("members of a group issue the same collectives in the same order, on every layout") {
  for (const Case& c : cases()) {
    INFO(c.layout.name() << ", " << c.layers << " layers, " << c.microbatches << " microbatches");
    CHECK(departure(programs_of(c), Mesh(c.layout)) == "");
  }
}

TEST_CASE("an axis of one rank issues nothing; every rank sums over the world") {
  for (const Case& c : cases()) {
    INFO(c.layout.name());
    const ByAxis issued = issued_by(programs_of(c).programs[0]);
    for (const auto& [axis, calls] : issued) CHECK(Mesh(c.layout).size(axis) > 1);
    CHECK(issued.count(Axis::world) == (c.layout.world() > 1 ? 1u : 0u));
    CHECK(issued.count(Axis::expert) == (c.layout.expert > 1 ? 1u : 0u));
  }
}

TEST_CASE("a rank that leaves one out, sends another size or over another axis is found") {
  CHECK(departure_with([](Program&) {}) == "");
  CHECK_THAT(departure_with([](Program& p) { find_op(p.nodes, "norm.reduce")->kind = OpKind::segment; }),
             Catch::Contains("rank 5 issues nothing, rank 4 norm.reduce"));
  CHECK_THAT(departure_with([](Program& p) { find_op(p.nodes, "loss.reduce")->collective.bytes.fixed = 1024; }),
             Catch::Contains("axis world: rank 5 issues loss.reduce, rank 0 loss.reduce"));
  CHECK_THAT(departure_with([](Program& p) { find_op(p.nodes, "dispatch.fwd")->collective.axis = Axis::shard; }),
             Catch::Contains("axis shard: rank 5 issues mb0.L0.dispatch.fwd, rank 4 mb0.L"));
}
