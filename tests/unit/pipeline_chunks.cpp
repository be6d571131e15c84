// Chunks of a pipeline without a layer: the embedding alone, the head alone, modules of multi-token prediction in a
// chunk of their own. Work, weights and messages are those of the model whatever chunk has them, and times follow from
// what each chunk takes.
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>

#include "configs/files/pipeline_layout.hpp"
#include "sim/program/compose/tensor_slice.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "tests/fixtures/pipelines.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// As many stages as chunks, or `pipeline` of them.
Layout chunked(const std::string& text, std::int64_t pipeline = 0, Layout layout = {}) {
  const PipelineLayout said = pipeline_layout_from_string(text, "test");
  const std::int64_t chunks = static_cast<std::int64_t>(said.layers.size());
  layout = stages(pipeline > 0 ? pipeline : chunks, pipeline > 0 ? chunks / pipeline : 1, layout.schedule, layout);
  layout.chunk_layers = said.layers, layout.modules_before_head = said.modules_before_head;
  return layout;
}

ModelSpec with_modules(ModelSpec model, std::int64_t modules) {
  model.mtp_layers = modules;
  return model;
}

/// FLOPs of products and attention of all stages.
double flops(const ProgramSet& set) {
  double sum = 0;
  for (const Program& program : set.programs)
    for (const OpInstance& instance : unroll(program))
      for (const WorkItem& item : instance.op->work)
        if (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm || item.kernel == Kernel::attention)
          sum += item.flops(100);
  return sum;
}

/// Parameters a rank of each stage holds.
std::vector<double> parameters(const ProgramSet& set) {
  std::vector<double> out;
  for (const Program& program : set.programs)
    for (const Buffer& buffer : program.resident)
      if (buffer.name == "weights") out.push_back(buffer.bytes.fixed / 2);
  return out;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// A layer as in LayerCost; the head takes `head_s`.
struct HeadCost : LayerCost {
  double head_s = 0;
  explicit HeadCost(double s) : head_s(s) {}
  TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const override {
    if (op.name != "head") return LayerCost::segment(op, rows, clock);
    return {head_s, head_s, head_s, Lookup::exact, Evidence::measured};
  }
};

double step_with_head(double head_s, const std::string& text, double microbatches) {
  const Layout layout = chunked(text);
  std::int64_t layers = 0;
  for (const std::int64_t each : layout.chunk_layers) layers += each;
  return step_of(dense_model(layers), layout, static_cast<std::int64_t>(microbatches), HeadCost{head_s},
                 free_network(layout.world()));
}

}  // namespace

TEST_CASE("work and weights of all stages are the model's, wherever its chunks end") {
  const std::map<std::string, std::int64_t> layouts{{"Et*3|t*3L", 2}, {"E|t*3|t*3L", 3},      {"Et*3|t*3|L", 3},
                                                    {"E|t*6|L", 3},   {"E|t*2|t|t|t*2|L", 3}, {"E|t*2|t|t|t*2|L", 2},
                                                    {"E|t*6L", 2},    {"Et*6|L", 2}};
  for (const auto& [text, pipeline] : layouts)
    for (const bool moe : {false, true}) {
      INFO(text << " on " << pipeline << " stages");
      const ModelSpec model = moe ? small_model(6) : dense_model(6);
      const ProgramSet set = programs(model, chunked(text, pipeline), 6);
      CHECK(sum(parameters(set)) == static_cast<double>(model.total_parameters()));
      const double whole = flops(build_program_set(model, {}, {kSeq, 6, Precision::bf16, false}));
      CHECK(flops(set) == Approx(whole).epsilon(1e-12));
    }
}

TEST_CASE("a stage without a layer has the matrix alone, no op of a layer, and sends or receives") {
  const ModelSpec model = dense_model(4);
  const ProgramSet set = programs(model, chunked("E|t*4|L"), 4);
  const std::vector<double> held = parameters(set);
  CHECK(held.at(0) == static_cast<double>(model.embedding_parameters()));
  CHECK(held.at(2) == static_cast<double>(model.head_parameters()));
  for (const std::size_t end : {std::size_t{0}, std::size_t{2}}) {
    std::map<Action, int> seen;
    for (const OpInstance& instance : unroll(set.programs[end])) ++seen[instance.op->action];
    CHECK(seen[Action::attention] + seen[Action::ffn] + seen[Action::experts] == 0);
    CHECK(seen[Action::embed] == (end == 0 ? 2 * 4 : 0));
    CHECK(seen[Action::head_loss] == (end == 2 ? 4 : 0));
    const MemoryReplay memory = replay_memory(set.programs[end], [](int, int) { return 0.0; });
    CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
  }
}

TEST_CASE("modules stand with the head or before it; a copy of the embedding stands with them") {
  const double matrix = static_cast<double>(small_model(4).embedding_parameters());
  const double x = static_cast<double>(kSeq * small_model(4).d_model * 2);
  const std::int64_t m = 4;
  struct Case {
    std::string text;
    std::int64_t pipeline, modules, holder;  // holder: the stage with the modules
    double more_hidden_states;               // that a message between modules and head has
  };
  for (const Case& c :
       {Case{"Et|t|t|tmL", 4, 1, 3, 0}, Case{"Et*2|t*2|mL", 3, 1, 2, 0}, Case{"Et*2|t*2m|L", 3, 1, 1, 1},
        Case{"Et*2|t*2|m|L", 4, 1, 2, 1}, Case{"Et*2|t*2|m*2|L", 4, 2, 2, 2}, Case{"E|t*4|m|L", 2, 1, 0, 1},
        Case{"Et*4m|L", 2, 1, 0, 1}}) {
    INFO(c.text << " on " << c.pipeline << " stages");
    const ModelSpec model = with_modules(small_model(4), c.modules);
    const Layout layout = chunked(c.text, c.pipeline);
    const ProgramSet set = programs(model, layout, m);
    CHECK(sum(parameters(set)) ==
          static_cast<double>(model.total_parameters()) + (c.holder > 0 ? matrix : 0));  // of it a copy
    CHECK(flops(set) == Approx(flops(build_program_set(model, {}, {kSeq, m, Precision::bf16, false}))).epsilon(1e-12));
    double sent = 0, received = 0;
    std::map<std::int64_t, int> copies, heads, modules;
    for (std::int64_t stage = 0; stage < c.pipeline; ++stage) {
      const Program& program = set.programs[static_cast<std::size_t>(stage)];
      for (const OpInstance& instance : unroll(program)) {
        const Op& op = *instance.op;
        if (op.name == "send.fwd" || op.name == "send.bwd") sent += op.collective.bytes.fixed;
        if (op.name == "receive.fwd" || op.name == "receive.bwd") received += op.collective.bytes.fixed;
        copies[stage] += op.name == "tied.send";
        heads[stage] += op.action == Action::head_loss;
        modules[stage] += op.name == "attn.fwd" && instance.layer >= model.layers;
      }
      const MemoryReplay memory = replay_memory(program, [](int, int) { return 100.0; });
      CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
    }
    const double boundaries = static_cast<double>(layout.chunk_layers.size()) - 1;
    CHECK(sent == 2 * static_cast<double>(m) * (boundaries + c.more_hidden_states) * x);
    CHECK(received == sent);
    for (std::int64_t stage = 0; stage < c.pipeline; ++stage) {
      CHECK(copies[stage] == (c.holder > 0 && (stage == 0 || stage == c.holder)));
      CHECK(heads[stage] == (stage == c.pipeline - 1 ? m : 0));
      CHECK(modules[stage] == (stage == c.holder ? m * c.modules : 0));
    }
    CHECK(step_of(model, layout, m, FakeCost{}, small_cluster(1)) > 0);
  }
}

TEST_CASE("a step takes as long as its fullest stage, wherever the layers are") {
  // The last stage works without a break from the first forward pass that arrives; the last backward pass follows.
  for (const double m : {4.0, 9.0}) {
    CHECK(step_with_head(6, "Et*3|t*3L", m) == Approx(3 + m * (9 + 6) + 6));
    CHECK(step_with_head(6, "Et*4|t*2L", m) == Approx(4 + m * (6 + 6) + 8));  // a layer moved off it
    CHECK(step_with_head(20, "Et*3|t*3|L", m) == Approx(6 + m * 20 + 12));    // the head alone
    CHECK(step_with_head(0, "Et*3|t*3|L", m) == Approx(step_with_head(0, "Et*3|t*3L", m)));
    // A stage with the embedding alone takes no time: two stages of two layers.
    CHECK(step_with_head(0, "E|t*2|t*2L", m) == Approx(6 * (m + 1)));
    CHECK(step_with_head(0, "E|t*2|t*2|L", m) == Approx(6 * (m + 1)));
  }
}

TEST_CASE("no schedule stands still or keeps memory, whatever chunks have no layer") {
  std::mt19937 random(11);
  const auto draw = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)); };
  for (int i = 0; i < 60; ++i) {
    const std::int64_t p = 2 + draw(4), v = 1 + draw(3), chunks = p * v, m = p * (1 + draw(3));
    const bool moe = i % 2 == 0;
    ModelSpec model = moe ? small_model(1) : dense_model(1);
    model.mtp_layers = draw(3);
    Layout layout = stages(p, v, v == 1 && i % 3 == 0 ? Schedule::zero_bubble : Schedule::one_f_one_b);
    layout.chunk_layers.assign(static_cast<std::size_t>(chunks), 1 + draw(2));
    if (draw(2)) layout.chunk_layers.front() = 0;
    if (draw(2)) layout.chunk_layers.back() = 0;
    layout.modules_before_head = model.mtp_layers > 0 && layout.chunk_layers.back() == 0 && draw(2);
    if (layout.modules_before_head && chunks > 2 && draw(2)) layout.chunk_layers.end()[-2] = 0;
    model.layers = std::accumulate(layout.chunk_layers.begin(), layout.chunk_layers.end(), std::int64_t{0});
    if (model.layers == 0) continue;
    if (i % 5 == 0) layout.replicate = layout.optimizer_shard = 2;
    layout.shard = 1 + draw(2), layout.tensor = 1 + draw(2), layout.sequence_parallel = layout.tensor > 1;
    if (moe) layout.expert = layout.shard;
    layout.exchange_overlap = layout.expert > 1 && layout.schedule == Schedule::one_f_one_b && draw(2);
    if (model.mtp_layers == 0) model.tied = i % 7 == 0;
    INFO(model.name << " " << layout.name() << ", " << m << " microbatches, "
                    << to_string({layout.chunk_layers, model.mtp_layers, layout.modules_before_head}));
    const ProgramSet set = programs(model, layout, m);
    for (const Program& program : set.programs) {
      const MemoryReplay memory = replay_memory(program, [](int, int) { return 100.0; });
      CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
    }
    CHECK(step_of(model, layout, m, FakeCost{}, small_cluster(1)) > 0);
  }
}

TEST_CASE("chunks without anything, layers behind modules and modules of nobody are refused") {
  const auto refused = [](const ModelSpec& model, const Layout& layout, const std::string& why) {
    CHECK_THROWS_WITH(programs(model, layout, 6), Catch::Contains(why));
  };
  Layout layout = chunked("Et*2|t*2|L");
  layout.modules_before_head = true;
  refused(dense_model(4), layout, "0 modules");
  layout.chunk_layers = {2, 0, 2};
  layout.modules_before_head = false;
  refused(dense_model(4), layout, "found 0 layers in chunk 2 of 3");
  layout.modules_before_head = true;
  refused(with_modules(dense_model(4), 1), layout, "needs pipeline > 1, a model with modules and a last chunk without");
  layout.chunk_layers.clear();
  refused(with_modules(dense_model(4), 1), layout, "0 chunks said");
  layout = stages(1);
  layout.chunk_layers = {2, 2};
  refused(dense_model(4), layout, "2 chunks without a pipeline");
}
