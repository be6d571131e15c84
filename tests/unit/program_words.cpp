// Plain words for the ops and buffers of step programs: none of them is without.
#include "reports/render/program_words.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "sim/program/compose/restore.hpp"
#include "tests/fixtures/random_layout.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Names of ops and buffers of many programs: random layouts, with what stacks hold beside our trainer.
struct Names {
  std::set<std::string> ids, buffers;
  std::set<std::tuple<Action, Direction, Group>> ops;

  void add(const ProgramSet& set) {
    for (const Program& program : set.programs) {
      for (const Buffer& buffer : program.resident) buffers.insert(buffer.name);
      for (const OpInstance& instance : unroll(program)) {
        ids.insert(instance.id());
        ops.insert({instance.op->action, instance.op->direction, instance.op->group});
        for (const Buffer& buffer : instance.op->allocates) buffers.insert(buffer.name);
      }
    }
  }
  /// Where the layout is refused, another one will have it.
  void try_add(const ModelSpec& model, const Layout& layout, const ProgramOptions& options) {
    try {
      add(build_program_set(model, layout, options));
    } catch (const Error&) {
    }
  }
};

Names names_of_many_programs() {
  Names names;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    RandomStep step = random_step(seed, seed % 3 == 0);
    names.add(step.set);
    ProgramOptions trainer{128, 4, Precision::bf16, true};
    names.try_add(step.model, step.layout, trainer);
    ProgramOptions fsdp = trainer;
    fsdp.memory = pytorch_fsdp(), fsdp.memory.collective_copies = CollectiveCopies::both;
    names.try_add(step.model, step.layout, fsdp);
    ProgramOptions megatron = trainer;
    megatron.memory.weight_gradients = WeightGradients::dummy, megatron.memory.resident_weights = true;
    megatron.offload_fraction = 0.5, megatron.materialised_scores = true;
    if (seed % 2 == 0) step.layout.recompute = recompute_from_string("products");
    names.try_add(step.model, step.layout, megatron);
    if (step.layout.pipeline == 1 && step.layout.tensor == 1) names.add(restore_programs(step.model, step.layout, 12));
  }
  return names;
}

}  // namespace

TEST_CASE("every op and every buffer of a program has plain words, and every kind of op its own") {
  const Names names = names_of_many_programs();
  CHECK(names.buffers.size() > 80);
  for (const std::string& buffer : names.buffers) {
    INFO(buffer);
    CHECK(find_buffer_words(buffer));
  }
  CHECK(find_buffer_words("transient"));
  for (const std::string& id : names.ids) {
    const auto words = find_op_words(id);
    INFO(id);
    REQUIRE(words);
    CHECK(words->find_first_of("_") == std::string::npos);
  }
  std::set<std::string> different;
  for (const auto& [action, direction, group] : names.ops) different.insert(op_words(action, direction, group));
  CHECK(different.size() == names.ops.size());
}

TEST_CASE("different buffers have different words") {
  const Names names = names_of_many_programs();
  std::set<std::string> words;
  for (const std::string& buffer : names.buffers) words.insert(buffer_words(buffer).text);
  CHECK(words.size() == names.buffers.size());
}

TEST_CASE("an op's words say its layer and direction, and its microbatch from the second on") {
  CHECK(op_words("mb0.L19.experts.fwd") == "layer 19: experts, forward");
  CHECK(op_words("mb2.L3.expert.unshard.bwd") == "microbatch 2, layer 3: gather expert weights, backward");
  CHECK(op_words("mb0.L3.dense.reduce") == "layer 3: reduce attention and dense gradients");
  CHECK(op_words("mb0.head") == "output projection and loss");
  CHECK(op_words("optimizer") == "optimizer");
  CHECK(op_words(Action::unshard, Direction::backward, Group::expert) == "gather expert weights, backward");
  CHECK(op_words(Action::experts, Direction::recompute, Group::expert) == "experts, recomputed");
  CHECK(op_words(Action::optimizer, Direction::forward, Group::none) == "optimizer");
  for (const char* unknown : {"", "mb0.", "mb0.L1.", "L.experts.fwd", "nothing.of.it", "dense.", "mbx.L1.attn.fwd"})
    CHECK_FALSE(find_op_words(unknown));
  CHECK(op_words("nothing.of.it") == "nothing.of.it");
}

TEST_CASE("a buffer without words keeps its name") {
  CHECK(buffer_words("collected.rows").text == "rows returned from experts");
  CHECK(buffer_words("dense.scratch").kind == MemoryUseKind::communication);
  CHECK(buffer_words("attn.partial").text == "partial sums of attention");
  CHECK_FALSE(find_buffer_words("unheard.of"));
  CHECK(buffer_words("unheard.of").text == "unheard.of");
}
