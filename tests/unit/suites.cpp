// The suites of windtunnel-train: which items they find, that a wrong kernel is caught, and that what they measure is
// what calibration wants.
#include "bench/formats/rate.hpp"
#include "bench/suites/aims.hpp"
#include "bench/suites/bench_case.hpp"
#include "bench/suites/item_runner.hpp"
#include "bench/suites/kernels_suite.hpp"
#include "bench/suites/partial_profile.hpp"
#include "bench/suites/suite_sampler.hpp"
#include "bench/suites/suite_table.hpp"
#include "bench/work/cases.hpp"
#include "bench/work/work_list.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "configs/base/error.hpp"
#include "sim/cost/calibrate/calibrate.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/routing/routing.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;

namespace {

RunSpec tiny_run() {
  RunSpec run;
  run.name = "tiny";
  ModelSpec& m = run.model;
  m.layers = 2, m.d_model = 32, m.heads = 4, m.kv_heads = 2, m.head_dim = 8, m.ffn = 48;
  m.experts = 4, m.top_k = 2, m.vocab = 40;
  m.router.z_loss_weight = 0.001;
  run.layout.shard = 2;
  run.layout.expert = 2;
  run.layout.microbatch = 2;
  run.seq = 16;
  run.global_batch = 4;
  run.steps = 1;
  return run;
}

/// With the kernels that tiny_run() has none of.
RunSpec other_run() {
  RunSpec run = tiny_run();
  ModelSpec& m = run.model;
  m.experts = m.top_k = 0, m.norm = Norm::layernorm, m.activation = Activation::gelu,
  m.attention.bias = AttentionSpec::Bias::all;
  run.layout.expert = 1;
  return run;
}

/// With a router that has everything that a router can have.
RunSpec routed_run() {
  RunSpec run = tiny_run();
  RouterSpec& r = run.model.router;
  run.model.experts = 8;
  r.score = RouterSpec::Score::sigmoid, r.scale = 2.5, r.groups = 4, r.top_groups = 2, r.bias_update_rate = 0.001;
  return run;
}

/// Three samples of each.
Profile measured(const std::vector<BenchCase>& cases) {
  SuiteOptions options;
  options.quick = true;
  options.samples = 3;
  Profile out = bench_kernels({tiny_run(), {}, cases}, options);
  out.fingerprint["device"] = "cpu";
  return out;
}

std::set<std::int64_t> rows_of(const std::vector<WorkItem>& cases, Kernel kernel, std::array<std::int64_t, 4> dims) {
  std::set<std::int64_t> out;
  for (const WorkItem& item : cases)
    if (item.kernel == kernel && item.pass == Pass::forward && item.dims == dims)
      out.insert(std::llround(item.rows.fixed));
  return out;
}

}  // namespace

TEST_CASE("rows that routing decides are measured around the balanced load") {
  // 2 sequences of 16 tokens to 2 experts each: 64 rows; experts live on 2 ranks, so 2 groups
  const auto cases = kernel_cases(tiny_run(), true);
  CHECK(rows_of(cases, Kernel::grouped_gemm, {96, 32, 2, 0}) == std::set<std::int64_t>{16, 32, 64, 128});
}

TEST_CASE("other items are measured at their rows, and without quick at half and double") {
  CHECK(rows_of(kernel_cases(tiny_run(), true), Kernel::rmsnorm, {32}) == std::set<std::int64_t>{32});
  CHECK(rows_of(kernel_cases(tiny_run(), false), Kernel::rmsnorm, {32}) == std::set<std::int64_t>{16, 32, 64});
}

TEST_CASE("every case is listed once") {
  std::set<std::string> names;
  const auto cases = kernel_cases(tiny_run(), true);
  for (const WorkItem& item : cases) {
    std::string name = to_string(item.kernel) + to_string(item.pass) + to_string(item.precision);
    for (const auto& [key, value] : item.shape(0)) name += key + std::to_string(value) + ",";
    CHECK(names.insert(name).second);
  }
}

TEST_CASE("products span half to twice the model's widths") {
  std::set<std::array<std::int64_t, 4>> shapes;
  for (const WorkItem& item : kernel_cases(tiny_run(), true))
    if (item.kernel == Kernel::gemm && item.pass == Pass::backward) shapes.insert(item.dims);
  CHECK(shapes.size() >= 6);
  CHECK(shapes.count({16, 16, 0, 0}) == 1);
  CHECK(shapes.count({64, 64, 0, 0}) == 1);
}

TEST_CASE("skewed rows keep the total and are not uniform") {
  const auto rows = skewed_rows(1000, 8, 3);
  CHECK(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == 1000);
  const auto largest = *std::max_element(rows.begin(), rows.end());
  CHECK(largest > 180);
  CHECK(largest < 200);
}

TEST_CASE("a rank's experts get rows as recorded where such a model was, and by the closed form otherwise") {
  ModelSpec model;
  model.experts = 16, model.top_k = 4;
  std::set<std::vector<std::int64_t>> seen;
  for (std::uint64_t seed : {0, 1, 2}) {
    const auto rows = expert_rows(model, 8192, 16, seed);
    CHECK(rows.size() == 16);
    CHECK(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == 8192);
    seen.insert(rows);
  }
  CHECK(seen.size() == 3);  // layers of dbrx-proxy
  // Layer 0 of dbrx-proxy-arxiv.csv, the first in order, experts 0 to 3 of it.
  const auto recorded = read_histogram("configs/routing/dbrx-proxy-arxiv.csv", 16).front();
  const double sum = recorded[0] + recorded[1] + recorded[2] + recorded[3];
  CHECK(std::abs(static_cast<double>(expert_rows(model, 1000, 4, 0)[0]) - 1000 * recorded[0] / sum) <= 1);
  model.experts = 12;
  CHECK(expert_rows(model, 1000, 12, 3) == skewed_rows(1000, 12, 3));
}

TEST_CASE("attention's rows name the backend that the library chose") {
  NormalPool normal(5);
  ItemRunner runner(make_item(Kernel::attention, Pass::forward, Precision::fp32, {2, 0}, {16, 4, 4, 8}), tiny_run(),
                    normal);
  CHECK(runner.check() >= 0);
  CHECK((runner.backend() == "flash" || runner.backend() == "math"));
  Measurement m;
  m.kernel = "attention", m.shape = {{"rows", 2}}, m.samples = {1e-3}, m.backend = "flash",
  m.evidence = {Evidence::measured, "test"};
  CHECK_THAT(bench_table({{}, {m}}), Catch::Contains("by flash"));
  CHECK(profile_from_json(to_json(Profile{{}, {m}}), "test").measurements[0].backend == "flash");
}

TEST_CASE("every item computes what its reference says, in both precisions") {
  RunSpec run = GENERATE(tiny_run(), other_run(), routed_run());
  for (Precision precision : {Precision::fp32, Precision::bf16}) {
    run.precision = precision;
    NormalPool normal(5);
    for (const WorkItem& item : kernel_cases(run, true)) {
      ItemRunner runner(item, run, normal);
      INFO(to_string(item.kernel) << " " << to_string(item.pass) << " " << to_string(precision) << " rows "
                                  << item.rows.fixed);
      double error = -1;
      REQUIRE_NOTHROW(error = runner.check());
      CHECK(error >= 0);
    }
  }
}

TEST_CASE("a wrong result of any item is an error") {
  const RunSpec run = GENERATE(tiny_run(), other_run());
  NormalPool normal(5);
  for (const WorkItem& item : kernel_cases(run, true)) {
    ItemRunner runner(item, run, normal);
    runner.prepare();
    const Tensors expected = runner.expected();
    Tensors outputs = runner.call();
    for (at::Tensor& output : outputs) output = output.detach().clone(at::MemoryFormat::Contiguous);
    REQUIRE_NOTHROW(runner.compare(outputs, expected));
    outputs[0].view({-1})[0] += 0.01 * expected[0].abs().max().item<double>();
    INFO(to_string(item.kernel) << " " << to_string(item.pass));
    CHECK_THROWS_AS(runner.compare(outputs, expected), Error);
    outputs[0].view({-1})[0] = NAN;
    CHECK_THROWS_AS(runner.compare(outputs, expected), Error);
  }
}

TEST_CASE("a wrong result names the kernel, the error and the limit") {
  const RunSpec run = tiny_run();
  NormalPool normal(5);
  ItemRunner runner(make_item(Kernel::swiglu, Pass::forward, Precision::fp32, {8, 0}, {48}), run, normal);
  runner.prepare();
  const Tensors expected = runner.expected();
  CHECK_THROWS_WITH(runner.compare({expected[0] * 2}, expected),
                    Catch::Contains("swiglu forward fp32, 8 rows") && Catch::Contains("allowed 0.0001"));
}

TEST_CASE("the copy that shares are taken of is in a profile of the CPU, read and written bytes counted") {
  const Profile profile = measured(machine_cases(at::kCPU, true));
  CHECK(profile.failures.empty());
  REQUIRE(profile.measurements.size() == 1);
  const Measurement& m = profile.measurements[0];
  CHECK(m.name() == "device_to_device/bytes=134217728/thread_cpu");
  CHECK(m.samples.size() == 3);
  CHECK(rate(m)->value == Approx(2.0 * 134217728 / m.median()));
  CHECK(rate(m)->unit == "B/s");
}

TEST_CASE("a copy that leaves out its last byte, and a case that throws, keep their rows") {
  BenchCase cut = machine_cases(at::kCPU, true).front(), broken = cut;
  cut.make = [make = cut.make](NormalPool& normal) {
    KernelProblem p = make(normal);
    p.run = [](const Tensors& in) {
      std::memcpy(in[1].data_ptr(), in[0].data_ptr(), in[0].nbytes() - 1);
      return Tensors{in[1]};
    };
    return p;
  };
  broken.row.kernel = "launch";
  broken.make = [](NormalPool&) -> KernelProblem { throw_runtime("no memory"); };
  const Profile profile = measured({cut, broken});
  CHECK(profile.measurements.empty());
  REQUIRE(profile.failures.size() == 2);
  CHECK(profile.failures[0].name == cut.row.name());
  CHECK_THAT(profile.failures[0].error, Catch::Contains("device_to_device") && Catch::Contains("allowed 0"));
  CHECK(profile.failures[1].error == "no memory");
}

TEST_CASE("what is measured for the aims is right, and every aim finds its rows") {
  const Aims aims = kernel_aims(at::kCPU, true);
  CHECK(aims.aims.size() == 10 + 2 + 1 + 1);  // memory-bound, router, coarse and fine grouped products
  const Profile profile = measured(aims.cases);
  for (const FailedMeasurement& f : profile.failures) FAIL_CHECK(f.name << ": " << f.error);
  CHECK(profile.measurements.size() == aims.cases.size());
  const std::string table = aims_table(aims.aims, profile);
  CHECK_THAT(table, Catch::Contains("not judged, the aims are of an H200") && !Catch::Contains("failed") &&
                        !Catch::Contains("not measured"));
  CHECK_THAT(aims_table(aims.aims, profile, "cpu"), !Catch::Contains("not judged"));
}

TEST_CASE("a wrong result of what the aims are of is found") {
  const auto no_number = [](const at::Tensor& part) { part.fill_(part.is_floating_point() ? NAN : 0x7f); };
  const auto last_of = [](const Tensors& out) { return out.back().view({-1}).slice(0, -1); };
  const std::vector<std::function<void(const Tensors&)>> spoil{
      [&](const Tensors& out) { last_of(out).copy_(last_of(out) + 100); },
      [&](const Tensors& out) { no_number(last_of(out)); },
      [&](const Tensors& out) {
        for (const at::Tensor& all : out) no_number(all);
      }};
  for (const BenchCase& what : kernel_aims(at::kCPU, true).cases) {
    NormalPool normal(5);
    INFO(what.row.name());
    CHECK_NOTHROW(ItemRunner(what, normal).check());
    for (const auto& change : spoil) {
      BenchCase wrong = what;
      wrong.make = [make = what.make, &change](NormalPool& pool) {
        KernelProblem p = make(pool);
        p.run = [run = p.run, &change](const Tensors& in) {
          Tensors out = run(in);
          change(out);
          return out;
        };
        return p;
      };
      CHECK_THROWS_AS(ItemRunner(wrong, normal).check(), Error);
    }
  }
}

TEST_CASE("aims are met, missed, or it says why neither") {
  const auto row = [](const char* kernel, double seconds) {
    Measurement m;
    m.kernel = kernel, m.pass = "", m.samples = {seconds}, m.counters = {{"bytes", 1e9}},
    m.evidence = {Evidence::measured, "test"};
    return m;
  };
  Profile profile{{{"device", "NVIDIA H200"}},
                  {row("copy", 1e-3), row("near", 1.1e-3), row("far", 2e-3), row("hot", 1e-3), row("quick", 5e-6),
                   row("torn", 1e-3)},
                  {{"bad", "wrong"}, {"torn", "trap"}}};
  profile.measurements[3].throttled = {"hw_thermal"};
  const auto verdict = [&](Aim aim) {
    const std::string table = aims_table({aim}, profile);
    return table.substr(table.find('\n') + 1);
  };
  CHECK_THAT(verdict({"x", "near", {"far", "copy"}, 0.85}), Catch::Contains("0.91") && Catch::Contains(" met"));
  CHECK_THAT(verdict({"x", "far", {"copy"}, 0.85}), Catch::Contains("0.50") && Catch::Contains("missed"));
  CHECK_THAT(verdict({"x", "hot", {"copy"}, 0.85}), Catch::Contains("throttled"));
  CHECK_THAT(verdict({"x", "copy", {"hot"}, 0.85}), Catch::Contains("throttled"));
  CHECK_THAT(verdict({"x", "bad", {"copy"}, 0.85}), Catch::Contains("failed"));
  CHECK_THAT(verdict({"x", "copy", {"bad"}, 0.85}), Catch::Contains("failed"));
  CHECK_THAT(verdict({"x", "torn", {"copy"}, 0.85}), Catch::Contains("failed"));
  CHECK_THAT(verdict({"x", "none", {"copy"}, 0.85}), Catch::Contains("not measured"));
  CHECK_THAT(verdict({"x", "quick", {}, 1e-5}), Catch::Contains(" met"));
  CHECK_THAT(verdict({"x", "copy", {}, 1e-5}), Catch::Contains("missed"));
}

TEST_CASE("samples: one a repetition, every case, and prepare and release around each") {
  int prepared = 0, released = 0, calls = 0, touched = 0;
  const std::vector<TimedCase> cases{
      {"a", [&] { ++prepared; }, [&] { ++calls; }, [&] { ++released; }, {}},
      {"b", [&] { ++prepared; }, [&] { ++calls; }, [&] { ++released; }, [&] { ++touched; }}};
  TimingOptions options;
  options.samples = 5;
  options.most_calls = 10;
  const auto samples = sample(cases, options, *thread_cpu_stopwatch());
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].seconds.size() == 5);
  CHECK(samples[1].seconds.size() == 5);
  CHECK(prepared == released);
  CHECK(touched == 5 * options.cold_calls);
  CHECK(calls == 2 + 5 * (1 + 10) + 5 * (1 + options.cold_calls));
}

TEST_CASE("an exception in a case is that case's error, what it holds is given back, and the others go on") {
  int released = 0;
  const std::vector<TimedCase> cases{{"a",
                                      [] {},
                                      [n = 0]() mutable {
                                        if (++n > 3) throw_runtime("broken kernel");
                                      },
                                      [&] { ++released; },
                                      {}},
                                     {"b", [] {}, [] {}, [] {}, {}},
                                     {"c",
                                      [] { throw_runtime("no memory"); },
                                      [] {},
                                      [&] {
                                        released += 100;
                                        throw_runtime("lost");
                                      },
                                      {}}};
  const auto samples = sample(cases, {}, *thread_cpu_stopwatch());
  CHECK_THAT(samples[0].error, Catch::Contains("broken kernel"));
  CHECK(samples[1].error == "");
  CHECK(samples[1].seconds.size() == 9);
  CHECK(samples[2].error == "no memory");
  CHECK(released == 100 + 2);  // after the batch and after the error
}

TEST_CASE("sampling can be ended, and only the samples that lack are taken") {
  std::vector<TimedCase> cases{{"a", [] {}, [] {}, [] {}, {}, 2}, {"b", [] {}, [] {}, [] {}, {}, 3}};
  TimingOptions options;
  options.samples = 3;
  const auto stopwatch = thread_cpu_stopwatch();
  const auto samples = sample(cases, options, *stopwatch);
  CHECK(samples[0].seconds.size() == 1);
  CHECK(samples[1].seconds.empty());
  cases[0].already = 0;
  int taken = 0;
  const auto ended = sample(cases, options, *stopwatch, [&](std::size_t, double) { return ++taken < 2; });
  CHECK(ended[0].seconds.size() == 2);
  CHECK(ended[0].error == "");
}

TEST_CASE("a failing item keeps its row; what is known is not measured again") {
  const RunSpec run = tiny_run();
  const WorkItem copied = make_item(Kernel::copy, Pass::forward, Precision::fp32, {512, 0}),
                 swiglu = make_item(Kernel::swiglu, Pass::forward, Precision::fp32, {32, 0}, {48}),
                 wrong = make_item(Kernel::rope, Pass::forward, Precision::fp32, {16, 0}, {7});
  SuiteOptions options;
  options.quick = true;
  options.samples = 3;
  const Profile first = bench_kernels({run, {wrong, copied}}, options);
  REQUIRE(first.failures.size() == 1);
  CHECK(first.failures[0].name == "rope/forward/fp32/rows=16,width=7/thread_cpu");
  CHECK_THAT(first.failures[0].error, Catch::Contains("rope of width 7"));
  REQUIRE(first.measurements.size() == 1);
  CHECK(first.measurements[0].samples.size() == 3);

  Profile known = first;
  known.measurements[0].samples.pop_back();
  int saves = 0;
  const Profile second = bench_kernels({run, {swiglu, copied}}, options, known, [&](const Profile&) { ++saves; });
  CHECK(second.failures.empty());
  REQUIRE(second.measurements.size() == 2);
  CHECK(second.measurements[1].samples.size() == 3);
  CHECK(std::equal(known.measurements[0].samples.begin(), known.measurements[0].samples.end(),
                   second.measurements[1].samples.begin()));
  CHECK(saves >= 1);
  const Profile third = bench_kernels({run, {copied}}, options, first);
  CHECK(third.measurements[0].samples == first.measurements[0].samples);
}

TEST_CASE("samples from before an error are kept beside it") {
  BenchCase tired = machine_cases(at::kCPU, true).front();
  tired.make = [sets = std::make_shared<int>(0)](NormalPool& normal) {
    if (++*sets > 3) throw_runtime("device lost");  // the check, the batch and one sample
    KernelProblem p;
    p.inputs = {normal.take({64}, at::kFloat)};
    p.run = [](const Tensors& in) { return Tensors{in[0]}; };
    p.verify = [](const Tensors&, const Tensors&) { return 0.0; };
    return p;
  };
  const Profile profile = measured({tired});
  REQUIRE(profile.failures.size() == 1);
  CHECK(profile.failures[0].error == "device lost");
  REQUIRE(profile.measurements.size() == 1);
  CHECK(profile.measurements[0].samples.size() == 1);
}

TEST_CASE("a partial profile is continued on the same machine and build alone") {
  const test::TempDirectory folder;
  const std::filesystem::path out = folder / "out.json";
  const std::map<std::string, std::string> facts{{"cpu_model", "a"}, {"commit", "1"}, {"run.seed", "17"}};
  Measurement m;
  m.kernel = "gemm", m.shape = {{"rows", 1}}, m.samples = {1.0}, m.evidence = {Evidence::measured, "test"};
  Measurement of_ranks = m;
  of_ranks.kernel = "all_gather", of_ranks.shape = {{"bytes", 1}, {"ranks", 2}};
  {
    PartialProfile partial(out, facts);
    CHECK(partial.profile().measurements.empty());
    partial.put_kernels({{}, {m}});
    partial.put({facts, {m, of_ranks}});
    partial.set_done("collectives-2");
  }
  PartialProfile again(out, facts);
  CHECK(again.profile().measurements.size() == 2);
  CHECK(again.done("collectives-2"));
  CHECK_FALSE(again.done("collectives-4"));
  Measurement more = m;
  more.shape["rows"] = 2;
  again.put_kernels({{}, {m, more}});  // in place of the one kernel
  CHECK(again.profile().measurements.size() == 3);
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"cpu_model", "b"}, {"commit", "2"}, {"run.seed", "18"}}) {
    std::map<std::string, std::string> other = facts;
    other[key] = value;
    CHECK(PartialProfile(out, other).profile().measurements.empty());
  }
  write_profile({facts, {m, of_ranks}, {{"all_reduce", "wrong values"}}}, out.string() + ".partial");
  const PartialProfile failed(out, facts);
  CHECK(failed.profile().measurements.size() == 2);
  CHECK(failed.profile().failures.empty());  // measured again
  test::write_bytes(out.string() + ".partial", "{");
  CHECK(PartialProfile(out, facts).profile().measurements.empty());
  const Profile finished = again.finish();
  CHECK(finished.fingerprint == facts);
  CHECK_FALSE(std::filesystem::exists(out.string() + ".partial"));
}

TEST_CASE("a work list reads back, and says which device it is for") {
  const test::TempDirectory folder;
  WorkList list{"study", "H100-SXM-80GB", kernel_cases(tiny_run(), true)};
  test::write_bytes(folder / "list.json", to_json(list).dump());
  const WorkList back = read_work_list(folder / "list.json");
  CHECK((back.items == list.items));
  CHECK(back.study == "study");
  CHECK(is_gpu("NVIDIA H100 80GB HBM3", back.gpu));
  CHECK(is_gpu("NVIDIA H200", "H200-SXM-141GB"));
  CHECK_FALSE(is_gpu("NVIDIA H200", back.gpu));
  CHECK_FALSE(is_gpu("NVIDIA A100-SXM4-80GB", back.gpu));
  CHECK_FALSE(is_gpu("NVIDIA GH200 480GB", "H200-SXM-141GB"));
  CHECK(is_gpu("NVIDIA GH200 480GB", "GH200"));
  CHECK_FALSE(is_gpu("cpu", ""));
  for (
      const char* wrong :
      {R"({"schema":"x"})",
       R"({"schema":"windtunnel.work/1","study":"","gpu":"","items":[{"kernel":"gemm","pass":"sideways","dtype":"fp32","shape":{}}]})",
       R"({"schema":"windtunnel.work/1","study":"","gpu":"","items":[{"kernel":"copy","pass":"forward","dtype":"fp32","shape":{"rows":0}}]})"}) {
    test::write_bytes(folder / "list.json", wrong);
    CHECK_THROWS_AS(read_work_list(folder / "list.json"), Error);
  }
}

TEST_CASE("a failed benchmark has its row in the table") {
  Measurement m;
  m.kernel = "all_reduce", m.pass = "", m.shape = {{"bytes", 4096}, {"ranks", 4}}, m.samples = {1e-3},
  m.counters = {{"busbw_Bps", 6.144e6}};
  const std::string table = bench_table({{}, {m}, {{"broadcast/bytes=4096", "gave 3"}}});
  CHECK_THAT(table, Catch::Contains("0.01 GB/s") && Catch::Contains("broadcast/bytes=4096") &&
                        Catch::Contains("failed: gave 3"));
}

TEST_CASE("measurements on a throttled device are counted and their reasons named, whichever suite they are of") {
  Measurement cool, hot, hotter;
  hot.throttled = {"hw_thermal"}, hotter.throttled = {"hw_slowdown", "hw_thermal"};
  CHECK(throttling_note({{}, {cool}}) == "");
  CHECK_THAT(throttling_note({{}, {cool, hot}}), Catch::Contains("1 of 2") && Catch::Contains("(hw_thermal)"));
  CHECK_THAT(throttling_note({{}, {hot, hotter}}),
             Catch::Contains("2 of 2") && Catch::Contains("(hw_slowdown, hw_thermal)"));
}

TEST_CASE("the kernel suite's profile reads back, and calibration times every item of the run") {
  const RunSpec run = tiny_run();
  SuiteOptions options;
  options.quick = true;
  options.samples = 3;
  Profile profile;
  profile.fingerprint = {{"cores", "2"}};
  profile.measurements = bench_kernels({run, kernel_cases(run, true)}, options).measurements;
  for (const char* kernel :
       {"device_to_device", "host_to_device", "launch"}) {  // nothing of a step, and no reason for a note
    Measurement& m = profile.measurements.emplace_back();
    m.kernel = kernel, m.pass = "", m.clock = "thread_cpu", m.samples = {1e-3},
    m.evidence = {Evidence::measured, "test"};
  }
  const test::TempDirectory folder;
  write_profile(profile, folder.path() / "profile.json");
  const CalibrationResult result = calibrate({read_profile(folder.path() / "profile.json")});
  CHECK(result.notes == std::vector<std::string>{});
  CHECK(result.model.traits().synchronous_host);
  const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  for (const WorkItem& item : items_of(set.programs.front())) CHECK(result.model.item(item, 64).seconds > 0);
}
