// Weights are gathered one block ahead and no further: FSDP2 has at most two gather buffers in forward and one in
// backward, beside the parameters in use, which are copied out of them. Ours gather in place, into two slots of every
// group: one that is read and one that is filled, both ways. Seen on random layouts from the step program alone, and
// whatever the lanes' speed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "configs/base/error.hpp"
#include "sim/program/walk.hpp"
#include "tests/fixtures/random_layout.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// What a unit's weights are gathered for: a block by its number, and what is outside of them.
constexpr int kEmbedding = -1, kHead = -2;

/// Ops that must be done before an op begins: those that it waits for, the one before it on its lane, and theirs.
class Before {
 public:
  explicit Before(const std::vector<OpInstance>& ops) : done_(ops.size(), std::vector<bool>(ops.size())) {
    std::map<Lane, std::size_t> latest;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (const int wait : ops[i].waits) add(i, static_cast<std::size_t>(wait));
      if (const auto it = latest.find(ops[i].op->lane); it != latest.end()) add(i, it->second);
      latest[ops[i].op->lane] = i;
    }
  }
  bool operator()(std::size_t first, std::size_t then) const { return done_[then][first]; }

 private:
  void add(std::size_t op, std::size_t before) {
    done_[op][before] = true;
    for (std::size_t i = 0; i < before; ++i)
      if (done_[before][i]) done_[op][i] = true;
  }
  std::vector<std::vector<bool>> done_;
};

bool reads_weights(const Op& op) {
  return op.action == Action::project || op.action == Action::attention || op.action == Action::ffn ||
         op.action == Action::experts;
}

bool gathers(const Op& op) { return op.action == Action::unshard && op.kind != OpKind::host; }

/// One step of one rank, op by op: what lies in the slots, and who has read it.
class Walk {
 public:
  Walk(const Program& program, std::int64_t slots)
      : ops_(unroll(program)), before_(ops_), slots_(static_cast<int>(slots)) {}

  /// "" or the first op that finds other weights in its slot, or gathers over or ahead of weights that are still read.
  std::string fault() {
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (const std::string found = fault_at(i); !found.empty()) return ops_[i].id() + ": " + found;
    return "";
  }
  /// Most units whose weights were gathered and yet to be read, or being read, at once.
  std::size_t most_forward() const { return most_forward_; }
  std::size_t most_backward() const { return most_backward_; }

 private:
  struct Slot {
    int layer = -1;
    std::size_t gathered = 0;
  };

  std::string fault_at(std::size_t i) {
    const Op& op = *ops_[i].op;
    const int layer = ops_[i].layer;
    const bool layered = op.group == Group::dense || op.group == Group::expert;
    if (op.action == Action::head_loss) backward_ = true;
    if (op.action == Action::load_batch) backward_ = false;
    if (gathers(op)) {
      // Behind every reader of any block but the neighbour that is computed meanwhile.
      const int neighbour = op.direction == Direction::forward ? layer - 1 : layer + 1;
      for (const std::size_t reader : readers_)
        if (layered && ops_[reader].layer != neighbour && !before_(reader, i))
          return "does not wait for " + ops_[reader].id();
      if (layered) slot(op.group, layer) = {layer, i};
      gathered_.insert(layered ? layer : op.group == Group::head ? kHead : kEmbedding);
      std::size_t& most = backward_ ? most_backward_ : most_forward_;
      most = std::max(most, gathered_.size());
      return "";
    }
    if (layered && (op.action == Action::unshard || reads_weights(op))) {
      const Slot& own = slot(op.group, layer);
      if (own.layer != layer) return fmt::format("finds the weights of layer {}", own.layer);
      if (!before_(own.gathered, i)) return "does not wait for " + ops_[own.gathered].id();
    }
    if (layered && reads_weights(op)) readers_.push_back(i);
    if (!layered && op.action == Action::embed) gathered_.erase(kEmbedding);
    if (op.action == Action::head_loss) gathered_.erase(kHead);
    if (last_reader(i)) gathered_.erase(layer);
    return "";
  }

  /// No op reads the block's weights before they are gathered again.
  bool last_reader(std::size_t i) const {
    if (!reads_weights(*ops_[i].op)) return false;
    for (std::size_t j = i + 1; j < ops_.size(); ++j) {
      if (ops_[j].layer != ops_[i].layer) continue;
      if (reads_weights(*ops_[j].op)) return false;
      if (gathers(*ops_[j].op)) return true;
    }
    return true;
  }

  Slot& slot(Group group, int layer) { return held_[{group, layer % slots_}]; }

  std::vector<OpInstance> ops_;
  Before before_;
  int slots_;
  std::map<std::pair<Group, int>, Slot> held_;
  std::vector<std::size_t> readers_;
  std::set<int> gathered_;
  bool backward_ = false;
  std::size_t most_forward_ = 0, most_backward_ = 0;
};

struct Case {
  ModelSpec model;
  Layout layout;
  ProgramOptions options;
};

Case drawn(std::uint64_t seed) {
  Draw draw(seed);
  Case c{random_model(draw), {}, {64, draw.between(1, 3), Precision::bf16, draw.once_in(2), 1}};
  c.model.layers = draw.between(c.model.dense_layers + 1, 7);
  c.layout = random_layout(draw, c.model);
  c.layout.microbatch = draw.between(1, 2);
  return c;
}

/// The first program of four layers on four ranks with experts, changed by `change`, as one whose slots are `like`'s.
template <typename Change>
std::string fault_with(Change&& change, Layout built = {1, 4, 2, 1, Recompute::none, {}}) {
  const ModelSpec model = small_model(4);
  Program program = build_program_set(model, built, {64, 2, Precision::bf16, true}).programs[0];
  change(program.nodes);
  return Walk(program, 2).fault();
}

/// Applies to every op of this name.
void each(std::vector<Node>& nodes, const std::string& name, const std::function<void(Op&)>& change) {
  for_each_list(nodes, [&](std::vector<Node>& list, const LoopsAround&) {
    for (Op& op : ops_of(list))
      if (op.name == name) change(op);
  });
}

}  // namespace

TEST_CASE("weights are gathered one block ahead, never over ones that are read, on any layout") {
  std::size_t resharding = 0, longest = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Case c = drawn(seed);
    INFO("seed " << seed << ": " << c.layout.name() << ", " << c.model.layers << " layers, recompute "
                 << to_string(c.layout.recompute));
    for (const Program& program : build_program_set(c.model, c.layout, c.options).programs) {
      Walk walk(program, weight_slots(c.model, c.layout));
      REQUIRE(walk.fault() == "");
      if (!c.layout.reshard_after_forward) continue;  // all blocks' weights stay until backward
      const std::size_t two =
          c.model.blocks() > 1 ? 2 : 1;  // so many, and no fewer: the next are there when they are needed
      CHECK(walk.most_forward() ==
            (c.model.tied ? two + 1 : 2));  // an embedding that is the head stays, one that is not goes
      CHECK(walk.most_backward() == (two == 2 ? 2 : 0));
      ++resharding, longest = std::max(longest, static_cast<std::size_t>(c.model.layers));
    }
  }
  CHECK(resharding > 150);
  CHECK(longest == 7);
}

TEST_CASE("gathers that come too early, too far ahead or not at all are found") {
  CHECK(fault_with([](auto&) {}) == "");
  CHECK_THAT(fault_with([](auto& nodes) { each(nodes, "dense.unshard.fwd", [](Op& op) { op.waits.clear(); }); }),
             Catch::Contains("mb0.L2.dense.unshard.fwd: does not wait for mb0.L0."));
  CHECK_THAT(fault_with([](auto& nodes) { each(nodes, "dense.unshard.bwd", [](Op& op) { op.waits.clear(); }); }),
             Catch::Contains("does not wait for"));
  CHECK_THAT(fault_with([](auto& nodes) { each(nodes, "attn.fwd", [](Op& op) { op.waits.clear(); }); }),
             Catch::Contains("mb0.L0.attn.fwd: does not wait for mb0.L0.dense.unshard.fwd"));
  Layout kept{1, 4, 2, 1, Recompute::none, {}};
  kept.reshard_after_forward = false;  // four slots; two do not hold it
  CHECK_THAT(fault_with([](auto&) {}, kept), Catch::Contains("finds the weights of layer"));
}
