// Tables of docs/ about our own trainer, machines, gate and simulator beside the commands or the recordings that they
// come from: every row, figure and count. No time is measured here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "sim/measurements/csv.hpp"
#include "tests/fixtures/page_tables.hpp"
#include "tests/fixtures/replay_passes.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_bounds.hpp"
#include "tests/fixtures/validated.hpp"

using namespace wt::test;

namespace {

json read_json(const std::string& file) {
  std::ifstream in(file);
  INFO(file);
  REQUIRE(in);
  return json::parse(in);
}

/// What a command of windtunnel prints with --json.
json said(const std::string& arguments) {
  const Ended ended = windtunnel(arguments + " --json");
  INFO(arguments << "\n" << ended.said.substr(0, 500));
  REQUIRE(ended.status == 0);
  return json_in(ended.said);
}

const std::string kAccuracy = "docs/accuracy.md";

}  // namespace

TEST_CASE("docs/accuracy.md: the replay of our own trainer") {
  check_table(kAccuracy, "| pass, by its date |",
              {{"2026-11-23, first", passes()[0]}, {"2026-11-23, second", passes()[1]}, {"both", passes()[2]}}, 1, 3);
  std::vector<double> exposed;  // in percent of the step, of any round; a pass each
  double peak = 0;
  for (const char* pass : {"1", "2"}) {
    const auto rounds = wt::read_csv(std::string("bench/studies/replay/passes/2026-11-23-epyc-") + pass + ".csv",
                                     {"exposed_error", "peak_error"}, wt::OtherColumns::ignored);
    exposed.push_back(0);
    for (const wt::CsvRow& round : rounds.rows) {
      exposed.back() = std::max(exposed.back(), 100 * std::abs(std::stod(round.cells[0])));
      peak = std::max(peak, 100 * std::abs(std::stod(round.cells[1])));
    }
  }
  check_table(kAccuracy, "| other figures of these runs |",
              {{"exposed communication of any round", {recorded(exposed[0]), recorded(exposed[1])}},
               {"peak memory", {significant(peak, 1)}}},
              1, 2);
}

TEST_CASE("a pass of our own trainer that is further off than allowed is a regression") {
  std::ifstream good("bench/studies/replay/passes/2026-11-23-epyc-1.csv");
  const TempDirectory folder;
  std::ofstream bad(folder / "slow.csv");
  std::string line;
  std::getline(good, line);
  bad << line << "\n";
  while (std::getline(good, line)) {  // run, layout, calibrated_on, predicted_step_s, measured_step_s, ...
    std::vector<std::string> cells;
    for (std::size_t from = 0, to = 0; to != std::string::npos; from = to + 1)
      to = line.find(',', from), cells.push_back(line.substr(from, to == std::string::npos ? to : to - from));
    cells[4] = std::to_string(1.3 * std::stod(cells[4]));
    for (std::size_t i = 0; i < cells.size(); ++i) bad << (i > 0 ? "," : "") << cells[i];
    bad << "\n";
  }
  bad.close();
  const Ended summary = summary_of_passes(folder / "slow.csv");
  CHECK(summary.status == 1);
  CHECK_THAT(summary.said,
             Catch::Contains("slow.csv: found a median error of") && Catch::Contains("allowed are 5 and"));
}

namespace {

/// A training on one H200 (bench/studies/gpu_steps), and what `simulate` says of its run.
struct GpuRun {
  double measured_s = 0, measured_bytes = 0;
  json predicted;

  double off() const { return 100 * (predicted.at("step_s").get<double>() / measured_s - 1); }
  double peak_off() const { return 100 * std::abs(predicted.at("peak_bytes").get<double>() / measured_bytes - 1); }
  bool inside() const { return predicted.at("low_s") <= measured_s && measured_s <= predicted.at("high_s"); }
  Figures milliseconds() const {
    Figures out;
    for (const char* key : {"step_s", "low_s", "high_s"}) out.push_back({1e3 * predicted.at(key).get<double>()});
    return out;
  }
};

GpuRun gpu_run(const std::string& name, const std::string& further = "") {
  const std::string folder = "bench/studies/gpu_steps/";
  const json summary = read_json(folder + "h200/" + name + "-summary.json");
  return {
      summary.at("median_step_s"), summary.at("ranks").at(0).at("peak_tensor_bytes"),
      said("simulate " + folder + name + ".yaml --cluster hgx-h200 --stack windtunnel-train" + further).at("payload")};
}

std::string insides(const std::vector<GpuRun>& runs) {
  const auto inside = std::count_if(runs.begin(), runs.end(), [](const GpuRun& run) { return run.inside(); });
  REQUIRE((inside == 0 || static_cast<std::size_t>(inside) == runs.size()));  // else the page says which one
  const std::string both = runs.size() == 2 ? "both " : "";
  return both + (inside > 0 ? "inside" : "outside");
}

}  // namespace

TEST_CASE("docs/accuracy.md: steps of one H200, as they were recorded, beside predictions") {
  const TempDirectory folder;
  const std::string machine = folder / "h200.json", products = folder / "products.csv";
  REQUIRE(windtunnel("calibrate h200-moe bench/studies/gpu_steps/h200/moe-profile.json -o " + machine).status == 0);
  const auto calibrated = [&](const std::string& name) {
    return gpu_run(name, " --machine " + machine + " --routing bench/studies/gpu_steps/h200/" + name + "-routing.csv");
  };
  const GpuRun moe = gpu_run("moe"), fine = gpu_run("fine-experts"), dense = gpu_run("dense");
  const GpuRun seen = calibrated("moe"), fine_after = calibrated("fine-experts"), dense_after = calibrated("dense");
  REQUIRE(python("bench/studies/gpu_steps/products.py >" + products).status == 0);
  const json of_products = said("validate kernels " + products).at("summary");

  check_table(
      kAccuracy + "#One H200", "| what | figure |",
      {{"step time, two MoE models, without a profile (`simulate --stack windtunnel-train`); the fit has these runs",
        {{moe.off()}, {fine.off()}},
        {"off", insides({moe, fine})}},
       {"step time, a dense model, likewise", {{dense.off()}}, {"off", insides({dense})}},
       {"the same after calibrating on one MoE run: the other MoE and the dense model",
        {{fine_after.off()}, {dense_after.off()}},
        {"too long", insides({fine_after, dense_after})}},
       {"peak memory of all three, nothing measured before",
        {significant(std::max({moe.peak_off(), fine.peak_off(), dense.peak_off()}), 1)}},
       {"[products of " + std::to_string(of_products.at("n").get<int>()) +
            " shapes](../bench/studies/gpu_steps/README.md), nothing measured before",
        {percent(of_products, "median_ape"), percent(of_products, "coverage80")}}},
      1, 2);

  const auto row = [](const std::string& name, const GpuRun& blind, const GpuRun& after) -> Row {
    constexpr double kGiB = 1 << 30;
    return {
        "`" + name + "`",
        Figures{{1e3 * blind.measured_s}} + blind.milliseconds() + Figures{{blind.off()}} + after.milliseconds() +
            Figures{
                {after.off()}, {blind.measured_bytes / kGiB}, {blind.predicted.at("peak_bytes").get<double>() / kGiB}}};
  };
  check_table("bench/studies/gpu_steps/README.md", "| run | measured [ms] |",
              {row("moe", moe, seen), row("fine-experts", fine, fine_after), row("dense", dense, dense_after)}, 1, 8);
}

TEST_CASE("docs/accuracy.md: results of our own trainer are the bounds of its tests, or recorded") {
  const auto recorded = wt::read_csv("bench/studies/parity/parity.csv", {"day", "test", "what", "most"});
  const auto most = [&](const std::string& test, const std::string& what) -> Figure {
    for (const wt::CsvRow& row : recorded.rows)
      if (row.cells[1] == test && row.cells[2] == what) {
        CHECK_THAT(paragraph(kAccuracy, "The figures of the first six rows"), Catch::Contains("on " + row.cells[0]));
        return count(std::stod(row.cells[3]));
      }
    FAIL("bench/studies/parity/parity.csv: no " << what << " of " << test);
    return {};
  };
  check_table(kAccuracy + "#Our own trainer: results", "| what | figure | command |",
              {{"every layout on four ranks against one process, fp32: first-step loss", {count(kFirstLoss)}},
               {"the same: parameters after 10 steps", {count(kParameters)}},
               {"11 layouts in bf16 against fp32: first-step loss and gradient norm", {count(kFirstLossBf16)}},
               {"the same: parameters after 10 steps", {count(kParametersBf16)}},
               {"memory replay against the allocator: median step", {count(100 * kMemoryStep)}},
               {"the same: highest of all steps and ranks", {count(100 * kMemoryHighest)}},
               {"a plain PyTorch version of the model, same weights and data, fp32: 20 losses",
                {most("python_parity_moe", "loss"), most("python_parity_dense", "loss")}},
               {"logits of " + std::to_string(static_cast<int>(most("python_hugging_face", "models").value)) +
                    " small random models against transformers 4.57",
                {most("python_hugging_face", "logits")}},
               {"gradients of the same, over each weight's largest", {most("python_hugging_face", "gradients")}}},
              1, 2);
}

TEST_CASE("docs/accuracy.md: speed of our own trainer, as it was recorded") {
  const json on_cpu = read_json("bench/studies/compare_fsdp2/figures.json");
  const json h200 = read_json("bench/studies/gpu_steps/h200/compare_fsdp2.json"), &on_gpu = h200.at("cases").at(0);
  Rows ratios, cases;
  for (const json& each : on_cpu.at("cases")) {
    CHECK(each.at("pairs") == 31);
    const std::string model = each.at("case") == "moe" ? "MoE" : "dense";
    if (ratios.empty() || ratios.back().name != model) ratios.push_back({model, {}});
    ratios.back().figures.push_back(recorded(each.at("ratio")));
    cases.push_back({each.at("case"),
                     {count(each.at("ranks").get<double>()), recorded(each.at("ratio")), recorded(each.at("low")),
                      recorded(each.at("high")), recorded(each.at("windtunnel_tokens_per_s")),
                      recorded(each.at("fsdp2_tokens_per_s"))}});
  }
  check_table(kAccuracy, "| model | 1 rank | 2 ranks | 4 ranks |", ratios, 1, 4);
  check_table("bench/studies/compare_fsdp2/README.md", "| case | ranks |", cases, 1, 5);
  CHECK_THAT(paragraph(kAccuracy, "The table gives tokens/s over those of eager PyTorch FSDP2"),
             Catch::Contains("measured it on " + on_cpu.at("date").get<std::string>()));
  const std::string text = paragraph(kAccuracy, "On one H200, a MoE of 2.5 billion parameters in bf16: ");
  const std::string day = h200.at("date");
  REQUIRE_THAT(text, Catch::Contains(day));
  check_numbers(text.substr(0, text.find(day)),
                {recorded(on_gpu.at("ratio")), count(on_gpu.at("pairs").get<double>()), recorded(on_gpu.at("low")),
                 recorded(on_gpu.at("high")), recorded(on_gpu.at("windtunnel_tokens_per_s"))});
}

namespace {

/// Numbers of some columns of a table, of the rows whose first cell begins so.
std::vector<double> cells(const std::string& page, const std::string& header, const std::vector<std::string>& begins,
                          std::size_t column, std::size_t place = 0) {
  std::vector<double> out;
  for (const auto& row : table(page, header))
    for (const std::string& begin : begins)
      if (row.at(0).starts_with(begin))
        if (const auto found = numbers(row.at(column)); found.size() > place) out.push_back(std::stod(found[place]));
  REQUIRE_FALSE(out.empty());
  return out;
}

/// Smallest and largest; one figure where they are the same.
Figures range(const std::vector<double>& of) {
  const auto [low, high] = std::minmax_element(of.begin(), of.end());
  return *low == *high ? Figures{count(*low)} : Figures{count(*low), count(*high)};
}

/// An aim of h200/aims.txt: what is measured, the aim and what was reached.
struct Aim {
  std::string what, verdict;
  double aim = 0, reached = 0;
};

std::vector<Aim> gpu_aims() {
  std::ifstream in("bench/studies/gpu_steps/h200/aims.txt");
  static const std::regex shape(R"((.*\S) +[<>]= +([\d.]+)(?: us)? +([\d.]+)(?: us)? +(\w+))");
  std::vector<Aim> out;
  std::string line;
  std::getline(in, line);  // names of the columns
  for (std::smatch of; std::getline(in, line);) {
    INFO(line);
    REQUIRE(std::regex_match(line, of, shape));
    out.push_back({of[1], of[4], std::stod(of[2]), std::stod(of[3])});
  }
  REQUIRE(out.size() == 22);
  return out;
}

}  // namespace

TEST_CASE("docs/accuracy.md: kernels on the CPU, as docs/kernels.md has them one by one") {
  const std::string page = "docs/kernels.md", others = page + "#The other kernels are measured",
                    header = "| kernel | fp32, 2 threads |";
  const std::vector<std::string> memory_bound = {"permute", "combine", "SwiGLU", "quantise", "dequantise", "RMSNorm"},
                                 rotary = {"rotary", "the same, backward"};
  std::vector<double> turned = cells(others, header, rotary, 1);
  for (const double bf16 : cells(others, header, rotary, 2)) turned.push_back(bf16);
  check_table(kAccuracy, "| kernel | precision | share",
              {{"permute, combine, SwiGLU, RMSNorm, quantise, dequantise and their gradients",
                range(cells(page, header, memory_bound, 1))},
               {"the same", range(cells(page, header, memory_bound, 2))},
               {"the same, with AVX2 alone", range(cells(page, header, memory_bound, 5, 1))},
               {"rotary positions", range(turned)},
               {"AdamW", {recorded(cells(others, header, {"AdamW"}, 1).front())}},
               {"cross-entropy", range(cells(others, header, {"cross-entropy"}, 1))},
               {"cross-entropy, limited by exponentials", {count(0.26), count(0.42)}}},
              2, 3);
}

TEST_CASE("docs/kernels.md and docs/accuracy.md: kernels on an H200, as they were recorded") {
  const std::vector<Aim> aims = gpu_aims();
  Rows rows;
  std::vector<double> rates, routers;
  double grouped = 0, met = 0;
  for (const Aim& each : aims) {
    if (each.what.starts_with("grouped GEMM")) {
      ++grouped, met += each.verdict == "met";
      continue;
    }
    std::string name = each.what.substr(0, each.what.find(','));
    for (const auto& [theirs, page] : {std::pair{" forward", ""},
                                       {" backward", ", backward"},
                                       {"swiglu", "SwiGLU"},
                                       {"dequantize_", "dequantise "},
                                       {"quantize_", "quantise to "},
                                       {"router_", "router, "},
                                       {"softmax", "softmax (8,192 tokens, 64 experts, 8 choices)"}})
      if (const std::size_t at = name.find(theirs); at != std::string::npos)
        name.replace(at, std::string(theirs).size(), page);
    rows.push_back({name, {count(each.aim), recorded(each.reached)}});
    (each.what.starts_with("router") ? routers : rates).push_back(each.reached);
  }
  const auto shown = table("docs/kernels.md", "| kernel | aim | first version | now |");
  CHECK(shown.size() == rows.size());
  for (const auto& row : shown) {  // no recording has the first version
    INFO(row[0]);
    const auto known = std::find_if(rows.begin(), rows.end(), [&](const Row& each) { return each.name == row[0]; });
    REQUIRE(known != rows.end());
    check_numbers(row[1] + " " + row[3], known->figures);
  }
  const Figures rate = range(rates);
  check_numbers(
      paragraph(kAccuracy, "On one H200 in bf16, as a share of the rate of a copy within memory in the same run: "),
      {rate[0], rate[1], count(0.85), count(8192), count(64), recorded(routers.back()), count(10), count(200)});
  CHECK(std::all_of(aims.begin(), aims.end(),
                    [](const Aim& each) { return each.what.starts_with("grouped") || each.verdict == "met"; }));
  CHECK((grouped == 10 && met == 6));  // in words on the page
  CHECK_THAT(paragraph(kAccuracy, "On one H200 in bf16"),
             Catch::Contains("Of ten aims for grouped products six are met"));
}

namespace {

/// Draws are the same on every machine.
Figure share(const json& value) { return recorded(100 * value.get<double>()); }

/// Runs that fail, of all: their share or, where none did, its bound.
Figures failed(const json& of, int trials) {
  const double runs = of.at("failed_runs").get<double>() * trials;
  return {share(runs > 0.5 ? of.at("failed_runs") : of.at("failed_runs_bound")), count(std::round(runs)),
          count(trials)};
}

}  // namespace

TEST_CASE("docs/accuracy.md and docs/gate.md: what the gate finds on recorded timings") {
  const json gate = said("gate selftest");
  const int trials = gate.at("trials");
  const json &in_turns = gate.at("interleaved"), &one_side_first = gate.at("consecutive");
  const auto blocks = [&](int benchmarks, bool filtered, double minutes) -> const json& {
    for (const json& each : gate.at("blocks"))
      if (each.at("benchmarks") == benchmarks && each.at("filtered") == filtered && each.at("minutes") == minutes)
        return each;
    FAIL("no such workflow");
    return gate;
  };
  const json &filtered = blocks(30, true, 15), &all = blocks(30, false, 15);
  const auto recall = [](const json& of, const char* which) { return share(of.at("recall").at(which)); };
  const auto folders = [&](const char* which) {
    for (const json& each : gate.at("recall"))
      if (each.at("step") == 0.05) return share(each.at(which));
    FAIL("no step of 5 %");
    return Figure{};
  };
  const int first_trials = one_side_first.at("trials");
  check_table(
      kAccuracy + "### The gate", "| what | figure |",
      {{"`gate run`, 15 minutes, 30 benchmarks: runs that fail on unchanged code",
        failed(filtered, trials) + failed(all, trials),
        {"under 1 %"}},
       {"the same: 5 % slowdowns found, of quiet benchmarks", {recall(filtered, "quiet"), recall(all, "quiet")}},
       {"the same: 5 % slowdowns found, of all benchmarks", {recall(filtered, "all"), recall(all, "all")}},
       {"two profiles: runs that fail on unchanged code, sides measured in turns",
        failed(in_turns, trials) + Figures{count(95), share(in_turns.at("failed_runs_bound"))}},
       {"two profiles: runs that fail on unchanged code, base before new",
        failed(one_side_first, first_trials) + Figures{count(95), share(one_side_first.at("failed_runs_bound"))}},
       {"two profiles in turns: 5 % slowdowns found, of quiet benchmarks", {folders("quiet")}},
       {"two profiles in turns: 5 % slowdowns found, of all benchmarks", {folders("all")}}},
      1, 2);

  Rows rows;
  for (const json& each : gate.at("blocks")) {
    const int benchmarks = each.at("benchmarks"), minutes = static_cast<int>(each.at("minutes").get<double>());
    if (benchmarks > 60) continue;  // the page has the sizes of a merge request
    rows.push_back({"`gate run`, " + std::to_string(benchmarks) + " benchmarks " +
                        (each.at("filtered").get<bool>() ? "that can be filtered" : "of other programs") + ", " +
                        std::to_string(minutes) + " minutes",
                    failed(each, trials) + Figures{recall(each, "all"), recall(each, "quiet")}});
  }
  rows.front().figures.insert(rows.front().figures.begin() + 3, count(1));  // "promised: at most 1 %"
  const std::string samples = ", " + std::to_string(gate.at("samples").get<int>()) + " samples a side";
  rows.push_back({"two folders, measured in turns" + samples,
                  failed(in_turns, trials) + Figures{folders("all"), folders("quiet")}});
  rows.push_back({"base, then new" + samples, failed(one_side_first, first_trials)});
  check_table("docs/gate.md", "| workflow | gate runs that fail", rows, 1, 4);
}

TEST_CASE("docs/accuracy.md: change points of a history") {
  const json all = said("gate selftest --history").at("all");
  const auto row = [&](const char* whose) -> Figures {
    return {share(all.at(whose).at("precision")), share(all.at(whose).at("recall"))};
  };
  check_table(kAccuracy, "| change points of a history |",
              {{"ours", row("ours")}, {"Apache Otava's defaults", row("library")}}, 1, 3);
  const Ended text = windtunnel("gate selftest --history");
  REQUIRE(text.status == 0);
  check_transcript("docs/gate-history.md", "windtunnel gate selftest --history", text.said);
}
