// What a plan is made from: what a study names is read, scaled or refused before the search.
#include <catch2/catch.hpp>

#include "configs/files/profile.hpp"
#include "configs/files/study_keys.hpp"
#include "planner/search/scaled_cost.hpp"
#include "tests/fixtures/small_plan.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("names that a study gets wrong are refused before times are made") {
  for (const auto& [key, value] : {std::pair{"failures", "no-such-cluster"}, {"routing", "no-such-loads"}})
    CHECK_THROWS_WITH(inputs_of(set_study_key(kSmallStudy + "profiles: [no-such-profile]\n", key, value, "s")),
                      Catch::Contains(value));
}

TEST_CASE("silent errors rarer than runs can be simulated with are refused before the search") {
  const TempDirectory folder;
  std::string text = read_bytes("configs/faults/rates/llama3.yaml");
  const std::size_t at = text.find("node_days: 110592");
  REQUIRE(at != std::string::npos);
  write_bytes(folder / "rare.yaml", text.insert(at + 17, "00"));  // 500 years on these two nodes
  const auto silent = [](const std::string& rate) {
    return inputs_of(kSmallStudy + "silent_errors: {rate: " + rate + ", verify: 3s, source: 'assumed: a test'}\n");
  };
  CHECK(silent("llama3").silent_errors);
  CHECK_THROWS_WITH(silent((folder / "rare.yaml").string()), Catch::Contains("70 years"));
}

TEST_CASE("checkpoint times follow from bytes and bandwidths") {
  PlanInputs inputs = read_plan_inputs(read_study("dbrx-3072-h100"), true);
  Layout layout;
  layout.replicate = 48, layout.shard = 64;
  const CheckpointTimes t = checkpoint_times(inputs, layout);
  const double total = 12.0 * static_cast<double>(inputs.study.model.total_parameters());
  CHECK(t.total_bytes == total);
  CHECK(t.blocking_s.value == Approx(total / 64 / 25e9));
  CHECK(t.persist_s.value == Approx(total / 32e9));  // 8 nodes at 4 GB/s, less than the file system's 80
  const double wire_s = total / 64 / 50e9;  // each rank's shard over its own NIC, behind what NCCL reaches of it
  CHECK(t.reload_s.value - total / 64e9 > wire_s);
  CHECK(t.reload_s.value - total / 64e9 < 2.5 * wire_s);  // in training NCCL reaches half of a NIC over 48 nodes
  CHECK_THAT(t.reload_s.evidence.source, Catch::Contains("broadcasts its shards to 47 others"));
  CHECK(t.persist_s.evidence.kind == Evidence::assumed);
  inputs.study.scale.storage_bandwidth = 2;
  CHECK(checkpoint_times(inputs, layout).persist_s.value == Approx(total / 64e9));
  layout.replicate = 1;  // nobody to send it to
  CHECK(checkpoint_times(inputs, layout).reload_s.value == Approx(total / 128e9));
}

TEST_CASE("a save slows training by its share of the NICs: exposed u / (1 - u)") {
  PlanInputs inputs = read_plan_inputs(read_study("dbrx-3072-h100"), true);
  Layout layout;
  layout.replicate = 48, layout.shard = 64;
  CheckpointTimes t = checkpoint_times(inputs, layout);
  CHECK(t.nic_share == Approx(4e9 / (8 * 50e9)));  // a node writes 4 GB/s over eight NICs of 400 Gb/s
  Simulated step;
  step.step_s = 10;
  step.totals = {{.lane = Lane::compute, .busy_s = 7}};  // the other 3 s it waits for communication
  for (const double u : {0.01, 0.25, 0.5}) {
    t.nic_share = u;
    const SourcedNumber slowdown = persist_slowdown(inputs, t, step);
    CHECK(slowdown.value == Approx(0.3 * u / (1 - u)));
    // 7 s compute as before, 3 s wait for NICs that have 1 - u left.
    CHECK(slowdown.value == Approx((7 + 3 / (1 - u)) / 10 - 1));
    CHECK(slowdown.evidence.kind == Evidence::derived);
    CHECK_THAT(slowdown.evidence.source, Catch::Contains("30 % of the step waits for communication"));
  }
  t.nic_share = 1;  // training still gets through
  CHECK(persist_slowdown(inputs, t, step).value == 0.9);
  t.nic_share = 0;
  CHECK(persist_slowdown(inputs, t, step).value == 0);
  t.nic_share = 0.5;
  step.totals[0].busy_s = 10;  // nothing is exposed
  CHECK(persist_slowdown(inputs, t, step).value == 0);
  // It is a part of what a save costs (O11).
  CadenceInput in;
  in.blocking_s.value = 2, in.persist_s.value = 60, in.slowdown.value = 0.1;
  CHECK(in.save_s() == Approx(8));
}

TEST_CASE("copies to host memory go at half of what a profile measured of one GPU, unless the study says") {
  const TempDirectory folder;
  Profile profile;
  profile.fingerprint = {{"device", "H100"}};
  for (const auto& [bytes, seconds] :
       {std::pair{std::int64_t{1} << 20, 1e-3}, std::pair{std::int64_t{256} << 20, 5e-3}}) {
    Measurement m;
    m.kernel = "device_to_host", m.pass = "", m.shape = {{"bytes", bytes}}, m.clock = "device", m.samples = {seconds};
    m.evidence = {Evidence::measured, "test"};
    profile.measurements.push_back(m);
  }
  Measurement product;  // what a profile of copies alone could not be calibrated on
  product.kernel = "gemm", product.pass = "forward", product.dtype = "bf16", product.clock = "device";
  product.shape = {{"rows", 4096}, {"n", 4096}, {"k", 4096}}, product.samples = {3e-4};
  product.evidence = {Evidence::measured, "test"};
  profile.measurements.push_back(product);
  write_profile(profile, folder / "copies.json");
  StudySpec study = read_study("dbrx-3072-h100");
  study.profiles.push_back((folder / "copies.json").string());
  const CheckpointSpec measured = read_plan_inputs(study, true).study.checkpoint;
  CHECK(measured.copy_Bps == Approx(0.5 * (256 << 20) / 5e-3));  // the larger copy
  CHECK(measured.evidence.kind == Evidence::assumed);            // the half
  CHECK_THAT(measured.evidence.source, Catch::Contains("half of the 53.7 GB/s"));
  study.checkpoint.copy_given = true;
  CHECK(read_plan_inputs(study, true).study.checkpoint.copy_Bps == 25e9);
}

TEST_CASE("the clock scales what arithmetic limits, and nothing else") {
  const PlanInputs inputs = inputs_of(kSmallStudy);
  ScaleSpec half;
  half.clock = 0.5;
  const ScaledCost scaled(*inputs.times, half);
  const auto ratio = [&](const WorkItem& item) {
    return scaled.item(item, 0).seconds / inputs.times->item(item, 0).seconds;
  };
  const WorkItem large = make_item(Kernel::gemm, Pass::forward, Precision::bf16, {4096, 0}, {4096, 4096});
  const WorkItem few_rows = make_item(Kernel::gemm, Pass::forward, Precision::bf16, {16, 0}, {4096, 4096});
  const WorkItem norm = make_item(Kernel::rmsnorm, Pass::forward, Precision::bf16, {4096, 0}, {4096});
  CHECK(ratio(large) == Approx(2));
  CHECK(ratio(few_rows) == 1);  // 16 FLOP a byte: the weights have to come by
  CHECK(ratio(norm) == 1);
  Op op;
  op.work = {large, norm};
  const double product_s = inputs.times->item(large, 0).seconds, norm_s = inputs.times->item(norm, 0).seconds;
  CHECK(scaled.segment(op, 0).seconds ==
        Approx(inputs.times->segment(op, 0).seconds * (2 * product_s + norm_s) / (product_s + norm_s)).epsilon(0.05));
  CHECK(scaled.collective(OpKind::all_gather, 1e9, 8, 1).latency_s ==
        inputs.times->collective(OpKind::all_gather, 1e9, 8, 1).latency_s);
}

TEST_CASE("a study that no schedule can be made for is refused before the search") {
  const TempDirectory folder;
  const PlanInputs good = inputs_of(kSmallStudy);
  check_schedule(good);
  int looked = 0;
  const auto refused = [&](const PlanInputs& inputs, const char* why) {
    CHECK_THROWS_WITH(make_plan(inputs, [&](const auto&...) { ++looked; }), Catch::Contains(why));
    CHECK(looked == 0);
  };
  PlanInputs bad = good;
  bad.study.cluster.storage_write_Bps = 0;
  refused(bad, "describes no storage");
  bad = good;
  bad.failures.recovery.detect_s.value = 1e10;
  refused(bad, "70 years");
  make_plan(good, [&](const auto&...) { ++looked; });
  CHECK(looked > 0);  // of a study that is planned, each part says where it is
}

TEST_CASE("balanced stands alone among the loads") {
  CHECK(inputs_of(set_study_key(kSmallStudy, "routing", "balanced", "s")).scenarios.empty());
  CHECK(inputs_of(set_study_key(kSmallStudy, "routing", "olmoe", "s")).scenarios.size() == 6);
  CHECK_THROWS_WITH(inputs_of(set_study_key(kSmallStudy, "routing", "[balanced, olmoe-c4]", "s")),
                    Catch::Contains("balanced alone"));
}

TEST_CASE("search.precision: each format that stack and GPU have is searched, and the best one planned") {
  const auto inputs = [](const std::string& precision) {
    return inputs_of(set_study_key(kSmallStudy, "search.precision", precision, "s"));
  };
  const PlanInputs all = inputs("auto");
  REQUIRE(all.formats.size() == 3);  // torchtitan computes in fp8 and mxfp8, too
  CHECK(all.formats[0].precision == "amp_bf16");
  CHECK(all.formats[0].step.step_s > all.formats[1].step.step_s);
  CHECK_THAT(all.formats[2].unplanned, Catch::Contains("no mxfp8 products on H100"));
  CHECK(all.study.precision.word == "amp_fp8");
  CHECK_THAT(plan_scope(all), Catch::Contains("in fp8, bf16"));
  const Plan plan = make_plan(all);
  CHECK_THAT(plan_yaml(all, plan), Catch::Contains("precision: amp_fp8"));
  CHECK(plan.step.step_s <= all.formats[1].step.step_s * 1.05);
  const PlanInputs one = inputs("[amp_bf16]");
  CHECK(one.study.precision.word == "amp_bf16");
  CHECK(one.formats.size() == 1);
  CHECK_THAT(plan_scope(inputs_of(kSmallStudy)),
             Catch::Contains("Not searched: ") && Catch::Contains("fp8, mxfp8 (search"));
  CHECK_THROWS_WITH(inputs("amp_fp9"), Catch::Contains("search.precision") && Catch::Contains("amp_fp9"));
  CHECK_THROWS_WITH(inputs("[amp_nvfp4]"), Catch::Contains("no nvfp4 products on H100"));
}
