// The README's accuracy table beside the commands that it names.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/validated.hpp"

using namespace wt::test;

namespace {

/// Numbers of the README's table row that begins so, in order.
std::vector<double> readme_figures(const std::string& begin) {
  std::ifstream in("README.md");
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
  FAIL("README.md has no row '" << begin << "'");
  return {};
}

/// As fractions that JSON has, to the digits that the README has.
void check_figures(const std::string& row, const std::vector<double>& expected, double digits = 0.06) {
  const std::vector<double> said = readme_figures(row);
  INFO(row);
  REQUIRE(said.size() >= expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(said[i] == Approx(expected[i]).margin(digits));
}

double percent(const json& from, const char* key) { return 100 * from.at(key).get<double>(); }

}  // namespace

TEST_CASE("the README's accuracy table is what the command prints") {
  const json &families = kernels().at("families"), &a100 = part(families, "family", "gemm, A100-80G-SXM");
  const json& h100 = part(families, "family", "gemm, H100-SXM");
  check_figures("published GEMM times,",
                {percent(a100, "mape"), percent(h100, "mape"), percent(a100, "p90_ape"), percent(h100, "p90_ape"),
                 percent(a100.at("baseline"), "mape"), percent(h100.at("baseline"), "mape")});
  const json &regimes = collectives().at("regimes"), &sources = collectives().at("whole_sources_left_out");
  check_figures("published all-reduces,",
                {percent(part(collectives().at("families"), "family", "all-reduce, one node"), "mape"),
                 percent(part(regimes, "regime", "all-reduce, many nodes, >= 64 MiB"), "mape"),
                 percent(part(regimes, "regime", "all-reduce, many nodes, >= 64 MiB, link never measured"), "mape"),
                 percent(part(regimes, "regime", "all-reduce, many nodes, < 64 MiB"), "mape"),
                 percent(part(sources.at("families"), "family", "all-reduce, one node"), "mape"),
                 percent(part(sources.at("regimes"), "regime", "all-reduce, many nodes, >= 64 MiB"), "mape"),
                 percent(part(sources.at("regimes"), "regime", "all-reduce, many nodes, < 64 MiB"), "mape")});
  // Fits of many constants: the last digit depends on the processor's rounding.
  const json& fsdp = part(runs().at("families"), "family", "dense, FSDP");
  const json& strict = part(runs().at("whole_sources_left_out").at("families"), "family", "dense, FSDP");
  check_figures("published steps, each (source, model) left out",
                {percent(fsdp, "median_ape"), percent(fsdp, "mape"), percent(fsdp.at("baseline"), "mape"),
                 percent(fsdp, "bias"), percent(strict, "median_ape"), percent(strict, "bias")},
                0.2);
  std::vector<double> replayed;
  for (const char* family : {"dense, FSDP", "dense, tensor and pipeline", "MoE, tensor and pipeline"})
    for (const char* figure : {"median_ape", "mape", "bias"})
      replayed.push_back(percent(part(runs().at("replayed").at("families"), "family", family), figure));
  const json& replayed_sweep = part(runs().at("replayed").at("regimes"), "regime", "dense, stack never measured");
  check_figures("the same steps replayed", replayed, 0.3);
  CHECK(readme_figures("the same steps replayed").at(9) ==
        Approx(replayed_sweep.at("spearman").get<double>()).margin(0.01));
  CHECK(readme_figures("the same steps replayed").at(10) == Approx(percent(replayed_sweep, "regret")).margin(0.3));
  const json& sweep = part(runs().at("regimes"), "regime", "dense, stack never measured");
  check_figures("nanotron's sweep", {sweep.at("spearman").get<double>(), percent(sweep, "regret")}, 0.06);
  CHECK(readme_figures("nanotron's sweep").at(2) == Approx(percent(sweep, "mape")).margin(0.3));
  const json& rates = document("kernels", "kernel_rates.csv").at("summary");
  check_figures("published rates of attention",
                {percent(rates, "mape"), percent(rates.at("baseline"), "mape"), percent(rates, "coverage80")}, 0.6);
  CHECK(readme_figures("nanotron's sweep").front() == Approx(sweep.at("spearman").get<double>()).margin(0.01));
  check_figures("MoE with tensor and pipeline groups",
                {percent(part(runs().at("families"), "family", "MoE, tensor and pipeline"), "median_ape"),
                 percent(part(runs().at("regimes"), "regime", "MoE, FSDP, one node"), "median_ape")},
                0.3);
  check_figures("vTrain's 1,440",
                {percent(vtrain().at("summary"), "mape"), percent(vtrain().at("summary").at("baseline"), "mape"),
                 percent(vtrain().at("whole_sources_left_out").at("summary"), "mape")},
                0.3);
  check_figures("published steps of two MoE models",
                {percent(routing().at("summary"), "mape"), percent(routing().at("summary").at("baseline"), "mape"),
                 percent(routing().at("ratios"), "mape"), percent(routing().at("ratios"), "largest"),
                 percent(routing().at("ratios").at("baseline"), "mape"),
                 percent(routing().at("whole_sources_left_out").at("summary"), "mape")},
                0.5);
  const json& reserved = part(memory().at("regimes"), "regime", "peak reserved");
  const json& torchtitan = document("memory", "torchtitan_runs.csv").at("summary");
  double worst = 0;
  for (const json& row : memory().at("rows"))
    if (row.at("regime") == "peak allocated")
      worst = std::max(worst,
                       std::abs(row.at("predicted_bytes").get<double>() / row.at("measured_bytes").get<double>() - 1));
  check_figures("published memory of training steps",
                {100 * worst, percent(reserved, "median_ape"), percent(reserved, "p90_ape"),
                 percent(torchtitan, "median_ape"), percent(torchtitan, "p90_ape")},
                0.3);
  const json& later = document("runs", "later_runs.csv").at("summary");
  const std::vector<double> said = readme_figures("126 runs of ten other sources");
  REQUIRE(said.size() == 8);  // five of the first sight, three of now
  CHECK(said[5] == Approx(percent(later, "median_ape")).margin(0.3));
  CHECK(said[6] == Approx(percent(later, "mape")).margin(0.3));
  CHECK(said[7] == Approx(percent(later, "coverage80")).margin(0.8));
  check_figures("these rows inside their 80 % interval",
                {percent(kernels().at("summary"), "coverage80"), percent(collectives().at("summary"), "coverage80"),
                 percent(memory().at("summary"), "coverage80"), percent(vtrain().at("summary"), "coverage80"),
                 percent(runs().at("summary"), "coverage80")},
                0.8);
}
