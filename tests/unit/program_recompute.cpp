// What recompute by module adds to the step program, and what it takes from memory: closed forms.
#include <catch2/catch.hpp>
#include <functional>

#include "sim/cost/memory/memory.hpp"
#include "sim/program/build/build.hpp"
#include "sim/program/build/sizes.hpp"

using namespace wt;

namespace {

constexpr double kRows = 40;

ModelSpec model() {
  ModelSpec m;
  m.name = "tiny";
  m.layers = 6, m.d_model = 8, m.heads = 2, m.kv_heads = 1, m.head_dim = 4, m.ffn = 16, m.experts = 4, m.top_k = 2;
  m.vocab = 32;
  return m;
}

Program program(const std::string& recompute, std::int64_t expert = 2, Precision precision = Precision::fp32) {
  Layout layout{1, 2, expert, 1, recompute_from_string(recompute), {}};
  return build_program_set(model(), layout, {16, 1, precision, false}).programs[0];
}

/// Of the ops whose names end so, over the step.
double flops(const Program& program, const std::string& ending) {
  double sum = 0;
  for (const OpInstance& instance : unroll(program))
    if (instance.op->name.ends_with(ending))
      for (const WorkItem& item : instance.op->work) sum += item.flops(kRows);
  return sum;
}

/// Live where the forward pass is over.
double held(const Program& program) {
  const auto memory = replay_memory(program, [](int, int) { return kRows; });
  const auto ops = unroll(program);
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i].id() == "mb0.L5.combine.fwd") return memory.live_bytes[i];
  return -1;
}

std::vector<std::string> ids(const Program& program) {
  std::vector<std::string> out;
  for (const OpInstance& op : unroll(program)) out.push_back(op.id());
  return out;
}

}  // namespace

TEST_CASE("recompute repeats the forward work that its module names, and nothing else") {
  for (const std::int64_t expert : {1, 2}) {
    const Program none = program("none", expert);
    const double attention = flops(none, "attn.fwd"), experts = flops(none, "experts.fwd");
    const double rows = 6 * (expert == 1 ? 32 : kRows), down = rows * 2 * 8 * 16;
    const double sorts = expert == 1 ? 0 : 2 * rows * 4 * 8;
    CHECK(flops(none, ".rec") == 0);
    CHECK(flops(program("attention", expert), ".rec") == Approx(attention));
    CHECK(flops(program("experts", expert), ".rec") == Approx(experts - down - sorts));
    CHECK(flops(program("attention+experts", expert), ".rec") == Approx(attention + experts - down - sorts));
    CHECK(flops(program("block", expert), ".rec") == Approx(attention + experts));
    CHECK(flops(program("norm", expert), ".bwd") - flops(none, ".bwd") == Approx(6 * 2 * 16 * 4 * 8));
    for (const char* policy : {"attention", "experts", "block"})
      CHECK(flops(program(policy, expert), ".bwd") == flops(none, ".bwd"));
  }
}

TEST_CASE("grouped and dense products: backward is 8 units without recompute, 12 with the whole block") {
  const auto products = [](const Program& p) {
    double forward = 0, backward = 0;
    for (const OpInstance& instance : unroll(p))
      for (const WorkItem& item : instance.op->work)
        if ((item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm) && instance.layer >= 0)
          (instance.op->direction == Direction::forward ? forward : backward) += item.flops(kRows);
    return 4 * backward / forward;
  };
  CHECK(products(program("none")) == Approx(8));
  CHECK(products(program("block")) == Approx(12));
  CHECK(products(program("experts")) > 8);
  CHECK(products(program("experts")) < products(program("attention+experts")));
  CHECK(products(program("attention+experts")) < 12);
}

TEST_CASE("exchanges are repeated for whole blocks only") {
  const auto count = [](const std::string& policy) {
    std::size_t n = 0;
    for (const std::string& id : ids(program(policy))) n += id.ends_with("dispatch.rec") || id.ends_with("collect.rec");
    return n;
  };
  CHECK(count("block") == 12);
  CHECK(count("block:middle-2") == 4);
  CHECK(count("attention+experts+norm") == 0);
}

TEST_CASE("what forward keeps is less by what is computed again") {
  for (const std::int64_t expert : {1, 2})
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const Sizes s(model(), Layout{1, 2, expert, 1, {}, {}}, {16, 1, precision, false});
      const auto saved = [&](const char* policy) {
        return held(program("none", expert, precision)) - held(program(policy, expert, precision));
      };
      const double experts = (s.gate_up.at(kRows) + s.activated.at(kRows)), rows = s.row_block.at(kRows);
      CHECK(saved("norm") == Approx(6 * s.normed));
      CHECK(saved("experts") == Approx(6 * experts));
      CHECK(saved("attention") == Approx(6 * (s.attention + s.normed)));
      CHECK(saved("attention+experts+norm") == Approx(6 * (s.attention + s.normed + experts)));
      CHECK(saved("block") == Approx(6 * (s.attention + s.normed + experts + rows + s.routed)));
      CHECK(saved("block") - saved("block/int8") == Approx(-6 * (s.x - s.compressed)));
      CHECK(saved("experts:first-2+norm:last-1") == Approx(2 * experts + s.normed));
    }
}

TEST_CASE("neighbours alike share a loop; a policy for all keeps the loops of none") {
  const std::function<int(const std::vector<Node>&)> loops = [&](const std::vector<Node>& nodes) {
    int n = 0;
    for (const Node& node : nodes)
      if (const Loop* loop = std::get_if<Loop>(&node)) n += 1 + loops(loop->body);
    return n;
  };
  const int plain = loops(program("none").nodes);
  CHECK(loops(program("experts+norm").nodes) == plain);
  CHECK(loops(program("experts:range-2-4").nodes) == plain + 4);  // 0-1, 2-3, 4 forward; 4, 3-2, 1 backward
}

TEST_CASE("ids stay what they are, whatever is computed again") {
  const std::vector<std::string> none = ids(program("none"));
  for (const std::string policy : {"block", "attention+experts", "experts:range-2-4+attention:last-2", "norm/none"}) {
    std::vector<std::string> found = ids(program(policy));
    std::erase_if(found, [](const std::string& id) { return id.ends_with(".rec"); });
    CHECK(found == none);
  }
}
