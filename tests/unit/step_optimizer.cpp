// Muon and the optimizer on the host, in closed form.
#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/files/run.hpp"
#include "sim/program/compose/muon.hpp"
#include "sim/program/walk.hpp"
#include "tests/fixtures/fake_cost.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

ProgramOptions with(OptimizerKind kind, double offload = 0) {
  ProgramOptions options{64, 1, Precision::bf16};
  options.optimizer = kind, options.offload_fraction = offload;
  return options;
}

Program program(const ModelSpec& model, const Layout& layout, const ProgramOptions& options) {
  return build_program_set(model, layout, options).programs.front();
}

double resident(const Program& program, const std::string& name) {
  double sum = 0;
  for (const Buffer& each : program.resident)
    if (each.name == name) sum += each.bytes.fixed;
  return sum;
}

std::vector<const Op*> ops_of(const Program& program, Action action) {
  std::vector<const Op*> out;
  for (const Op& op : ops_of(program.nodes))
    if (op.action == action) out.push_back(&op);
  return out;
}

double matrices_of(const ModelSpec& m, const Layout& l, Group group, std::int64_t layer) {
  double elements = 0;
  for (const MuonMatrices& each : muon_matrices(m, l, group, layer)) elements += each.elements();
  return elements;
}

double products(double m, double n) { return 5 * (4 * m * m * n + 2 * m * m * m); }

std::string optimizer_error(const std::string& optimizer) {
  const TempDirectory folder;
  write_bytes(folder / "run.yaml",
              "{model: dbrx, max_duration: 1ba, max_seq_len: 64, global_train_batch_size: 4, "
              "device_train_microbatch_size: 1, optimizer: " +
                  optimizer + "}");
  try {
    const RunSpec run = read_run(folder / "run.yaml");
    write_bytes(folder / "again.yaml", run_to_yaml(run));
    const RunSpec again = read_run(folder / "again.yaml");
    CHECK(again.optimizer.kind == run.optimizer.kind);
    CHECK(again.optimizer.offload_fraction == run.optimizer.offload_fraction);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("Muon's matrices are all of a layer's parameters but norms and biases") {
  for (const char* name : {"qwen3-235b-a22b", "kimi-k2", "dbrx", "llama3-8b"}) {
    const ModelSpec m = read_model(name);
    INFO(name);
    for (const std::int64_t layer : {std::int64_t{0}, m.layers - 1}) {
      const double vectors = as_double(m.dense_parameters(layer)) - matrices_of(m, {}, Group::dense, layer);
      CHECK(vectors >= as_double(2 * m.d_model));
      CHECK(vectors <= as_double(2 * m.d_model + 4 * m.head_dim + m.attention.mla.q_lora_rank +
                                 m.attention.mla.kv_lora_rank + m.qkv_biases()));
      const double experts = m.moe(layer) ? as_double(m.experts * m.expert_parameters()) : 0;
      CHECK(matrices_of(m, {}, Group::expert, layer) == experts);
    }
    CHECK(muon_matrices(m, {}, Group::embedding, 0).empty());
    CHECK(muon_matrices(m, {}, Group::head, 0).empty());
  }
}

TEST_CASE("five Newton-Schulz iterations are 5 (4 m m n + 2 m m m) FLOPs a matrix") {
  for (const double count : {1.0, 12.0, 0.25}) {
    double flops = 0;
    for (const WorkItem& item : newton_schulz({512, 2048, count})) flops += item.flops(0);
    CHECK(flops == Approx(count * products(512, 2048)));
  }
  CHECK(newton_schulz({512, 2048, 3})[0].dims[2] == 15);
}

TEST_CASE("Lion keeps one moment, and passes as many bytes fewer through memory") {
  const ModelSpec m = small_model(2);
  const Layout layout{1, 4, 1, 1, Recompute::none, {}};
  const Program adamw = program(m, layout, with(OptimizerKind::adamw)),
                lion = program(m, layout, with(OptimizerKind::lionw));
  CHECK(resident(adamw, "masters") == resident(lion, "masters"));
  CHECK(resident(lion, "moments") == resident(adamw, "moments") / 2);
  const auto updated = [](const Program& p) { return ops_of(p, Action::optimizer).front()->work.front().rows.fixed; };
  CHECK(updated(lion) ==
        Approx(updated(adamw) * (8 + 8 + 4) / (8 + 16 + 4)));  // master and moments in and out, gradient
}

TEST_CASE("a step with Muon: an owner's share of the products, matrices gathered once, one momentum") {
  const ModelSpec m = small_model(2);  // a layer has q, k, v, output, router, and 16 experts' gate, up and down
  for (const std::int64_t shard : {1, 4}) {
    const Layout layout{1, shard, 1, 1, Recompute::none, {}};
    const Program adamw = program(m, layout, with(OptimizerKind::adamw)),
                  muon = program(m, layout, with(OptimizerKind::muon));
    double flops = 0, gathered = 0, updated = 0;
    for (const Op* op : ops_of(muon, Action::orthogonalize)) {
      if (op->collective_kind()) gathered += op->collective.bytes.fixed;
      for (const WorkItem& item : op->work)
        if (item.kernel == Kernel::grouped_gemm) flops += item.flops(0);
    }
    const double layer = 2 * products(512, 512) + 2 * products(128, 512) + products(16, 512),
                 experts = 16 * 3 * products(512, 1024);
    CHECK(flops == Approx(2 * (layer + experts) / as_double(shard)));
    double elements = 0;
    for (const Group group : {Group::dense, Group::expert}) elements += 2 * matrices_of(m, layout, group, 0);
    CHECK(gathered == (shard == 1 ? 0 : 2 * elements));
    CHECK(resident(adamw, "masters") == resident(muon, "masters"));
    CHECK(resident(adamw, "moments") - resident(muon, "moments") == Approx(4 * elements / as_double(shard)));
    for (const WorkItem& item : ops_of(muon, Action::optimizer).front()->work) updated += item.rows.fixed;
    CHECK(updated == Approx(ops_of(adamw, Action::optimizer).front()->work.front().rows.fixed));
  }
  // More ranks than matrices: the owners have one each.
  const Layout wide{1, 64, 1, 1, Recompute::none, {}};
  double dense = 0;
  const Program muon = program(m, wide, with(OptimizerKind::muon));
  for (const Op* op : ops_of(muon, Action::orthogonalize))
    if (op->name == "muon.dense")
      for (const WorkItem& item : op->work) dense += item.flops(0);
  CHECK(dense == Approx((2 * products(512, 512) + 2 * products(128, 512) + products(16, 512)) / 5));
}

TEST_CASE("a rank that orthogonalises every matrix does the products of all owners") {
  const ModelSpec m = small_model(2);
  const Layout layout{1, 4, 1, 1, Recompute::none, {}};
  ProgramOptions everywhere = with(OptimizerKind::muon);
  everywhere.orthogonalize_everywhere = true;
  const auto flops = [&](const ProgramOptions& options) {
    double sum = 0;
    const Program p = program(m, layout, options);
    for (const Op* op : ops_of(p, Action::orthogonalize))
      for (const WorkItem& item : op->work)
        if (item.kernel == Kernel::grouped_gemm) sum += item.flops(0);
    return sum;
  };
  CHECK(flops(everywhere) == Approx(4 * flops(with(OptimizerKind::muon))));
  CHECK(optimizer_error("{name: muon, orthogonalize: everywhere}").empty());
  CHECK_THAT(optimizer_error("{name: adamw, orthogonalize: owner}"), Catch::Contains("found with adamw, needs muon"));
}

TEST_CASE("an offloaded share of the states leaves the GPU, which sends gradients and gets weights") {
  const ModelSpec m = small_model(2);
  const Layout layout{2, 4, 2, 1, Recompute::none, {}};
  const Program all = program(m, layout, with(OptimizerKind::adamw)),
                none = program(m, layout, with(OptimizerKind::adamw, 1)),
                part = program(m, layout, with(OptimizerKind::adamw, 0.25));
  const double states = resident(all, "masters") / 4;
  CHECK(resident(none, "masters") + resident(none, "moments") == 0);
  CHECK(resident(part, "moments") == Approx(0.75 * 8 * states));
  CHECK(resident(part, "weight shards") == Approx(0.25 * 2 * states));
  CHECK(resident(all, "weight shards") == 0);
  CHECK(ops_of(all, Action::offload).empty());
  const auto offload = ops_of(part, Action::offload);
  REQUIRE(offload.size() == 3);
  CHECK(offload[0]->work.front() == make_item(Kernel::host_copy, Pass::forward, Precision::fp32, {states, 0}));
  CHECK(offload[1]->work.front().bytes(0) == Approx(28 * 0.25 * states));
  CHECK(offload[2]->work.front().bytes(0) == Approx(2 * 0.25 * states));
  CHECK(ops_of(part, Action::optimizer).front()->work.front().rows.fixed == Approx(0.75 * states));
}

TEST_CASE("run files say the optimizer, and read back; what cannot be is refused") {
  CHECK(optimizer_error("{name: muon, lr: 0.02}").empty());
  CHECK(optimizer_error("{name: adamw, offload_fraction: 0.5}").empty());
  CHECK_THAT(optimizer_error("{name: lion}"), Catch::Contains("lion"));
  CHECK_THAT(optimizer_error("{offload_fraction: 1.5}"), Catch::Contains("offload_fraction"));
  CHECK_THAT(optimizer_error("{name: muon, offload_fraction: 0.5}"), Catch::Contains("with muon, allowed is 0"));
}
