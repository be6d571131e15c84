// Tables of docs/accuracy.md and README.md beside the commands that they name: every row, figure and count.
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/fixtures/ended.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/validated.hpp"

using namespace wt::test;

namespace {

/// What a command says: a count, or a figure that a page rounds.
struct Figure {
  double value = 0;
  bool count = false;
};
using Figures = std::vector<Figure>;
using Rows = std::vector<std::pair<std::string, Figures>>;  ///< by how a table's row begins

Figure percent(const json& from, const char* key) { return {100 * from.at(key).get<double>()}; }
Figure count(double value) { return {value, true}; }
Figure count(const json& from, const char* key) { return count(from.at(key).get<double>()); }

Figures operator+(Figures a, const Figures& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Rows below the header that begins so: their cells.
std::vector<std::vector<std::string>> table(const std::string& page, const std::string& header) {
  std::ifstream in(page);
  std::string line;
  while (std::getline(in, line) && !line.starts_with(header)) {
  }
  std::getline(in, line);  // the rule
  std::vector<std::vector<std::string>> rows;
  while (std::getline(in, line) && line.starts_with("| ")) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (std::size_t from = 2, to = 0; (to = line.find(" |", from)) != std::string::npos; from = to + 3)
      cells.push_back(line.substr(from, to - from));
  }
  INFO(page << ": " << header);
  REQUIRE_FALSE(rows.empty());
  return rows;
}

/// Numbers of these cells as they are written, but for the names of intervals, quantiles and files.
std::vector<std::string> numbers(const std::vector<std::string>& cells, std::size_t first, std::size_t last) {
  static const std::regex names("80 % interval|90th|`[^`]*`"), number(R"([+-]?\d[\d,]*(\.\d+)?)");
  std::vector<std::string> out;
  for (std::size_t i = first; i < std::min(last, cells.size()); ++i) {
    const std::string text = std::regex_replace(cells[i], names, "");
    for (std::sregex_iterator it(text.begin(), text.end(), number), end; it != end; ++it) {
      out.push_back(it->str());
      std::erase(out.back(), ',');
    }
  }
  return out;
}

/// Counts are the same. Figures are rounded as written; the last digit may depend on the processor, too.
void check_number(const std::string& written, const Figure& said) {
  const std::size_t point = written.find('.');
  const double digit = point == std::string::npos ? 1 : std::pow(10, -static_cast<double>(written.size() - point - 1));
  INFO("the page has " << written << ", the command says " << said.value);
  CHECK(std::abs(std::stod(written) - said.value) <= (said.count ? 0 : digit < 1 ? 1.1 * digit : 0.7));
}

/// All rows of a table, in any order, by their cells `first` to `last`.
void check_table(const std::string& page, const std::string& header, const Rows& expected, std::size_t first,
                 std::size_t last) {
  const auto rows = table(page, header);
  CHECK(rows.size() == expected.size());
  for (const auto& cells : rows) {
    INFO(page << ": " << cells[0]);
    const auto known =
        std::find_if(expected.begin(), expected.end(), [&](const auto& each) { return cells[0] == each.first; });
    REQUIRE(known != expected.end());
    const std::vector<std::string> written = numbers(cells, first, last);
    REQUIRE(written.size() == known->second.size());
    for (std::size_t i = 0; i < written.size(); ++i) check_number(written[i], known->second[i]);
  }
}

const json& family(const json& of, const std::string& name) { return part(of.at("families"), "family", name); }
const json& regime(const json& of, const std::string& name) { return part(of.at("regimes"), "regime", name); }
const json& whole(const json& of) { return of.at("whole_sources_left_out"); }

Figures by_origin(const json& from) {
  return {count(from, "n"), count(from, "origins"), percent(from, "origin_median_ape"),
          percent(from, "origin_coverage80")};
}
Figures all_rows(const json& from) {
  return {percent(from, "median_ape"), percent(from, "p90_ape"), percent(from, "bias"), percent(from, "coverage80")};
}
/// Median error, share inside the interval, rows.
Figures memory_of(const json& from) {
  return {percent(from, "median_ape"), percent(from, "coverage80"), count(from, "n")};
}

const std::map<std::string, std::string> kFamilies = {
    {"MoE with FSDP and expert parallelism", "MoE, FSDP"},
    {"MoE with expert parallelism over replicas", "MoE, data parallel"},
    {"MoE with tensor and pipeline groups", "MoE, tensor and pipeline"},
    {"dense FSDP", "dense, FSDP"},
    {"dense FSDP with tensor groups", "dense, FSDP with tensor groups"},
    {"dense data parallelism", "dense, data parallel"},
    {"dense with tensor and pipeline groups", "dense, tensor and pipeline"}};

const json& published_plans() { return document("plans", "").at("summary"); }
const json& later_memory() { return document("memory", "later_runs.csv"); }
const json& memory_2026() { return document("memory", "runs_2026.csv"); }

/// Rows of reserved memory above a quantile of their prediction: Student's t with two degrees of freedom through the
/// ends of the interval, 10 % and 90 %.
Figures above_quantiles() {
  constexpr double kT90 = 1.8856180831641267;
  std::map<double, int> above;
  int rows = 0;
  for (const json* d : {&memory(), &document("memory", "torchtitan_runs.csv"), &memory_2026()})
    for (const json& row : d->at("rows")) {
      const std::string of = row.at("regime");
      if (!of.ends_with("peak reserved") || row.at("predicted_bytes").is_null()) continue;
      ++rows;
      const double middle = row.at("predicted_bytes"), high = row.at("interval80_bytes")[1];
      for (const double p : {0.90, 0.95, 0.99}) {
        const double t = (2 * p - 1) / std::sqrt(2 * p * (1 - p));
        above[p] += row.at("measured_bytes").get<double>() > middle + t / kT90 * (high - middle);
      }
    }
  Figures out;
  for (const auto& [p, n] : above) out.push_back({100.0 * n / rows});
  return out + Figures{count(rows)};
}

/// Beyond 1.5 times the measurement either way, and outside of the interval: of all predicted rows, of nanotron's and
/// of MoE.
Figures far_off() {
  double far = 0, nanotron = 0, experts = 0, rows = 0;
  for (const json& row : runs().at("rows")) {
    if (row.at("predicted_s").is_null()) continue;
    ++rows;
    const double measured = row.at("measured_s"), ratio = row.at("predicted_s").get<double>() / measured;
    if ((ratio <= 1.5 && ratio >= 1 / 1.5) ||
        (measured >= row.at("interval80_s")[0].get<double>() && measured <= row.at("interval80_s")[1].get<double>()))
      continue;
    ++far;
    nanotron += row.at("origin") == "nanotron";
    experts += row.at("regime").get<std::string>().starts_with("MoE");
  }
  return {count(far), count(rows), count(nanotron), count(experts)};
}

/// Smallest and largest share inside the interval over the families of steps, pooled and by origin.
Figures spread_of_coverage() {
  Figures out;
  for (const char* key : {"origin_coverage80", "coverage80"}) {
    std::vector<double> shares;
    for (const auto& [row, name] : kFamilies) shares.push_back(100 * family(runs(), name).at(key).get<double>());
    const auto [low, high] = std::minmax_element(shares.begin(), shares.end());
    out.push_back(percent(runs().at("summary"), key));
    out.push_back({*low}), out.push_back({*high});
  }
  return out;
}

Ended summary_of_passes(const std::string& files) {
  std::FILE* pipe = popen(("python3 bench/studies/replay/summary.py " + files + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ended ended;
  for (int c; (c = std::fgetc(pipe)) != EOF;) ended.said += static_cast<char>(c);
  ended.status = WEXITSTATUS(pclose(pipe));
  return ended;
}

/// Median and largest error of each committed pass, in order, and of all.
const std::vector<Figures>& passes() {
  static const std::vector<Figures> all = [] {
    const Ended summary = summary_of_passes("bench/studies/replay/passes/*.csv");
    INFO(summary.said);
    REQUIRE(summary.status == 0);
    static const std::regex figures(R"(median (?:error )?(\d+\.\d) %[^\n]*largest (?:error )?(\d+\.\d) %)");
    std::vector<Figures> out;
    for (std::sregex_iterator it(summary.said.begin(), summary.said.end(), figures), end; it != end; ++it)
      out.push_back({{std::stod((*it)[1])}, {std::stod((*it)[2])}});
    REQUIRE(out.size() == 3);
    return out;
  }();
  return all;
}

}  // namespace

TEST_CASE("docs/accuracy.md: steps of published runs") {
  Rows expected;
  for (const auto& [row, name] : kFamilies) {
    const json &own = family(runs(), name), &stack = family(whole(runs()), name);
    expected.push_back({row + ", whole sources left out", by_origin(own) + all_rows(own)});
    expected.push_back({row + ", whole stacks left out", by_origin(stack) + all_rows(stack)});
  }
  const json &all = runs().at("summary"), &stacks = whole(runs()).at("summary");
  expected.push_back({"all steps, whole sources left out", by_origin(all) + all_rows(all)});
  expected.push_back({"all steps, whole stacks left out", by_origin(stacks) + all_rows(stacks)});
  check_table("docs/accuracy.md", "| steps of published runs |", expected, 1, 9);
}

TEST_CASE("docs/accuracy.md: everything else that is published") {
  const json& sweep = regime(runs(), "dense, tensor and pipeline");
  const json& gpts = vtrain().at("summary");
  const json& products = kernels();
  const json& rates = document("kernels", "kernel_rates.csv");
  const json &attention = regime(rates, "attention_forward, library measured"),
             &grouped = regime(rates, "grouped_gemm");
  const auto reduces = [](const json& from) -> Figures {
    return {percent(family(from, "all-reduce, one node"), "mape"),
            percent(regime(from, "all-reduce, many nodes, >= 64 MiB"), "mape")};
  };
  const std::string gathers = "gather, many nodes, >= 64 MiB";
  const json &torchtitan = document("memory", "torchtitan_runs.csv"),
             &outside = regime(document("memory", "outside_allocator.csv"), "several GPUs");
  const json& plans = published_plans();
  const json& placed = routing().at("summary");
  const json &later = later_memory().at("summary"), &now = memory_2026().at("summary");
  check_table(
      "docs/accuracy.md", "| what | figure | command |",
      {{"nanotron's sweep of layouts, whole source left out", {{sweep.at("spearman")}, percent(sweep, "regret")}},
       {"GPTs on one node of A100, whole source left out",
        {percent(gpts, "mape"), percent(gpts, "coverage80"), count(gpts, "n")}},
       {"products, each (n, k) left out: A100; H100",
        {percent(family(products, "gemm, A100-80G-SXM"), "mape"), percent(family(products, "gemm, H100-SXM"), "mape")}},
       {"attention by library, each source left out",
        {percent(attention, "mape"), percent(attention, "coverage80"), count(attention, "n"),
         count(attention, "origins")}},
       {"grouped products, of which no row is fitted",
        {percent(grouped, "mape"), percent(grouped, "bias"), percent(grouped, "coverage80"), count(grouped, "n")}},
       {"all-reduces on one node; on many from 64 MiB; each cluster left out", reduces(collectives())},
       {"the same, whole sources left out", reduces(whole(collectives()))},
       {"gathers and reduce-scatters on many nodes from 64 MiB, each cluster left out; whole sources left out",
        {percent(regime(collectives(), gathers), "mape"), percent(regime(whole(collectives()), gathers), "mape")}},
       {"memory allocated, Megatron-Core, each model left out",
        {percent(regime(memory(), "peak allocated"), "median_ape"), count(regime(memory(), "peak allocated"), "n")}},
       {"the same, whole source left out",
        {percent(regime(whole(memory()), "peak allocated"), "median_ape"),
         count(regime(whole(memory()), "peak allocated"), "n")}},
       {"memory reserved, nanotron, each (tp, pp) left out", memory_of(regime(memory(), "peak reserved"))},
       {"memory reserved, nanotron, whole source left out", memory_of(regime(whole(memory()), "peak reserved"))},
       {"memory reserved, torchtitan, each model left out", memory_of(torchtitan.at("summary"))},
       {"memory reserved, torchtitan, whole source left out", memory_of(whole(torchtitan).at("summary"))},
       {"memory reserved, each (tp, pp) or model left out: above the predicted 90 %, 95 %, 99 % quantile",
        above_quantiles()},
       {"memory of runs that no fit has seen",
        memory_of(later) + Figures{count(later, "origins"), percent(later, "origin_median_ape")}},
       {"memory of later runs, which no fit has seen",
        memory_of(now) + Figures{count(now, "origins"), percent(now, "origin_median_ape")}},
       {"the same, MoE alone", memory_of(family(memory_2026(), "MoE, peak"))},
       {"memory outside of the allocator, several GPUs, each source left out", memory_of(outside)},
       {"published layouts that lie in the space that a plan searches", {count(plans, "inside"), count(plans, "n")}},
       {"their steps, whole sources left out, by origin",
        {percent(plans, "origin_median_ape"), percent(plans, "origin_coverage80"), count(plans, "origins")}},
       {"their steps, all together", {percent(plans, "median_ape"), count(plans, "in_interval"), count(plans, "n")}},
       {"our choice instead of these layouts, both predicted",
        {percent(plans, "median_less_time"), count(plans, "beyond_interval"), count(plans, "n")}},
       {"steps under three placements of experts, whole source left out; ratio between placements",
        {percent(placed, "mape"), percent(routing().at("ratios"), "mape"), percent(placed, "coverage80"),
         count(placed, "n")}}},
      1, 2);
}

TEST_CASE("docs/accuracy.md: what is reached of the aims") {
  const auto reached = [](const char* name) -> Figures {
    const json& of = family(runs(), name);
    return {percent(of, "origin_median_ape"), percent(of, "median_ape"), percent(of, "p90_ape")};
  };
  const auto medians = [](const json& of) -> Figures {
    return {percent(of, "origin_median_ape"), percent(of, "median_ape")};
  };
  const auto choices = [](const char* name) -> Figures {
    const json& of = family(runs(), name);
    return {{of.at("spearman")}, percent(of, "regret")};
  };
  check_table(
      "docs/accuracy.md", "| set | aim | reached |",
      {{"MoE with FSDP and expert parallelism", reached("MoE, FSDP")},
       {"MoE with expert parallelism over replicas", reached("MoE, data parallel")},
       {"MoE with tensor and pipeline groups", reached("MoE, tensor and pipeline")},
       {"dense with tensor and pipeline groups", medians(family(runs(), "dense, tensor and pipeline"))},
       {"dense FSDP", medians(family(runs(), "dense, FSDP"))},
       {"dense FSDP, whole stacks left out", medians(family(whole(runs()), "dense, FSDP"))},
       {"choices between layouts, dispatchers and microbatches of one MoE run",
        choices("MoE, tensor and pipeline") + choices("MoE, data parallel") + choices("MoE, FSDP")},
       {"memory of MoE runs",
        {percent(family(memory_2026(), "MoE, peak"), "median_ape"), count(family(memory_2026(), "MoE, peak"), "n")}},
       {"80 % intervals", spread_of_coverage()},
       {"beyond 1.5 times the measurement, which the interval leaves out", far_off()}},
      2, 3);
}

TEST_CASE("docs/accuracy.md: the replay of our own trainer") {
  check_table("docs/accuracy.md", "| pass, by its date |",
              {{"2026-11-23, first", passes()[0]}, {"2026-11-23, second", passes()[1]}, {"both", passes()[2]}}, 1, 3);
}

TEST_CASE("README: how accurate it is") {
  const auto both = [](const json& of) -> Figures {
    return {count(of, "n"),
            count(of, "origins"),
            percent(of, "origin_median_ape"),
            percent(of, "median_ape"),
            percent(of, "p90_ape"),
            percent(of, "origin_coverage80"),
            percent(of, "coverage80")};
  };
  const auto steps = [&](const char* name) { return both(family(runs(), name)); };
  check_table("README.md", "| what is predicted |",
              {{"memory, runs of 2026", both(memory_2026().at("summary"))},
               {"memory, other unseen runs", both(later_memory().at("summary"))},
               {"steps, dense with tensor and pipeline groups", steps("dense, tensor and pipeline")},
               {"steps, MoE with FSDP: all on 8 GPUs, where the plan above has 3,072", steps("MoE, FSDP")},
               {"steps, MoE with tensor and pipeline groups", steps("MoE, tensor and pipeline")},
               {"steps, MoE over replicas", steps("MoE, data parallel")},
               {"steps, dense FSDP", steps("dense, FSDP")},
               {"steps of several GPUs of ours, NCCL", {}},
               {"steps of our trainer on two CPU cores, 2026-11-23", Figures{count(9), count(1)} + passes()[2]}},
              1, 8);
  // The row of MoE with FSDP says how many GPUs its runs had.
  for (const json& row : runs().at("rows"))
    if (row.at("regime").get<std::string>().starts_with("MoE, FSDP"))
      CHECK(row.at("regime").get<std::string>().find("one node") != std::string::npos);
}

TEST_CASE("a pass of our own trainer that is further off than allowed is a regression") {
  std::ifstream good("bench/studies/replay/passes/2026-11-23-epyc-1.csv");
  const wt::test::TempDirectory folder;
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
