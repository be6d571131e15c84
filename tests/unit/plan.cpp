// Plans: what the trainer, machines and people get from the same result.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/spec/find.hpp"
#include "configs/spec/profile.hpp"
#include "configs/spec/study_keys.hpp"
#include "configs/spec/support/error.hpp"
#include "planner/plan/plan_drift.hpp"
#include "planner/search/scaled_cost.hpp"
#include "reports/build/plan_report.hpp"
#include "reports/build/whatif_report.hpp"
#include "reports/render/text.hpp"
#include "tests/support/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

const std::string kStudy =
    "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\nstack: torchtitan\ntokens: 20B\n"
    "max_seq_len: 2048\nglobal_train_batch_size: 64\nrouting: [olmoe-c4, olmoe-arxiv]\nfailures: llama3\nruns: 50\n"
    "search: {expert_degrees: [1, 8], microbatch: [1, 2], shard_sizes: [8, 16]}\n";

PlanInputs inputs_of(const std::string& text) { return read_plan_inputs(study_from_text(text, "study.yaml"), false); }

Report report_of(const PlanInputs& inputs, const Plan& plan) {
  return plan_report(inputs, plan, plan_details(inputs, plan), plan_json(inputs, plan));
}

}  // namespace

TEST_CASE("plan.yaml is a run file that reads back to the plan") {
  const PlanInputs inputs = inputs_of(kStudy);
  const Plan plan = make_plan(inputs);
  const TempDirectory folder;
  write_bytes(folder / "plan.yaml", plan_yaml(inputs, plan));
  const RunSpec run = read_run(folder / "plan.yaml");
  CHECK(run.layout.world() == 16);
  CHECK(run.layout.shard == plan.layout.shard);
  CHECK(run.layout.placement == plan.layout.placement);
  CHECK(run.steps == inputs.study.steps());
  CHECK(run.save_interval == plan.schedule.cadence.interval_steps);
  CHECK(run.precision == Precision::bf16);
  CHECK(run.model.norm_eps == inputs.study.model.norm_eps);  // to the last bit
  CHECK(run_to_yaml(run) == run_to_yaml(plan_run(inputs, plan)));
  CHECK_THAT(run_to_yaml(run), Catch::Contains("norm_eps: 1e-05\n") && !Catch::Contains("00000000"));
  CHECK(run.model.total_parameters() == inputs.study.model.total_parameters());
}

TEST_CASE("the same GPU with more and faster memory, or a faster network, is never planned slower") {
  const auto fastest_s = [](const std::string& cluster, const std::string& more) {
    std::string text = kStudy + more;
    text.replace(text.find("cluster: hgx-h100"), 17, "cluster: " + cluster);
    const Plan plan = make_plan(inputs_of(text));
    CHECK(plan.step.evidence[static_cast<std::size_t>(Evidence::published)] > 0.99);  // one kind of evidence
    return plan.search.candidates[plan.search.best].result->step_s;
  };
  const double h100 = fastest_s("hgx-h100", "");
  CHECK(fastest_s("hgx-h200", "") <= h100);
  CHECK(fastest_s("hgx-h100", "scale: {network_bandwidth: 2}\n") <= h100);
  CHECK(fastest_s("hgx-h100", "scale: {network_latency: 0.5}\n") <= h100);
}

TEST_CASE("a plan for nodes of two kinds fits the smaller GPU, at the pace of the slower") {
  const TempDirectory folder;
  std::string mixed = read_bytes(find_config("clusters", "hgx-h100"));
  mixed +=
      "other_nodes:\n  - {first: 1, count: 1, gpu: {name: A100-SXM-80GB, memory: 80GB, usable_memory: 64GiB}, "
      "nvswitch: {bandwidth: 300GB/s}, source: 'published: data sheets'}\n";
  write_bytes(folder / "mixed.yaml", mixed);
  const auto on = [&](const std::string& cluster, const std::string& prices) {
    std::string text = kStudy;
    text.replace(text.find("cluster: hgx-h100"), 17, "cluster: " + cluster);
    text.replace(text.find("stack: torchtitan\n"), 18, prices);
    return inputs_of(text);
  };
  const PlanInputs inputs = on((folder / "mixed.yaml").string(), "");
  CHECK(inputs.study.stack == "torchtitan");  // no profile is of both
  CHECK_THAT(plan_assumptions(inputs, Plan{}).at(0) + plan_assumptions(inputs, Plan{}).at(1),
             Catch::Contains("one after the other through one communicator"));
  CHECK(inputs.peak_flops == (989e12 + 312e12) / 2);
  const SearchProblem problem = search_problem(inputs, *inputs.prices);
  CHECK(problem.memory_limit_bytes == 64.0 * (1 << 30));
  const auto fastest_s = [](const SearchProblem& p) {
    const SearchResult found = search_layouts(p);
    CHECK(check_certificate(found).empty());
    CHECK(found.certificate.violations == 0);
    return found.candidates[found.best].result->step_s;
  };
  const auto all_of = [&](std::size_t kind) {
    SearchProblem p = search_problem(inputs, inputs.prices->on(kind));
    p.cluster = p.cluster.all_of(kind);
    return p;
  };
  CHECK(fastest_s(problem) > 1.15 * fastest_s(all_of(0)));
  CHECK(fastest_s(problem) < 1.01 * fastest_s(all_of(1)));
  CHECK_THROWS_WITH(on((folder / "mixed.yaml").string(), "profiles: [tests/data/h100-profile.json]\n"),
                    Catch::Contains("a profile or machine model is of one GPU"));
}

TEST_CASE("a plan mentions slow nodes and maintenance where the study names them") {
  const PlanInputs plain = inputs_of(kStudy);
  const PlanInputs inputs = inputs_of(kStudy + "stragglers: bloom\nmaintenance: {every: 3h, duration: 10m}\n");
  const Plan before = make_plan(plain), plan = make_plan(inputs);
  CHECK(plan_disturbances(plain, before).empty());
  CHECK(plan.step.step_s == before.step.step_s);
  CHECK(plan.runs.distribution.mean_s > before.runs.distribution.mean_s);
  const std::string report = text_report(report_of(inputs, plan));
  CHECK_THAT(report,
             Catch::Contains("Slow nodes as in bloom") && Catch::Contains("Maintenance of 10.0 min every 3.00 h"));
  const auto document = plan_json(inputs, plan);
  CHECK(document["finish"]["disturbances"]["stragglers"]["step_factor"]["value"] == 1.064);
  CHECK(document["finish"]["disturbances"]["maintenance"]["a_run"] == plan.runs.distribution.planned_stops);
}

TEST_CASE("a plan mentions local saves, silent errors and replica loss where the study names them") {
  const PlanInputs inputs = inputs_of(kStudy +
                                      "checkpoint: {local: {every: 5s, survival: 0.8, source: 'assumed: a test'}}\n"
                                      "silent_errors: {rate: llama3, verify: 3s, source: 'assumed: a test'}\n"
                                      "replica_loss: {recover: 10m, stall: 1m, source: 'assumed: a test'}\n");
  const Plan plan = make_plan(inputs);
  const std::string report = text_report(report_of(inputs, plan));
  CHECK_THAT(report,
             Catch::Contains("Local saves to host memory every") && Catch::Contains("Silent errors as in llama3"));
  const auto disturbances = plan_json(inputs, plan)["finish"]["disturbances"];
  CHECK(disturbances["local_checkpoints"]["survival"]["value"] == 0.8);
  CHECK(disturbances["silent_errors"]["verify_s"]["source"] == "a test");
  CHECK(plan.schedule.cadence.interval_steps % plan.schedule.input.local.interval_steps == 0);
  CHECK(plan.runs.distribution.bucket_mean_s[static_cast<std::size_t>(Bucket::custom_events)] > 0);
  if (plan.layout.replicate > 1) {
    CHECK_THAT(report, Catch::Contains("A failure stops one of"));
    CHECK(disturbances["replica_loss"]["replicas"] == plan.layout.replicate);
  } else {
    CHECK_THAT(report, Catch::Contains("replica_loss does nothing here"));
    CHECK_FALSE(disturbances.contains("replica_loss"));
  }
}

TEST_CASE("local saves no more frequent than saves are left out, and the plan says so") {
  const auto with_local = [](double every_s) {
    return inputs_of(
        kStudy +
        fmt::format("checkpoint: {{local: {{every: {}s, survival: 0.8, source: 'assumed: a test'}}}}\n", every_s));
  };
  const CadencePlan plain = make_plan(inputs_of(kStudy)).schedule.cadence;
  for (double every_s : {1.01 * plain.interval_s.value, 300 * 86400.0}) {
    const PlanInputs inputs = with_local(every_s);
    const Plan plan = make_plan(inputs);
    CHECK(plan.schedule.input.local.interval_steps == 0);
    CHECK(plan.schedule.cadence.interval_steps == plain.interval_steps);
    CHECK_THAT(plan_disturbances(inputs, plan).front(), Catch::Contains("does nothing here and is left out"));
    CHECK(plan_json(inputs, plan)["finish"]["disturbances"]["local_checkpoints"]["left_out"] == true);
  }
  const RunSchedule halved = make_plan(with_local(plain.interval_s.value / 2)).schedule;
  CHECK(halved.input.local.interval_steps > 0);
  CHECK(halved.cadence.interval_steps <= plain.interval_steps);
}

TEST_CASE("names that a study gets wrong are refused before prices are made") {
  for (const auto& [key, value] : {std::pair{"failures", "no-such-cluster"}, {"routing", "no-such-loads"}})
    CHECK_THROWS_WITH(inputs_of(set_study_key(kStudy + "profiles: [no-such-profile]\n", key, value, "s")),
                      Catch::Contains(value));
}

TEST_CASE("silent errors rarer than runs can be simulated with are refused before the search") {
  const TempDirectory folder;
  std::string text = read_bytes("configs/faults/rates/llama3.yaml");
  const std::size_t at = text.find("node_days: 110592");
  REQUIRE(at != std::string::npos);
  write_bytes(folder / "rare.yaml", text.insert(at + 17, "00"));  // 500 years on these two nodes
  const auto silent = [](const std::string& rate) {
    return inputs_of(kStudy + "silent_errors: {rate: " + rate + ", verify: 3s, source: 'assumed: a test'}\n");
  };
  CHECK(silent("llama3").silent_errors);
  CHECK_THROWS_WITH(silent((folder / "rare.yaml").string()), Catch::Contains("70 years"));
}

TEST_CASE("the step with a slow node is simulated where its file gives how fast the node computes") {
  const TempDirectory folder;
  const auto factor_at = [&](double compute) {
    std::string text = read_bytes("configs/faults/rates/bloom.yaml");
    const std::size_t at = text.find("  step_factor:\n    value: 1.064");
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string("  step_factor:\n    value: 1.064").size(),
                 fmt::format("  node_compute:\n    value: {}", compute));
    write_bytes(folder / "slow.yaml", text);
    const PlanInputs inputs = inputs_of(kStudy + "stragglers: " + (folder / "slow.yaml").string() + "\n");
    return make_plan(inputs).schedule.input.stragglers->step_factor.value;
  };
  CHECK(factor_at(1) == Approx(1).margin(1e-9));
  const double half = factor_at(0.5);
  CHECK(half > 1.15);  // of a step whose host is as slow as before
  CHECK(half <= 2 + 1e-9);
}

TEST_CASE("placed experts reach the run file where the expert degree is fixed") {
  const PlanInputs inputs = inputs_of(set_study_key(kStudy, "search.expert_degrees", "8", "s"));
  const Plan plan = make_plan(inputs);
  REQUIRE_FALSE(plan.layout.placement.empty());
  const TempDirectory folder;
  write_bytes(folder / "plan.yaml", plan_yaml(inputs, plan));
  CHECK(read_run(folder / "plan.yaml").layout.placement == plan.layout.placement);
  CHECK(plan.memory.process.high <= plan.memory_limit_bytes);
  CHECK(plan.memory.live.peak() < plan.memory.allocated.bytes);
  CHECK(plan.memory.allocated.bytes < plan.memory.reserved.bytes);
  CHECK(plan.memory.reserved.bytes < plan.memory.process.bytes);
}

TEST_CASE("nobody places experts by loads that were not recorded, and imbalance is still scaled") {
  const std::string text =
      set_study_key(set_study_key(kStudy, "routing", "trained", "s"), "search.expert_degrees", "[8]", "s");
  const Plan plan = make_plan(inputs_of(text)),
             even = make_plan(inputs_of(set_study_key(text, "scale.imbalance", "0", "s")));
  CHECK(plan.placements.empty());
  CHECK(plan.layout.placement.empty());
  CHECK(plan.placement_note.find("Without recorded loads") != std::string::npos);
  CHECK(plan.imbalance > even.imbalance);
  CHECK(plan.imbalance_p99 > plan.imbalance);
}

TEST_CASE("copies and drifting loads: what a study asks for is in the plan, what nobody knows is refused") {
  const std::string placed = set_study_keys(kStudy,
                                            {{"routing", "[olmoe]"},
                                             {"stack", "windtunnel-train"},
                                             {"search.shard_sizes", "[16]"},
                                             {"search.expert_degrees", "[16]"},
                                             {"search.expert_copies", "[1]"},
                                             {"search.microbatch", "[1]"},
                                             {"search.context_parallel_degree", "1"},
                                             {"search.recompute", "none"},
                                             {"drift", "{loads: [olmoe-c4, olmoe-github, olmoe-github], every: 500}"}},
                                            "s");
  const PlanInputs inputs = inputs_of(placed);
  const Plan plan = make_plan(inputs);
  CHECK(plan.layout.slots(inputs.study.model) == 64 + 16);
  CHECK_THAT(plan.placement_note, Catch::Contains("Each rank has one slot for copies of busy experts"));
  REQUIRE(plan.replacement);
  CHECK(plan.replacement->windows == 2);
  CHECK(plan.replacement->options.size() == 3);  // never, each window, each second
  CHECK_THAT(plan.drift_note, Catch::Contains("2 windows of 500 steps"));
  const nlohmann::json document = plan_json(inputs, plan);
  CHECK(document["drift"]["options"].size() == 3);
  CHECK_THAT(text_report(report_of(inputs, plan)), Catch::Contains("Experts placed anew while loads drift"));

  // All experts of all layers from one rank to the next: masters and two moments at NVLink's or the adapter's rate.
  const ScaledCost cost(*inputs.prices, inputs.study.scale);
  const SearchProblem problem = search_problem(inputs, cost);
  Layout layout;
  layout.shard = layout.expert = 2, layout.replicate = 8;
  Placement turned(16);
  for (auto& slots : turned)
    for (std::int64_t e = 0; e < 64; ++e) slots.push_back((e + 32) % 64);
  const double bytes = 16 * 32 * 12 * static_cast<double>(problem.model.expert_parameters());
  CHECK(move_seconds(problem, layout, {}, turned) == Approx(bytes / problem.cluster.nvswitch_Bps));
  layout.shard = layout.expert = 16, layout.replicate = 1;
  CHECK(move_seconds(problem, layout, {}, turned) == Approx(bytes / 8 / problem.cluster.nic_per_gpu_Bps()));

  CHECK_THROWS_WITH(make_plan(inputs_of(set_study_key(placed, "routing", "[trained]", "s"))),
                    Catch::Contains("search.expert_copies: found 1, and no recorded loads"));
  CHECK_THROWS_WITH(make_plan(inputs_of(set_study_key(placed, "stack", "torchtitan", "s"))),
                    Catch::Contains("expert_copies 1, which its trainer does not run"));
}

TEST_CASE("a study's microbatch may leave a smaller last one") {
  const std::string uneven = set_study_keys(kStudy,
                                            {{"global_train_batch_size", "48"},
                                             {"search.shard_sizes", "[16]"},
                                             {"search.context_parallel_degree", "1"},
                                             {"search.recompute", "none"},
                                             {"search.expert_copies", "0"},
                                             {"stack", "windtunnel-train"}},
                                            "s");
  const PlanInputs inputs = inputs_of(set_study_key(uneven, "search.microbatch", "[2]", "s"));
  const Plan plan = make_plan(inputs),
             one = make_plan(inputs_of(set_study_key(uneven, "search.microbatch", "[1]", "s")));
  CHECK(plan.layout.microbatch == 2);
  CHECK(plan.step.step_s < one.step.step_s);  // 2 + 1 gathers weights twice, 1 + 1 + 1 three times
  CHECK(plan.memory.live.peak() > one.memory.live.peak());
  CHECK_THAT(text_report(report_of(inputs, plan)), Catch::Contains("2 sequences, 2 a step, the last of 1"));
  const TempDirectory folder;
  write_bytes(folder / "plan.yaml", plan_yaml(inputs, plan));
  CHECK(read_run(folder / "plan.yaml").microbatches() == 2);
}

TEST_CASE("DBRX state on a rank is 16 bytes a parameter over the shard size") {
  const StudySpec s = read_study("dbrx-3072-h100");
  Layout layout;
  layout.replicate = 24, layout.shard = 128, layout.expert = 8;
  const ProgramSet set = build_program_set(s.model, layout, {s.seq, 1, Precision::bf16, false});
  double state = 0;
  for (const Buffer& buffer : set.programs[0].resident)
    if (buffer.name == "masters" || buffer.name == "moments" || buffer.name == "gradient shards")
      state += buffer.bytes.fixed;
  CHECK(state == Approx(16.0 * static_cast<double>(s.model.total_parameters()) / 128).epsilon(1e-6));
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

TEST_CASE("a plan names what its computation rests on, and on how many measurements") {
  const PlanInputs inputs = inputs_of(kStudy);
  const Plan plan = make_plan(inputs);
  const std::vector<PricedClass>& sources = plan.priced_by;
  double sum = 0;
  for (const PricedClass& s : sources) sum += s.share;
  CHECK(sum == Approx(1));
  const auto grouped =
      std::find_if(sources.begin(), sources.end(), [](auto& s) { return s.name == "grouped_gemm/forward"; });
  REQUIRE(grouped != sources.end());
  CHECK(grouped->points > 1000);  // products are published by shape
  CHECK(grouped->source == "published times on processors as those of H100-SXM, as torchtitan uses them");
  CHECK(plan.step.evidence[static_cast<std::size_t>(Evidence::published)] > 0.5);
  CHECK(plan.step.evidence[static_cast<std::size_t>(Evidence::derived)] < 1e-9);
  CHECK(evidence_sentence({0, 0.95, 0, 0.05}) ==
        "Step time rests on 0 % measured, 95 % published (directly or by derivation), 5 % assumed");
  const std::string yaml = plan_yaml(inputs, plan);
  CHECK_THAT(yaml, !Catch::Contains("as it is") && Catch::Contains("one rank per GPU"));
  const auto assumptions = plan_assumptions(inputs, plan);
  CHECK(std::any_of(assumptions.begin(), assumptions.end(),
                    [](auto& a) { return a.find("saves are asynchronous") != a.npos; }));
  CHECK(std::any_of(assumptions.begin(), assumptions.end(),
                    [](auto& a) { return a.find("one communicator") != a.npos; }));  // torchtitan's FSDP2
}

TEST_CASE("the DBRX plan is proved, fits, and its MFU is a share of the peak") {
  const PlanInputs inputs = read_plan_inputs(read_study("dbrx-3072-h100"), false);
  const Plan plan = make_plan(inputs);
  CHECK(plan.search.certificate.proved);
  CHECK(check_certificate(plan.search).empty());
  CHECK(plan.memory.process.high <= plan.memory_limit_bytes);
  CHECK(plan.step.mfu > 0.3);  // published: above 40 %; the interval of the prices is a quarter either way
  CHECK(plan.step.mfu < 0.6);
  CHECK(plan.step.mfu * 989e12 == Approx(plan.step.tokens_per_s_per_gpu * inputs.study.model.flops_per_token(4096)));
  CHECK(plan_assumptions(inputs, plan).front().find("Batch: ") == 0);  // the study's own come first
  CHECK(plan.cost.days.p05 < plan.runs.distribution.p50_s / 86400);    // the step is uncertain, too
  CHECK(plan.cost.days.p95 > plan.runs.distribution.p95_s / 86400);
}

TEST_CASE("the fastest layouts are listed with the chosen one, wherever it is") {
  const PlanInputs inputs = inputs_of(set_study_key(kStudy, "search.tie", "1", "s"));
  const Plan plan = make_plan(inputs);
  REQUIRE(plan.search.chosen != plan.search.best);
  const Table table = candidate_table(inputs, plan, 1);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].back().text.empty());
  CHECK(table.rows[1].back().text == "chosen");
  CHECK(candidate_table(inputs, plan, 1000).rows.size() < 1000);
  CHECK_THAT(
      table.note,
      Catch::Contains("GiB a process. A layout takes more than the column says with a probability of 10 %. MFU: "));
  CHECK_THAT(plan_range(inputs),
             Catch::Contains("the 5 % to the 95 % quantile of 50 simulated runs, each with a step drawn"));
}

TEST_CASE("plan, document and report say the same, twice") {
  const PlanInputs inputs = inputs_of(kStudy);
  const Plan first = make_plan(inputs), second = make_plan(inputs);
  const nlohmann::json document = plan_json(inputs, first);
  CHECK(document == plan_json(inputs, second));
  CHECK(document["certificate"]["enumerated"] == first.search.certificate.enumerated);
  const Report report = report_of(inputs, first);
  check(report);
  CHECK(report.answer == document["answer"]);
  CHECK(report.payload == document);
  const std::string text = text_report(report);
  for (const char* said : {"  Overlap  ", "  Routing  ", "  Prices ", "assumed:", "Would another layout be better?"})
    CHECK(text.find(said) != std::string::npos);
}

TEST_CASE("all files of a plan are written") {
  const PlanInputs inputs = inputs_of(kStudy);
  const TempDirectory folder;
  const Plan plan = make_plan(inputs);
  const auto files = write_plan(inputs, plan, plan_details(inputs, plan), plan_json(inputs, plan), folder / "plan");
  CHECK(files.size() == 6);
  for (const auto& file : files) CHECK(std::filesystem::file_size(file) > 100);
  CHECK(read_bytes(folder / "plan/study.yaml") == study_yaml(inputs.study));
}

TEST_CASE("what-if plans each combination of values") {
  const WhatIf r =
      what_if(kStudy, "s", {parse_assignment("search.expert_degrees=[1, 8]", false)},
              {parse_assignment("scale.compute_rate=0.5,1", true), parse_assignment("scale.mtbf=1,2", true)}, false);
  REQUIRE(r.rows.size() == 4);
  CHECK(r.rows[1].values == std::vector<std::string>{"0.5", "2"});
  CHECK(r.rows[0].plan->step.step_s > 1.1 * r.rows[2].plan->step.step_s);
  CHECK(r.rows[0].plan->step.step_s == r.rows[1].plan->step.step_s);
  CHECK(r.rows[0].plan->schedule.cadence.goodput.value < r.rows[1].plan->schedule.cadence.goodput.value);
  const Table table = what_if_table(r);
  CHECK(table.rows.size() == 4);
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK(what_if_json(r)["rows"].size() == 4);
}

TEST_CASE("what-if says of each row how sure it is, on whose times it rests and what its MFU is") {
  const WhatIf r = what_if(kStudy, "s", {parse_assignment("search.expert_degrees=[1]", false)},
                           {parse_assignment("cluster=hgx-h100,hgx-b200", true)}, false);
  const Table table = what_if_table(r);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(
        std::find_if(table.columns.begin(), table.columns.end(), [&](const Column& c) { return c.name == name; }) -
        table.columns.begin());
  };
  REQUIRE(column("80 % interval") < table.columns.size());
  CHECK_THAT(table.rows[0][column("80 % interval")].text, Catch::Contains(" to "));
  CHECK(table.rows[0][column("extrapolated")].text == "0");  // products are published by shape
  CHECK(*table.rows[1][column("extrapolated")].number > 50);
  CHECK_THAT(table.note, Catch::Contains("over 989 TFLOP/s; row 2: ") && Catch::Contains("over 2250 TFLOP/s."));
  for (std::size_t i = 0; i < 2; ++i)
    CHECK_THAT(what_if_notes(r)[std::min(1 + i, what_if_notes(r).size() - 1)],  // behind what is set
               Catch::EndsWith(evidence_sentence(r.rows[i].plan->step.evidence) + "."));
  const nlohmann::json document = what_if_json(r);
  CHECK(document["notes"] == what_if_notes(r));
  CHECK(document["rows"][1]["evidence"] == evidence_json(r.rows[1].plan->step.evidence));
  CHECK(document["rows"][1]["extrapolated"] > 0.5);
  CHECK(document["rows"][1]["mfu_definition"]["peak_flops"] == r.rows[1].inputs.peak_flops);
}

TEST_CASE("what-if says which rows a profile's collectives have a say in") {
  const WhatIf r = what_if(kStudy, "s", {parse_assignment("search.expert_degrees=[1]", false)},
                           {parse_assignment("profiles=[],[tests/data/h100-profile.json]", true)}, false);
  const std::vector<std::string> notes = what_if_notes(r), basis = plan_collectives(r.rows[1].inputs);
  REQUIRE_FALSE(basis.empty());
  CHECK(plan_collectives(r.rows[0].inputs).empty());
  for (const std::string& sentence : basis)
    CHECK(std::find(notes.begin(), notes.end(), "row 2: " + sentence) != notes.end());
}

TEST_CASE("the clock scales what arithmetic limits, and nothing else") {
  const PlanInputs inputs = inputs_of(kStudy);
  ScaleSpec half;
  half.clock = 0.5;
  const ScaledCost scaled(*inputs.prices, half);
  const auto ratio = [&](const WorkItem& item) {
    return scaled.item(item, 0).seconds / inputs.prices->item(item, 0).seconds;
  };
  const WorkItem large = make_item(Kernel::gemm, Pass::forward, Precision::bf16, {4096, 0}, {4096, 4096});
  const WorkItem few_rows = make_item(Kernel::gemm, Pass::forward, Precision::bf16, {16, 0}, {4096, 4096});
  const WorkItem norm = make_item(Kernel::rmsnorm, Pass::forward, Precision::bf16, {4096, 0}, {4096});
  CHECK(ratio(large) == Approx(2));
  CHECK(ratio(few_rows) == 1);  // 16 FLOP a byte: the weights have to come by
  CHECK(ratio(norm) == 1);
  Op op;
  op.work = {large, norm};
  const double product_s = inputs.prices->item(large, 0).seconds, norm_s = inputs.prices->item(norm, 0).seconds;
  CHECK(scaled.segment(op, 0).seconds ==
        Approx(inputs.prices->segment(op, 0).seconds * (2 * product_s + norm_s) / (product_s + norm_s)).epsilon(0.05));
  CHECK(scaled.collective(OpKind::all_gather, 1e9, 8, 1).latency_s ==
        inputs.prices->collective(OpKind::all_gather, 1e9, 8, 1).latency_s);
}

TEST_CASE("a study that no schedule can be made for is refused before the search") {
  const TempDirectory folder;
  const PlanInputs good = inputs_of(kStudy);
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

TEST_CASE("what-if names the value that is refused, before it plans, and keeps the rows of the others") {
  int planned = 0;
  const auto count = [&](const std::string& part, auto...) { planned += part == "planning rows" ? 1 : 0; };
  CHECK_THROWS_WITH(what_if(kStudy, "s", {}, {parse_assignment("failures=llama3,no-such-cluster", true)}, false, count),
                    Catch::Contains("failures=no-such-cluster: ") && Catch::Contains("nothing was planned"));
  CHECK_THROWS_WITH(what_if(kStudy, "s", {}, {parse_assignment("search.tie=0.01,7", true)}, false, count),
                    Catch::Contains("search.tie=7: "));
  CHECK(planned == 0);
  // That no expert degree divides shows only when layouts are enumerated.
  const WhatIf r = what_if(kStudy, "s", {}, {parse_assignment("search.shard_sizes=auto,[7]", true)}, false, count);
  CHECK(planned > 0);
  CHECK(r.rows[0].plan.has_value());
  CHECK(r.rows[1].failure == Code::finding);
  CHECK_THAT(r.rows[1].misfit, Catch::Contains("divides"));
  CHECK(what_if_table(r).rows[1].back().text == "does not fit");
}

TEST_CASE("what-if refuses keys that a study does not have, before it plans") {
  const auto with = [](const std::string& sweep) {
    return what_if(kStudy, "s", {}, {parse_assignment(sweep, true)}, false);
  };
  CHECK_THROWS_WITH(with("scale.network_bandwith=1"), Catch::Contains("did you mean 'scale.network_bandwidth' (s)?"));
  CHECK_THROWS_WITH(with("tokns=1T"), Catch::Contains("tokns: unknown key; did you mean 'tokens' (s)?"));
  CHECK_THROWS_WITH(with("gpus=16,17"), Catch::Contains("whole nodes"));
  CHECK_THROWS_WITH(parse_assignment("gpus", true), Catch::Contains("needs key=a,b,c"));
  CHECK_THROWS_WITH(parse_assignment("gpus=8,,16", true), Catch::Contains("empty value"));
  CHECK(parse_assignment("a=[1,2],3", true).values == std::vector<std::string>{"[1,2]", "3"});
}

TEST_CASE("a row that does not fit says so and the others are planned") {
  const std::string balanced = set_study_key(kStudy, "routing", "balanced", "s");
  const WhatIf r = what_if(balanced, "s", {}, {parse_assignment("model=olmoe-1b-7b,dbrx", true)}, false);
  CHECK(r.rows[0].plan.has_value());
  CHECK_FALSE(r.rows[1].plan.has_value());
  CHECK(r.rows[1].misfit.find("nearest miss") != std::string::npos);
}

TEST_CASE("balanced stands alone among the loads") {
  CHECK(inputs_of(set_study_key(kStudy, "routing", "balanced", "s")).scenarios.empty());
  CHECK(inputs_of(set_study_key(kStudy, "routing", "olmoe", "s")).scenarios.size() == 6);
  CHECK_THROWS_WITH(inputs_of(set_study_key(kStudy, "routing", "[balanced, olmoe-c4]", "s")),
                    Catch::Contains("balanced alone"));
}
