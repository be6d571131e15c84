// The table of docs/accuracy.md beside the commands that it names.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/fixtures/validated.hpp"

using namespace wt::test;

namespace {

/// Numbers of the table's row that begins so, in order.
std::vector<double> figures(const std::string& begin) {
  std::ifstream in("docs/accuracy.md");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("| " + begin)) {
      const std::size_t from = line.find(" | ", 2);
      const std::string cell = line.substr(from, line.find(" | ", from + 3) - from);
      static const std::regex number(R"([+-]?\d+(\.\d+)?(?= %)|0\.\d+)");
      std::vector<double> out;
      for (std::sregex_iterator it(cell.begin(), cell.end(), number), end; it != end; ++it)
        out.push_back(std::stod(it->str()));
      return out;
    }
  FAIL("docs/accuracy.md has no row '" << begin << "'");
  return {};
}

/// As fractions that JSON has, to the digits that the page has.
void check_figures(const std::string& row, const std::vector<double>& expected, double digits = 0.06) {
  const std::vector<double> said = figures(row);
  INFO(row);
  REQUIRE(said.size() >= expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(said[i] == Approx(expected[i]).margin(digits));
}

double percent(const json& from, const char* key) { return 100 * from.at(key).get<double>(); }

}  // namespace

TEST_CASE("the README's figures are rows of docs/accuracy.md") {
  std::ifstream page("docs/accuracy.md"), readme("README.md");
  const std::string rows{std::istreambuf_iterator<char>(page), {}};
  std::string line;
  while (std::getline(readme, line) && line != "| what | figure | command |") {
  }
  std::getline(readme, line);  // the rule below the header
  int checked = 0;
  for (; std::getline(readme, line) && line.starts_with("| "); ++checked)
    CHECK_THAT(rows, Catch::Contains(line.substr(0, line.rfind(" | `") + 3)));  // all but the command
  CHECK(checked == 5);
}

TEST_CASE("docs/accuracy.md says what the commands print") {
  // Fits of many constants: the last digit depends on the processor's rounding.
  const json &families = runs().at("families"), &whole = runs().at("whole_sources_left_out");
  const auto step = [](const std::string& row, const json& from) {
    check_figures(
        row,
        {percent(from, "median_ape"), percent(from, "p90_ape"), percent(from, "bias"), percent(from, "coverage80")},
        1.5);
  };
  for (const auto& [row, family] : {std::pair("MoE with FSDP and expert parallelism", "MoE, FSDP"),
                                    {"MoE with expert parallelism over replicas", "MoE, data parallel"},
                                    {"MoE with tensor and pipeline groups", "MoE, tensor and pipeline"},
                                    {"dense FSDP", "dense, FSDP"},
                                    {"dense with tensor and pipeline groups", "dense, tensor and pipeline"}}) {
    step(row + std::string(", whole sources left out"), part(families, "family", family));
    step(row + std::string(", whole stacks left out"), part(whole.at("families"), "family", family));
  }
  step("dense FSDP with tensor groups, whole sources", part(families, "family", "dense, FSDP with tensor groups"));
  step("dense data parallelism, whole sources", part(families, "family", "dense, data parallel"));
  step("all steps, whole sources left out", runs().at("summary"));
  const json& sweep = part(runs().at("regimes"), "regime", "dense, tensor and pipeline");
  CHECK(figures("nanotron's sweep").at(0) == Approx(sweep.at("spearman").get<double>()).margin(0.02));
  CHECK(figures("nanotron's sweep").at(1) == Approx(percent(sweep, "regret")).margin(1));
  const json& products = kernels().at("families");
  check_figures("products, each (n, k) left out", {percent(part(products, "family", "gemm, A100-80G-SXM"), "mape"),
                                                   percent(part(products, "family", "gemm, H100-SXM"), "mape")});
  const json& rates = document("kernels", "kernel_rates.csv").at("regimes");
  const json& attention = part(rates, "regime", "attention_forward, library measured");
  const json& grouped = part(rates, "regime", "grouped_gemm");
  check_figures("attention by library", {percent(attention, "mape"), percent(attention, "coverage80")}, 0.6);
  check_figures("grouped products",
                {percent(grouped, "mape"), percent(grouped, "bias"), percent(grouped, "coverage80")}, 0.6);
  const json &clusters = collectives(), &sources = collectives().at("whole_sources_left_out");
  const auto reduces = [](const std::string& row, const json& from) {
    check_figures(row,
                  {percent(part(from.at("families"), "family", "all-reduce, one node"), "mape"),
                   percent(part(from.at("regimes"), "regime", "all-reduce, many nodes, >= 64 MiB"), "mape")},
                  0.3);
  };
  reduces("all-reduces on one node", clusters);
  reduces("the same, whole sources left out", sources);
  const std::string gathers = "gather, many nodes, >= 64 MiB";
  check_figures("gathers and reduce-scatters on many nodes",
                {percent(part(clusters.at("regimes"), "regime", gathers), "mape"),
                 percent(part(sources.at("regimes"), "regime", gathers), "mape")},
                0.3);
  const json& regimes = memory().at("regimes");
  check_figures("memory allocated", {percent(part(regimes, "regime", "peak allocated"), "median_ape")}, 0.1);
  const json& nanotron = part(regimes, "regime", "peak reserved");
  check_figures("memory reserved, nanotron", {percent(nanotron, "median_ape")}, 0.3);
  CHECK(figures("memory reserved, nanotron").at(1) == Approx(percent(nanotron, "coverage80")).margin(0.6));
  const json& unseen = document("memory", "later_runs.csv").at("summary");
  check_figures("memory of runs that no fit has seen", {percent(unseen, "median_ape"), percent(unseen, "coverage80")},
                0.6);
  const json later = document("memory", "runs_2026.csv");
  const json &all = later.at("summary"), &experts = part(later.at("families"), "family", "MoE, peak");
  const std::vector<double> said = figures("memory of later runs");
  CHECK(said.at(0) == Approx(percent(all, "median_ape")).margin(0.3));
  CHECK(said.at(1) == Approx(percent(all, "coverage80")).margin(0.6));
  CHECK(said.at(3) == Approx(percent(experts, "median_ape")).margin(0.3));
  CHECK(said.at(4) == Approx(percent(experts, "coverage80")).margin(0.6));
  const json& torchtitan = document("memory", "torchtitan_runs.csv").at("summary");
  check_figures("memory reserved, torchtitan", {percent(torchtitan, "median_ape"), percent(torchtitan, "coverage80")},
                0.3);
  const json outside = document("memory", "outside_allocator.csv");
  const json& several = part(outside.at("regimes"), "regime", "several GPUs");
  check_figures("memory outside of the allocator", {percent(several, "median_ape"), percent(several, "coverage80")},
                0.3);
  check_figures("steps under three placements",
                {percent(routing().at("summary"), "mape"), percent(routing().at("ratios"), "mape"),
                 percent(routing().at("summary"), "coverage80")},
                0.5);
}
