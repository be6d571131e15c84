// What recompute by module adds to the step program, and what it takes from memory: closed forms.
#include <catch2/catch.hpp>

#include "sim/program/compose/compose.hpp"
#include "sim/program/compose/sizes.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "sim/program/walk.hpp"

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

Program program_of(const ModelSpec& m, const std::string& recompute, std::int64_t expert, Precision precision) {
  Layout layout{1, 2, expert, 1, recompute_from_string(recompute), {}};
  return build_program_set(m, layout, {16, 1, precision, false}).programs[0];
}

Program program(const std::string& recompute, std::int64_t expert = 2, Precision precision = Precision::fp32) {
  return program_of(model(), recompute, expert, precision);
}

/// Latent attention, a dense layer before those with experts, shared experts: what Megatron-Core's modules name.
ModelSpec deepseek() {
  ModelSpec m = model();
  m.dense_layers = 1, m.dense_ffn = 24, m.shared_ffn = 12, m.head_dim = 6, m.kv_heads = m.heads;
  m.attention.mla = {
      .kv_lora_rank = 5, .q_lora_rank = 6, .qk_nope_head_dim = 4, .qk_rope_head_dim = 2, .v_head_dim = 4};
  m.check("deepseek");
  return m;
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
  const auto loops = [](const Program& made) {
    int n = 0;
    const auto count = [&n](const Loop&) { return ++n > 0; };
    for_each_op(
        made.nodes, [](const Op&, const LoopsAround&) {}, count);
    return n;
  };
  const int plain = loops(program("none"));
  CHECK(loops(program("experts+norm")) == plain);
  CHECK(loops(program("experts:range-2-4")) == plain + 4);  // 0-1, 2-3, 4 forward; 4, 3-2, 1 backward
}

TEST_CASE("ids stay what they are, whatever is computed again") {
  const std::vector<std::string> none = ids(program("none"));
  for (const std::string policy : {"block", "attention+experts", "experts:range-2-4+attention:last-2", "norm/none"}) {
    std::vector<std::string> found = ids(program(policy));
    std::erase_if(found, [](const std::string& id) { return id.ends_with(".rec"); });
    CHECK(found == none);
  }
}

TEST_CASE("Megatron-Core's modules repeat their forward work, and exchanges where rows are lost") {
  const ModelSpec m = deepseek();
  for (const std::int64_t expert : {1, 2}) {
    const auto of = [&](const char* policy) { return program_of(m, policy, expert, Precision::bf16); };
    const Program none = of("none");
    const double rows = 5 * (expert == 1 ? 32 : kRows), tokens = 16;
    CHECK(flops(of("moe_act"), ".rec") == Approx(rows * 4 * 16));
    // Products of q and of keys with values; heads put together.
    CHECK(flops(of("mla_up_proj"), ".rec") == Approx(6 * tokens * (2 * 12 * 6 + 2 * 16 * 5 + 4 * 3 * 12)));
    const double shared = 2 * tokens * 3 * 12 * 8 + 4 * tokens * 12, dense = 2 * tokens * 3 * 24 * 8 + 4 * tokens * 24;
    CHECK(flops(of("shared_experts"), ".rec") == Approx(5 * shared));
    CHECK(flops(of("mlp"), ".rec") == Approx(dense));
    const double router = tokens * (2 * 4 * 8 + 10 * 4) + 2 * tokens * 4 * 8;
    CHECK(flops(of("moe"), ".rec") == Approx(flops(none, "experts.fwd") + 5 * (shared + router)));
    for (const char* policy : {"moe_act", "mla_up_proj", "shared_experts", "mlp", "moe"})
      CHECK(flops(of(policy), ".bwd") == flops(none, ".bwd"));
    std::size_t exchanges = 0;
    for (const std::string& id : ids(of("moe")))
      exchanges += id.ends_with("dispatch.rec") || id.ends_with("collect.rec");
    CHECK(exchanges == (expert == 1 ? 0 : 10));
  }
}

TEST_CASE("what forward keeps is less by what Megatron-Core's modules compute again") {
  const ModelSpec m = deepseek();
  for (const std::int64_t expert : {1, 2})
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const double word = precision == Precision::fp32 ? 4 : 2, tokens = 16, rows = expert == 1 ? 32 : kRows;
      const auto saved_of = [&](const ModelSpec& of, const char* policy) {
        return held(program_of(of, "none", expert, precision)) - held(program_of(of, policy, expert, precision));
      };
      const auto saved = [&](const char* policy) { return saved_of(m, policy); };
      const double activation = rows * 16 * word, experts = 2 * rows * 16 * word + activation;
      const double x = tokens * 8 * word, shared = 3 * tokens * 12 * word, dense = 3 * tokens * 24 * word;
      CHECK(saved("moe_act") == Approx(5 * activation));
      CHECK(saved("mla_up_proj") == Approx(6 * tokens * (3 * 12 - 2) * word));  // the shared rotary part of keys stays
      CHECK(saved("shared_experts") == Approx(5 * shared));
      CHECK(saved("mlp") == Approx(dense));
      CHECK(saved("mlp+moe_act+mla_up_proj:first-1") == Approx(dense + 5 * activation + tokens * (3 * 12 - 2) * word));
      // Input rows and output of the experts, scores; the fp32 copies of the router's product. x is the shared
      // experts'.
      const double copies = precision == Precision::bf16 ? (tokens + 4) * 8 * 4.0 : 0;
      const double moe = experts + rows * 8 * word + tokens * 2 * 8 * word + tokens * 4 * 4 + copies;
      CHECK(saved("moe") == Approx(5 * (moe + shared)));
      // Without shared experts x is kept for it, where fp32 keeps it anyhow.
      ModelSpec routed = m;
      routed.shared_ffn = 0;
      CHECK(saved_of(routed, "moe") == Approx(5 * (moe - (precision == Precision::bf16 ? x : 0))));
      CHECK(saved_of(routed, "moe+norm") == Approx(5 * (moe + x) + 5 * (precision == Precision::bf16 ? 0 : x) + 2 * x));
      // Both norms of every layer; in bf16 the router's copies.
      CHECK(saved("norm") == Approx(12 * x + 5 * copies));
    }
}

TEST_CASE("modules combine in every layout, and all of their memory comes back") {
  for (const ModelSpec& m : {model(), deepseek()})
    for (const char* policy : {"moe", "moe+norm", "attention+moe", "attention+moe+norm", "norm+moe_act+core",
                               "experts+norm", "mla_up_proj+moe_act+mlp+shared_experts+norm", "core+mla_up_proj"})
      for (const std::int64_t tensor : {1, 2})
        for (const bool split : {false, true})
          for (const Precision precision : {Precision::fp32, Precision::bf16}) {
            const std::string words = policy;
            if (m.shared_ffn == 0 && (words.find("mla") != std::string::npos || words.find("mlp") != std::string::npos))
              continue;
            Layout layout{1, 2, 2, 1, recompute_from_string(words), {}};
            layout.tensor = tensor, layout.sequence_parallel = tensor > 1;
            if (split) {
              layout.pipeline = 2, layout.schedule = Schedule::zero_bubble;
              layout.reshard_after_forward = layout.reduce_every_microbatch = false;
            }
            INFO(m.shared_ffn << " " << layout.name() << " " << words);
            for (const Program& each : build_program_set(m, layout, {16, 3, precision, false}).programs) {
              const MemoryReplay memory = replay_memory(each, [](int, int) { return kRows; });
              CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
            }
          }
}
