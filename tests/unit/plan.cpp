// Plans: what the trainer, machines and people get from the same result.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/files/find.hpp"
#include "configs/files/study_keys.hpp"
#include "planner/plan/smaller_plan.hpp"
#include "reports/render/text_report.hpp"
#include "tests/fixtures/check_certificate.hpp"
#include "tests/fixtures/small_plan.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("plan.yaml is a run file that reads back to the plan") {
  const PlanInputs inputs = inputs_of(kSmallStudy);
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

TEST_CASE("layouts of fewer GPUs are those that a plan on them has, and stand in the run file") {
  const PlanInputs inputs = inputs_of(kSmallStudy);
  Plan plan = make_plan(inputs);
  std::vector<std::string> said;
  plan.smaller = smaller_layouts(inputs.study, 2, false, [&](const std::string& why) { said.push_back(why); });
  REQUIRE(plan.smaller.size() == 1);  // of 8 GPUs; on 4 OLMoE does not fit
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Catch::Contains("no layout on 4 GPUs"));
  StudySpec eight = inputs.study;
  eight.gpus = 8, eight.cluster.set_nodes(1);
  const Plan on_eight = make_plan(read_plan_inputs(eight, false));
  CHECK(plan.smaller[0].layout.name() == on_eight.layout.name());
  CHECK(plan.smaller[0].step_s == on_eight.step.step_s);
  const RunSpec run = run_from_text(plan_yaml(inputs, plan), "plan.yaml");
  REQUIRE(run.smaller_layouts.size() == 1);
  CHECK(run.smaller_layouts[0].world() == 8);
  CHECK(run_to_yaml(run) == run_to_yaml(plan_run(inputs, plan)));
  CHECK(plan_json(inputs, plan)["smaller_layouts"][0]["gpus"] == 8);
}

TEST_CASE("a smaller layout is checked as the run's own") {
  const PlanInputs inputs = inputs_of(kSmallStudy);
  Plan plan = make_plan(inputs);
  plan.smaller.push_back({plan.layout, 1});
  plan.smaller[0].layout.replicate = 3;  // 3 x 8 or 3 x 16 ranks do not divide 64 sequences
  CHECK_THAT(usage_error([&] { run_from_text(plan_yaml(inputs, plan), "plan.yaml"); }),
             Catch::Contains("smaller_layouts") && Catch::Contains("global_train_batch_size: found 64"));
}

TEST_CASE("the same GPU with more and faster memory, or a faster network, is never planned slower", "[.nightly]") {
  const auto fastest_s = [](const std::string& cluster, const std::string& more) {
    std::string text = kSmallStudy + more;
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

TEST_CASE("a plan for nodes of two kinds fits the smaller GPU, at the pace of the slower", "[.nightly]") {
  const TempDirectory folder;
  std::string mixed = read_bytes(find_config("clusters", "hgx-h100"));
  mixed +=
      "other_nodes:\n  - {first: 1, count: 1, gpu: {name: A100-SXM-80GB, memory: 80GB, usable_memory: 64GiB}, "
      "nvswitch: {bandwidth: 300GB/s}, source: 'published: data sheets'}\n";
  write_bytes(folder / "mixed.yaml", mixed);
  const auto on = [&](const std::string& cluster, const std::string& stack) {
    std::string text = kSmallStudy;
    text.replace(text.find("cluster: hgx-h100"), 17, "cluster: " + cluster);
    text.replace(text.find("stack: torchtitan\n"), 18, stack);
    return inputs_of(text);
  };
  const PlanInputs inputs = on((folder / "mixed.yaml").string(), "");
  CHECK(inputs.study.stack == "torchtitan");  // no profile is of both
  const Plan none;
  CHECK_THAT(plan_assumptions(inputs, none).at(0) + plan_assumptions(inputs, none).at(1),
             Catch::Contains("one after the other through one communicator"));
  CHECK(inputs.peak_flops == (989e12 + 312e12) / 2);
  const SearchProblem problem = search_problem(inputs, *inputs.times);
  CHECK(problem.memory_limit_bytes == 64.0 * (1 << 30));
  const auto fastest_s = [](const SearchProblem& p) {
    const SearchResult found = search_layouts(p);
    CHECK(check_certificate(found).empty());
    CHECK(found.certificate.violations == 0);
    return found.candidates[found.best].result->step_s;
  };
  const auto all_of = [&](std::size_t kind) {
    SearchProblem p = search_problem(inputs, inputs.times->on(kind));
    p.cluster = p.cluster.all_of(kind);
    return p;
  };
  CHECK(fastest_s(problem) > 1.15 * fastest_s(all_of(0)));
  CHECK(fastest_s(problem) < 1.01 * fastest_s(all_of(1)));
  CHECK_THROWS_WITH(on((folder / "mixed.yaml").string(), "profiles: [tests/data/h100-profile.json]\n"),
                    Catch::Contains("a profile or machine model is of one GPU"));
}

TEST_CASE("a study's microbatch may leave a smaller last one") {
  const std::string uneven = set_study_keys(kSmallStudy,
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
  CHECK_THAT(text_report(report_of(inputs, plan)), Catch::Contains("2 microbatches a step, the last of 1"));
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

TEST_CASE("a plan names what its computation rests on, and on how many measurements") {
  const PlanInputs inputs = inputs_of(kSmallStudy);
  const Plan plan = make_plan(inputs);
  const std::vector<TimedClass>& sources = plan.timed_by;
  double sum = 0;
  for (const TimedClass& s : sources) sum += s.share;
  CHECK(sum == Approx(1));
  const auto grouped =
      std::find_if(sources.begin(), sources.end(), [](auto& s) { return s.name == "grouped_gemm/forward"; });
  REQUIRE(grouped != sources.end());
  CHECK(grouped->points > 300);  // grouped products, by shape and library
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
  CHECK(plan.step.mfu > 0.25);  // published: above 40 %; the step may take 0.6 times as long
  CHECK(plan.step.mfu < 0.6);
  CHECK(plan.step.mfu * 989e12 == Approx(plan.step.tokens_per_s_per_gpu * inputs.study.model.flops_per_token(4096)));
  CHECK(plan_assumptions(inputs, plan).front().find("Batch: ") == 0);  // the study's own come first
  CHECK(plan.cost.days.p05 < plan.runs.distribution.p50_s / 86400);    // the step is uncertain, too
  CHECK(plan.cost.days.p95 > plan.runs.distribution.p95_s / 86400);
}

TEST_CASE("the fastest layouts are listed behind the chosen one, wherever it is") {
  const PlanInputs inputs = inputs_of(kSmallStudy);
  Plan plan = make_plan(inputs);
  for (std::size_t i = 0; i < plan.search.candidates.size(); ++i)
    if (plan.search.candidates[i].result && i != plan.search.best) plan.search.chosen = i;
  REQUIRE(plan.search.chosen != plan.search.best);
  const Table table = candidate_table(inputs, plan, 1);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].back().text == "chosen");
  CHECK(table.rows[1].back().text.empty());
  CHECK(candidate_table(inputs, plan, 1000).rows.size() < 1000);
  CHECK_THAT(
      table.note,
      Catch::Contains("GiB a process. A layout takes more than the column says with a probability of 20 %. MFU: "));
  CHECK_THAT(plan_range(plan),
             Catch::Contains("the 5 % to the 95 % quantile of 50 simulated runs, each with a step drawn"));
}

TEST_CASE("plan, document and report say the same, twice") {
  const PlanInputs inputs = inputs_of(kSmallStudy);
  const Plan first = make_plan(inputs), second = make_plan(inputs);
  const nlohmann::json document = plan_json(inputs, first);
  CHECK(document == plan_json(inputs, second));
  CHECK(document["certificate"]["enumerated"] == first.search.certificate.enumerated);
  const Report report = report_of(inputs, first);
  check(report);
  CHECK(report.answer == document["answer"]);
  CHECK(report.payload == document);
  const std::string text = text_report(report);
  for (const char* said : {"  Overlap  ", "  Routing  ", "  Times ", "assumed:", "Would another layout be better?"})
    CHECK(text.find(said) != std::string::npos);
}

TEST_CASE("all files of a plan are written") {
  const PlanInputs inputs = inputs_of(kSmallStudy);
  const TempDirectory folder;
  const Plan plan = make_plan(inputs);
  const auto files = write_plan(inputs, plan, plan_details(inputs, plan), plan_json(inputs, plan), folder / "plan");
  CHECK(files.size() == 6);
  for (const auto& file : files) CHECK(std::filesystem::file_size(file) > 100);
  CHECK(read_bytes(folder / "plan/study.yaml") == study_yaml(inputs.study));
}
