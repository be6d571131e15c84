// Pipeline stages: their schedules against the closed forms of Narayanan et al. 2021 and Qi et al. 2023, memory in
// flight, messages, and what is refused.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>

#include "configs/base/error.hpp"
#include "configs/files/run.hpp"
#include "sim/program/compose/pipeline_schedule.hpp"
#include "sim/program/compose/tensor_slice.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "tests/fixtures/pipelines.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Attention and experts take a second each way, an exchange of rows half of one; everything else is free.
struct ExchangeCost : FakeCost {
  ExchangeCost() { latency_s = 0; }
  TimeEstimate segment(const Op& op, const BoundRows&, Clock) const override {
    const bool counts = op.name.starts_with("attn.") || op.name.starts_with("experts.");  // one op each way
    const double s = counts ? 1 : 0;
    return {s, s, s, Lookup::exact, Evidence::measured};
  }
  CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override {
    CollectiveEstimate estimate = FakeCost::collective(kind, bytes, ranks, nodes);
    if (kind == OpKind::all_to_all && bytes > 1e4) estimate.latency_s = 0.5;  // counts are smaller
    return estimate;
  }
};

}  // namespace

TEST_CASE("1F1B: stages stand still for (p-1)/(m+p-1) of the step, interleaved for (p-1)/(vm+p-1)") {
  for (const std::int64_t p : {2, 3, 4, 8})
    for (const std::int64_t v : {1, 2, 3})
      for (const std::int64_t m : {p, 2 * p, 4 * p, p + 1}) {
        if (v > 1 && m % p != 0) continue;
        const std::int64_t layers = p * v * 2;
        const double P = static_cast<double>(p), V = static_cast<double>(v), M = static_cast<double>(m),
                     busy = 3.0 * 2 * V * M;
        INFO(p << " stages, " << v << " chunks, " << m << " microbatches");
        const double step = in_layers(layers, stages(p, v), m);
        CHECK(step == Approx(busy * (V * M + P - 1) / (V * M)).epsilon(1e-9));
        CHECK(1 - busy / step == Approx((P - 1) / (V * M + P - 1)).epsilon(1e-9));
      }
}

TEST_CASE("ZB-H1: a third of 1F1B's idle time where inputs and weights cost what forward does") {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t m : {p, 3 * p}) {
      const double P = static_cast<double>(p), busy = 3.0 * static_cast<double>(m);
      CHECK(in_layers(p, stages(p, 1, Schedule::zero_bubble), m) ==
            Approx(busy + (P - 1)).epsilon(1e-9));  // (p-1)(f+b-w)
      CHECK(in_layers(p, stages(p), m) == Approx(busy + 3 * (P - 1)).epsilon(1e-9));
    }
}

TEST_CASE("every stage passes every microbatch through every chunk once, forward before backward before weights") {
  using Pass = StageWork::Pass;
  for (const std::int64_t p : {1, 2, 4, 5})
    for (const auto& layout :
         {stages(p), stages(p, 3), stages(p, 1, Schedule::zero_bubble), stages(p, 2, Schedule::dualpipe_v)})
      for (std::int64_t s = 0; s < p; ++s) {
        std::map<std::pair<int, int>, std::vector<Pass>> seen;
        for (const StageWork& work : stage_schedule(layout, s, 2 * p))
          seen[{work.microbatch, work.chunk}].push_back(work.pass);
        CHECK(static_cast<std::int64_t>(seen.size()) == 2 * p * layout.virtual_stages);
        for (const auto& [of, passes] : seen) {
          const bool whole = passes == std::vector{Pass::forward, Pass::backward},
                     split = passes == std::vector{Pass::forward, Pass::inputs, Pass::weights};
          CHECK((layout.schedule == Schedule::one_f_one_b   ? whole
                 : layout.schedule == Schedule::zero_bubble ? split
                                                            : whole || split));
        }
      }
}

TEST_CASE("rows of one microbatch travel while another is computed: only the first and last exchanges are waited for") {
  constexpr double kExchange = 0.5;
  for (const std::int64_t n : {1, 3})
    for (const std::int64_t m : {1, 2, 5}) {
      Layout layout = stages(1);
      layout.tensor = 2, layout.sequence_parallel = true, layout.shard = layout.expert = 2;
      const double L = static_cast<double>(n), M = static_cast<double>(m);
      const auto takes = [&] { return step_of(small_model(n), layout, m, ExchangeCost{}, free_network(4)); };
      CHECK(takes() == Approx(M * (4 * L + 4 * L * kExchange)).margin(1e-5));
      layout.exchange_overlap = true;
      // The first forward and the last backward pass are alone; a pair begins and ends with an exchange.
      CHECK(takes() == Approx(M * 4 * L + 4 * L * kExchange + (M - 1) * 2 * kExchange).margin(1e-5));
    }
}

TEST_CASE("overlapped exchanges are refused where nothing is exchanged, weights are gathered anew, or ZB-H1 is asked") {
  Layout layout = stages(2);
  layout.exchange_overlap = true;
  CHECK_THROWS_WITH(programs(small_model(4), layout, 4), Catch::Contains("needs experts on several ranks"));
  layout.shard = layout.expert = 2;
  CHECK_NOTHROW(programs(small_model(4), layout, 4));
  layout.schedule = Schedule::zero_bubble;
  CHECK_THROWS_WITH(programs(small_model(4), layout, 4), Catch::Contains("1f1b or dualpipe_v"));
  layout = Layout{};
  layout.shard = layout.expert = 2, layout.exchange_overlap = true;
  CHECK_THROWS_WITH(programs(small_model(4), layout, 4), Catch::Contains("weights that stay"));
  layout.reshard_after_forward = layout.reduce_every_microbatch = false;
  CHECK_THROWS_WITH(programs(small_model(4), layout, 4), Catch::Contains("resident_weights"));
}

TEST_CASE("no schedule stands still for ever: random stages, chunks, microbatches, replicas") {
  std::mt19937 random(7);
  const auto draw = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)) + 1; };
  for (int i = 0; i < 60; ++i) {
    const std::int64_t p = draw(6), v = p == 1 ? 1 : draw(3);
    const Schedule schedule = p == 1 || i % 2 == 0 ? Schedule::one_f_one_b
                              : v == 1             ? Schedule::zero_bubble
                              : v == 2             ? Schedule::dualpipe_v
                                                   : Schedule::one_f_one_b;
    const std::int64_t m = schedule == Schedule::dualpipe_v ? 2 * p + draw(4) - 1 : v > 1 ? p * draw(3) : draw(9);
    Layout layout = stages(p, v, schedule);
    layout.replicate = draw(2), layout.shard = draw(2), layout.tensor = p == 1 || i % 3 == 0 ? 2 : 1;
    layout.sequence_parallel = layout.tensor > 1;
    const bool moe = i % 4 < 2;
    if (moe) layout.expert = layout.shard;
    layout.exchange_overlap = layout.expert > 1 && layout.schedule != Schedule::zero_bubble && i % 8 < 4;
    if (i % 5 == 0) layout.optimizer_shard = layout.replicate;
    ModelSpec model = moe ? small_model(p * v * draw(2)) : dense_model(p * v * draw(2));
    model.tied = i % 7 == 0;
    INFO(model.name << " " << layout.name() << ", " << m << " microbatches");
    const double step = step_of(model, layout, m, FakeCost{}, small_cluster(1));
    CHECK(step > 0);
  }
}

TEST_CASE("stage s of 1F1B keeps min(m, p - s) microbatches, of ZB-H1 every stage p, of DualPipe's V 2p + 1 chunks") {
  // By buffer: what a layer saves between its passes.
  const auto kept = [](const Layout& layout, std::int64_t stage, std::int64_t m) {
    const auto set = programs(dense_model(layout.pipeline * layout.virtual_stages), layout, m);
    const auto ops = unroll(set.programs[static_cast<std::size_t>(stage)]);
    std::int64_t live = 0, most = 0;
    for (const OpInstance& instance : ops) {
      for (const Buffer& b : instance.op->allocates) live += b.name == "attention.saved";
      for (const Ref& r : instance.op->frees) live -= r.name == "attention.saved";
      most = std::max(most, live);
    }
    CHECK(live == 0);
    return most;
  };
  for (const std::int64_t p : {2, 4})
    for (const std::int64_t m : {1, 2, 8})
      for (std::int64_t s = 0; s < p; ++s) {
        CHECK(kept(stages(p), s, m) == std::min(m, p - s));
        CHECK(kept(stages(p, 1, Schedule::zero_bubble), s, m) == std::min(m, p));
      }
  // Interleaved, first stage: 2(p-1) + (v-1)p + 1 chunks of 1/v of the layers (Narayanan et al. 2021, figure 4).
  CHECK(kept(stages(4, 2), 0, 8) == 2 * 3 + 4 + 1);
  for (const std::int64_t p : {2, 3, 4})
    for (std::int64_t s = 0; s < p; ++s) CHECK(kept(stages(p, 2, Schedule::dualpipe_v), s, 3 * p) == 2 * p + 1);
}

TEST_CASE("a step gives its memory back on every stage; parameters of all ranks are the model's") {
  for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::zero_bubble, Schedule::dualpipe_v})
    for (const char* policy : {"none", "block", "attention"})
      for (const std::int64_t tensor : {1, 2}) {
        Layout layout = stages(2, schedule == Schedule::dualpipe_v ? 2 : 1, schedule,
                               Layout{2, 2, 2, 1, recompute_from_string(policy), {}});
        layout.tensor = tensor, layout.sequence_parallel = tensor > 1;
        const ModelSpec model = small_model(4);
        double weights = 0, norms = 0;
        for (const Program& program : programs(model, layout, 4).programs) {
          INFO(layout.name() << " " << policy);
          const MemoryReplay memory = replay_memory(program, [](int, int) { return 200.0; });
          CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
          CHECK(memory.peak_bytes > memory.resident_bytes);
          for (const Buffer& buffer : program.resident)
            weights += buffer.name == "weights" ? buffer.bytes.fixed / 2 : 0;
        }
        // A rank holds half of the experts and its tensor slice of everything but norms and routers.
        const ModelSpec slice = tensor_slice(model, tensor);
        for (std::int64_t layer = 0; layer < 4; ++layer)
          norms += static_cast<double>(slice.experts / 2 * slice.expert_parameters());
        CHECK(weights + norms == Approx(static_cast<double>(slice.total_parameters())).epsilon(1e-3));  // padding
      }
}

TEST_CASE("ZeRO-1: weights 2 and gradients 4 bytes a parameter, 12 over the ranks of the state") {
  const ModelSpec model = dense_model(4);
  const double all = static_cast<double>(model.total_parameters());
  for (const std::int64_t ranks : {1, 2, 8}) {
    std::map<std::string, double> bytes;
    Layout layout = stages(1, 1, Schedule::one_f_one_b, Layout{8, 1, 1, 1, Recompute::none, {}});
    layout.optimizer_shard = ranks, layout.tensor = 2;
    const ProgramSet set = programs(model, layout, 2);
    for (const Buffer& buffer : set.programs[0].resident) bytes[buffer.name] = buffer.bytes.fixed;
    const double part = static_cast<double>(tensor_slice(model, 2).total_parameters());
    CHECK(bytes["weights"] == Approx(2 * part).epsilon(1e-3));
    CHECK(bytes["gradients"] == Approx(4 * part).epsilon(1e-3));
    CHECK(bytes["masters"] + bytes["moments"] == Approx(12 * part / static_cast<double>(ranks)).epsilon(1e-3));
  }
  // replicate x 1 with optimizer_shard = replicate: a reduce-scatter of the gradients and a gather of the weights a
  // step.
  Layout layout{4, 1, 1, 1, Recompute::none, {}};
  layout.optimizer_shard = 4;
  for (const bool resident : {false, true}) {
    if (resident) layout = stages(2, 1, Schedule::one_f_one_b, layout);
    std::map<OpKind, double> sent;
    double states = 0;
    for (const Program& program : programs(model, layout, 4).programs) {
      for (const OpInstance& instance : unroll(program))
        if (instance.op->collective_kind() && instance.op->collective.axis == Axis::optimizer_shard)
          sent[instance.op->kind] += instance.op->collective.bytes.fixed;
      for (const Buffer& buffer : program.resident)
        states += buffer.name == "masters" || buffer.name == "moments" ? buffer.bytes.fixed : 0;
    }
    CHECK(sent[OpKind::reduce_scatter] == Approx(4 * all).epsilon(1e-3));
    CHECK(sent[OpKind::all_gather] == Approx(2 * all).epsilon(1e-3));
    CHECK(sent.size() == 2);
    CHECK(states == Approx(12 * all / 4).epsilon(1e-3));
  }
}

TEST_CASE("messages: a microbatch's activations and gradients cross every boundary of chunks once") {
  for (const std::int64_t v : {1, 2}) {
    const ModelSpec model = dense_model(4 * v);
    double sent = 0, received = 0;
    for (const Program& program : programs(model, stages(4, v), 8).programs)
      for (const OpInstance& instance : unroll(program)) {
        if (instance.op->kind == OpKind::send) sent += instance.op->collective.bytes.fixed;
        if (instance.op->kind == OpKind::receive) received += instance.op->collective.bytes.fixed;
      }
    CHECK(sent == static_cast<double>(2 * 8 * (4 * v - 1) * kSeq * model.d_model * 2));
    CHECK(received == sent);
  }
}

TEST_CASE("a tied embedding is on the first and the last stage, whose gradients of it are summed") {
  ModelSpec model = dense_model(4);
  model.tied = true;
  const double matrix = static_cast<double>(model.vocab * model.d_model);
  for (const std::int64_t p : {2, 4}) {
    const ProgramSet set = programs(model, stages(p), 4);
    double weights = 0, sent = 0;
    for (const Program& program : set.programs) {
      for (const Buffer& buffer : program.resident) weights += buffer.name == "weights" ? buffer.bytes.fixed / 2 : 0;
      for (const OpInstance& instance : unroll(program))
        if (instance.op->name == "tied.send") sent += instance.op->collective.bytes.fixed;
      const MemoryReplay memory = replay_memory(program, [](int, int) { return 0.0; });
      CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
    }
    CHECK(weights == static_cast<double>(model.total_parameters()) + matrix);
    CHECK(sent == 2 * 4 * matrix);
    CHECK(step_of(model, stages(p), 4, FakeCost{}, small_cluster(1)) >
          step_of(dense_model(4), stages(p), 4, FakeCost{}, small_cluster(1)));
  }
}

TEST_CASE("zero bubble does the same work in other pieces") {
  const auto flops = [](const Layout& layout) {
    double sum = 0;
    for (const Program& program : programs(small_model(4), layout, 4).programs)
      for (const OpInstance& instance : unroll(program))
        for (const WorkItem& item : instance.op->work) sum += item.flops(100);
    return sum;
  };
  CHECK(flops(stages(2, 1, Schedule::zero_bubble)) == Approx(flops(stages(2))).epsilon(1e-12));
}

TEST_CASE("run files say the layouts that are simulated alone, and read back") {
  const TempDirectory folder;
  RunSpec run;
  run.name = "staged", run.model = small_model(8), run.steps = 1, run.seq = 128, run.global_batch = 32;
  run.layout = stages(2, 1, Schedule::zero_bubble, Layout{2, 4, 2, 1, recompute_from_string("core"), {}});
  run.layout.tensor = 2, run.layout.sequence_parallel = true, run.layout.context = 2, run.layout.context_ring = true;
  run.layout.optimizer_shard = 2;
  CHECK(!run.layout.trainable());
  CHECK(run.microbatches() == 32 / 4);
  write_bytes(folder / "run.yaml", run_to_yaml(run));
  const RunSpec read = read_run(folder / "run.yaml");
  CHECK(read.layout.name() == run.layout.name());
  CHECK(read.layout.name() == "2x4 expert 2 context 2 ring optimizer 8 tensor 2+sequence pipeline 2 zero_bubble");
  CHECK(read.layout.world() == 32);
  CHECK(run_to_yaml(read) == run_to_yaml(run));
  run.layout.virtual_stages = 2, run.layout.schedule = Schedule::one_f_one_b;
  write_bytes(folder / "run.yaml", run_to_yaml(run));
  CHECK(read_run(folder / "run.yaml").layout.name() == run.layout.name());
  CHECK(Layout{}.trainable());
  run.layout.schedule = Schedule::dualpipe_v;
  std::string text = run_to_yaml(run);
  write_bytes(folder / "run.yaml", text);
  CHECK(read_run(folder / "run.yaml").layout.name() == run.layout.name());
  const std::string chunks = "  virtual_pipeline_degree: 2\n";  // which need not be said
  text.erase(text.find(chunks), chunks.size());
  write_bytes(folder / "run.yaml", text);
  CHECK(run_to_yaml(read_run(folder / "run.yaml")) == run_to_yaml(run));
}

TEST_CASE("pipelines that do not fit are refused by name") {
  const auto refused = [](const ModelSpec& model, const Layout& layout, const std::string& why) {
    CHECK_THROWS_WITH(programs(model, layout, 6), Catch::Contains(why));
  };
  refused(dense_model(4), stages(7), "found pipeline 7 x virtual stages 1 for the model's 4 layers");
  refused(dense_model(4), stages(0), "pipeline 0");
  refused(dense_model(4), stages(1, 2), "without a pipeline");
  refused(dense_model(8), stages(4, 2), "found 6 microbatches for 4 interleaved stages");
  refused(dense_model(8), stages(2, 2, Schedule::zero_bubble), "needs 1 (ZB-H1)");
  refused(dense_model(8), stages(2, 1, Schedule::dualpipe_v), "needs 2, one each way");
  refused(dense_model(16), stages(4, 2, Schedule::dualpipe_v), "needs at least 8, two a stage");
  refused(dense_model(8), stages(1, 2, Schedule::dualpipe_v), "without a pipeline");
  Layout gathers = stages(2);
  gathers.reshard_after_forward = true;
  refused(dense_model(4), gathers, "keeps its weights");
  CHECK_THROWS_WITH(
      (build_program_set(dense_model(4), stages(2, 1, Schedule::one_f_one_b, Layout{1, 1, 1, 2, Recompute::none, {}}),
                         {kSeq, 2, Precision::bf16, false, 1})),
      Catch::Contains("last microbatch of 1"));
}

TEST_CASE("layers that do not divide leave room for the embedding and the output projection at the ends") {
  const auto dealt = [](std::int64_t layers, std::int64_t stages, std::int64_t chunks = 1) {
    Layout layout;
    layout.pipeline = stages, layout.virtual_stages = chunks;
    return layout.layers_of_chunks(layers);
  };
  using Layers = std::vector<std::int64_t>;
  CHECK(dealt(8, 4) == Layers{2, 2, 2, 2});
  CHECK(dealt(6, 4) == Layers{1, 2, 2, 1});  // two stand for layers
  CHECK(dealt(61, 8) == Layers{7, 8, 8, 8, 8, 8, 7, 7});
  CHECK(dealt(14, 2, 4) == Layers{1, 2, 2, 2, 2, 2, 2, 1});
  CHECK(dealt(4, 5) == Layers{1, 1, 1, 1, 0});        // the output projection alone
  CHECK(dealt(4, 3, 2) == Layers{0, 1, 1, 1, 1, 0});  // and the embedding
  for (std::int64_t layers = 2; layers < 40; ++layers)
    for (std::int64_t stages = 2; stages <= layers; ++stages) {
      const Layers all = dealt(layers, stages);
      CHECK(std::accumulate(all.begin(), all.end(), std::int64_t{0}) == layers);
      CHECK(*std::min_element(all.begin(), all.end()) >= 1);
    }
}
