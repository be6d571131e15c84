// Adapters beside frozen weights: what is trained does not depend on the layout, the base stays as it was bit by bit,
// a run goes on where it ended, and the step program says what is done and held. tests/python/lora_parity_test.py
// compares with PyTorch and PEFT.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "tests/fixtures/issued_ops.hpp"
#include "tests/fixtures/replayed_memory.hpp"
#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "trainer/safetensors/adapter.hpp"
#include "trainer/safetensors/merge_adapter.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;
using Catch::Contains;

namespace {

/// Weights of short_run()'s model after ten steps.
fs::path base_weights() {
  static const fs::path folder = [] {
    RunSpec run = short_run();
    run.name = "base", run.save = false, run.export_path = (scratch("base-weights")).string();
    trained(run);
    return scratch("base-weights");
  }();
  return folder;
}

RunSpec adapted(RunSpec run) {
  run.lora = LoraSpec{4, 16, {"q_proj", "v_proj", "o_proj"}};
  run.load_path = base_weights().string();
  run.optimizer.lr = 0.01;
  return run;
}

/// Every weight of the base, as the trainer keeps it.
State base_state() {
  RunSpec run = short_run();
  run.name = "still", run.load_path = base_weights().string(), run.optimizer.lr = 0, run.optimizer.weight_decay = 0;
  run.steps = 1;
  return state_of(latest_checkpoint(trained(run)));
}

bool of_adapter(const std::string& name) { return name.find(".lora.") != std::string::npos; }

void check_same(const RunSpec& expected, const RunSpec& found) {
  INFO(found.layout.name() << ", microbatch " << found.layout.microbatch);
  const auto alone = steps_of(trained(expected)), together = steps_of(trained(found));
  REQUIRE(together.size() == alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(together[i].samples == alone[i].samples);
    CHECK(together[i].loss == Approx(alone[i].loss).epsilon(i == 0 ? 1e-6 : 1e-5));
    CHECK(together[i].grad_norm == Approx(alone[i].grad_norm).epsilon(i == 0 ? 1e-5 : 2e-3));
  }
}

std::vector<RunSpec> layouts() {
  const RunSpec run = adapted(short_run());
  std::vector<RunSpec> out = sharded_runs(run);
  for (const RunSpec& each : further_layouts(run))
    if (each.layout.optimizer_shard == 1) out.push_back(each);
  const auto blocks = block_runs(run), contexts = context_runs(run);
  out.insert(out.end(), {blocks[0], blocks[2], blocks[3], contexts[1], contexts[3]});
  return out;
}

}  // namespace

TEST_CASE("an adapter is trained alone: the first loss is the base's, and its weights stay, bit by bit") {
  const fs::path folder = trained(adapted(short_run()));
  RunSpec full = adapted(short_run());
  full.lora.reset();
  RunSpec still = adapted(short_run());
  still.optimizer.lr = 0;
  const auto steps = steps_of(folder), of_full = steps_of(trained(full)), of_base = steps_of(trained(still));
  CHECK(steps.front().loss == of_full.front().loss);
  CHECK(steps.front().loss == of_base.front().loss);
  CHECK(steps.back().loss < of_base.back().loss - 0.01);  // on the same samples

  const State base = base_state(), after = state_of(latest_checkpoint(folder));
  std::size_t weights = 0, factors = 0;
  for (const auto& [name, bits] : after) {
    if (of_adapter(name)) {
      ++factors;
      continue;
    }
    INFO(name);
    ++weights;
    CHECK_FALSE(name.starts_with("state."));
    CHECK((base.at(name) == bits));
  }
  CHECK(weights == base.size() / 4);  // beside exp_avg, exp_avg_sq and step
  CHECK(factors == 4 * 3 * 3 * 2);    // three modules of three layers
}

TEST_CASE("every layout trains the adapter that one rank trains") {
  for (const RunSpec& run : some_of(layouts())) check_same(adapted(short_run()), run);
}

TEST_CASE("eight steps of an adapter and four more are twelve, bit for bit, and go on on another layout") {
  const RunSpec run = adapted(saved_run(12));
  const fs::path straight = trained(run), folder = scratch("adapter-goes-on");
  REQUIRE(train(adapted(saved_run(8)), folder).status == 0);
  const fs::path other = scratch("adapter-elsewhere");
  fs::copy(folder, other, fs::copy_options::recursive);
  const Ended ended = train(run, folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.said, Contains("continuing after step 8"));
  CHECK(steps_of(folder) == steps_of(straight));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(straight))));

  const Ended elsewhere = train(with_layout(run, 1, 2, 1), other);
  INFO(elsewhere.said);
  REQUIRE(elsewhere.status == 0);
  CHECK_THAT(elsewhere.said, Contains("continuing after step 8"));
  const auto expected = steps_of(straight), found = steps_of(other);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i].loss == Approx(expected[i].loss).epsilon(1e-5));
}

TEST_CASE("a checkpoint of another adapter is refused") {
  const RunSpec run = adapted(saved_run(2));
  const fs::path folder = scratch("other-adapter");
  REQUIRE(train(run, folder).status == 0);
  RunSpec other = run;
  other.lora->alpha = 8, other.steps = 4;
  const Ended ended = train(other, folder);
  CHECK(ended.status == 2);
  CHECK_THAT(ended.said, Contains("the adapter was") && Contains("\"lora_alpha\":8.0"));
  other.lora.reset();
  CHECK_THAT(train(other, folder).said, Contains("the adapter was"));

  // On other weights of the same shape; the checkpoint's are those that its factors were trained beside.
  other = run;
  other.steps = 4, other.export_path = scratch("adapter-of-other-base").string();
  other.load_path = scratch("other-base").string();
  fs::copy(base_weights(), other.load_path, fs::copy_options::recursive);
  const Ended moved = train(other, folder);
  CHECK(moved.status == 2);
  CHECK_THAT(moved.said, Contains("the adapter was") && Contains(run.load_path) && Contains(other.load_path));
  CHECK_FALSE(fs::exists(other.export_path));
}

TEST_CASE("the exported adapter is where the next run begins") {
  RunSpec first = adapted(short_run());
  first.name = "exports", first.export_path = scratch("exported-adapter").string();
  const fs::path folder = trained(first);
  const Adapter adapter = read_adapter(first.export_path);
  CHECK(adapter.spec == *first.lora);
  CHECK(adapter.base == first.load_path);
  CHECK(adapter.modules.size() == 9);
  // Its first factor is the checkpoint's.
  const State state = state_of(latest_checkpoint(folder));
  const auto& a = adapter.modules.at("model.layers.0.self_attn.q_proj").a;
  const auto& bits = state.at("layers.0.attention.qkv.lora.q_proj.A");
  REQUIRE(bits.size() == a.size());
  for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(std::bit_cast<float>(bits[i]) == a[i]);

  // Without a step's change, its loss is that of the merged weights.
  RunSpec next = first;
  next.name = "next", next.load_path = first.export_path, next.optimizer.lr = 0, next.steps = 1;
  next.export_path = scratch("exported-again").string();
  const auto goes_on = steps_of(trained(next));
  RunSpec merged = next;
  merged.name = "merged", merged.load_path = scratch("merged-weights").string(), merged.export_path.clear();
  merge_adapter(first.load_path, first.export_path, merged.load_path);
  CHECK(goes_on[0].loss == Approx(steps_of(trained(merged))[0].loss).epsilon(1e-6));
  RunSpec anew = merged;
  anew.name = "anew", anew.load_path = base_weights().string();
  CHECK(goes_on[0].loss < steps_of(trained(anew))[0].loss - 0.002);
  CHECK(read_adapter(next.export_path).base == first.load_path);
  CHECK(read_adapter(next.export_path).modules.at("model.layers.2.self_attn.o_proj").b ==
        adapter.modules.at("model.layers.2.self_attn.o_proj").b);
}

TEST_CASE("an export names the base that the run began on, whatever its load_path names now", "[.nightly]") {
  RunSpec first = adapted(short_run());
  first.name = "exports", first.export_path = scratch("exported-adapter").string();
  trained(first);
  RunSpec run = adapted(saved_run(2));
  run.load_path = scratch("adapter-to-begin-on").string(), run.export_path = scratch("adapter-of-both-runs").string();
  fs::copy(first.export_path, run.load_path, fs::copy_options::recursive);
  const fs::path folder = scratch("began-on-an-adapter");
  REQUIRE(train(run, folder).status == 0);
  Adapter moved = read_adapter(run.load_path);
  moved.base = scratch("moved-base").string();
  fs::copy(base_weights(), moved.base, fs::copy_options::recursive);
  write_adapter(run.load_path, moved);
  run.steps = 4;
  const Ended ended = train(run, folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.said, Contains("continuing after step 2"));
  CHECK(read_adapter(run.export_path).base == first.load_path);
}

TEST_CASE("what cannot be trained with an adapter is refused by name") {
  const auto said = [](const RunSpec& run) {
    const Ended ended = train(run, scratch("refused-adapter"));
    CHECK(ended.status == 2);
    return ended.said;
  };
  RunSpec run = adapted(short_run());
  run.load_path.clear();
  CHECK_THAT(said(run), Contains("no load_path"));
  run = adapted(short_run());
  run.lora->target_modules = {"Wqkv"};
  CHECK_THAT(said(run), Contains("Wqkv") && Contains("q_proj"));
  run = adapted(with_layout(short_run(), 4, 1, 1));
  run.layout.optimizer_shard = 2;
  CHECK_THAT(said(run), Contains("optimizer_shard_degree") && Contains("peft_config"));
  RunSpec first = adapted(short_run());
  first.name = "exports", first.export_path = scratch("exported-adapter").string();
  trained(first);
  run = adapted(short_run());
  run.load_path = first.export_path, run.lora->rank = 2;
  CHECK_THAT(said(run), Contains("found r 4") && Contains("peft_config"));
  run.lora.reset();
  CHECK_THAT(said(run), Contains("holds an adapter"));
}

TEST_CASE("every rank did what its step program says, and held what it says") {
  std::vector<RunSpec> runs = some_of(layouts());
  runs.insert(runs.begin(), adapted(short_run()));
  for (const auto& [replicate, shard, expert] : {std::array{1, 1, 1}, {2, 2, 2}, {1, 4, 4}}) {
    runs.push_back(with_layout(adapted(short_run()), replicate, shard, expert));
    runs.back().precision = Precision::bf16;
  }
  for (const RunSpec& run : runs) {
    check_issued_ops(run);
    const double step = step_memory_error(run), highest = highest_memory_error(run);
    INFO(run.layout.name() << ", " << to_string(run.precision) << ", recompute " << to_string(run.layout.recompute)
                           << ": step " << 100 * step << " %, highest " << 100 * highest << " %");
    CHECK(std::abs(step) <= 0.02);
    CHECK(std::abs(highest) <= 0.03);
  }
}
