// Tables of docs/accuracy.md and README.md about published measurements beside the commands that they name: every row,
// figure, count and aim.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "configs/base/statistics.hpp"
#include "sim/measurements/csv.hpp"
#include "tests/fixtures/page_tables.hpp"
#include "tests/fixtures/replay_passes.hpp"
#include "tests/fixtures/validated.hpp"

using namespace wt::test;

namespace {

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

/// Pairs of an origin and an architecture (dense, MoE) with five rows or more: how many have a smaller median error
/// than a constant MFU, and how many there are; the same of MoE alone.
Figures nearer_than_constant_mfu() {
  std::map<std::pair<std::string, bool>, std::pair<std::vector<double>, std::vector<double>>> errors;
  for (const json& row : runs().at("rows")) {
    if (row.at("predicted_s").is_null() || row.at("baseline_s").is_null()) continue;
    const double measured = row.at("measured_s");
    auto& [ours, theirs] = errors[{row.at("origin"), row.at("regime").get<std::string>().starts_with("MoE")}];
    ours.push_back(std::abs(row.at("predicted_s").get<double>() / measured - 1));
    theirs.push_back(std::abs(row.at("baseline_s").get<double>() / measured - 1));
  }
  double nearer = 0, all = 0, nearer_moe = 0, all_moe = 0;
  for (const auto& [pair, both] : errors) {
    if (both.first.size() < 5) continue;
    const bool better = wt::median(both.first) < wt::median(both.second);
    all += 1, nearer += better ? 1 : 0;
    if (pair.second) all_moe += 1, nearer_moe += better ? 1 : 0;
  }
  return {count(nearer), count(all), count(nearer_moe), count(all_moe)};
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

TEST_CASE("docs/accuracy.md: everything else that is published", "[.nightly]") {  // `validate plans`: two minutes
  const json& sweep = regime(runs(), "dense, tensor and pipeline");
  const json& gpts = vtrain().at("summary");
  const json& products = kernels();
  const json& rates = document("kernels", "kernel_rates.csv");
  const json& attention = regime(rates, "attention_forward, library measured");
  const json &shapes = grouped_products().at("summary"),
             &origins = apart(grouped_products(), "grouped_origins_left_out").at("summary"),
             &libraries = apart(grouped_products(), "grouped_libraries_left_out").at("summary");
  const auto reduces = [](const json& from) -> Figures {
    return {percent(family(from, "all-reduce, one node"), "mape"),
            percent(regime(from, "all-reduce, many nodes, >= 64 MiB"), "mape")};
  };
  const std::string gathers = "gather, many nodes, >= 64 MiB";
  const json &torchtitan = document("memory", "torchtitan_runs.csv"),
             &outside = regime(document("memory", "outside_allocator.csv"), "several GPUs");
  const json& plans = published_plans().at("summary");
  const json& placed = routing().at("summary");
  const json &later = later_memory().at("summary"), &now = memory_2026().at("summary");
  const json& energy = document("energy", "");
  const json &at_node = regime(energy, "at the node"), &alone = regime(energy, "GPU alone"),
             &joules = apart(energy, "joules_of_a_token").at("summary");
  check_table(
      "docs/accuracy.md", "| what | figure | command |",
      {{"nanotron's sweep of layouts, whole source left out", {{sweep.at("spearman")}, percent(sweep, "regret")}},
       {"origins with five rows or more, dense and MoE apart, nearer than with a constant MFU; MoE alone",
        nearer_than_constant_mfu()},
       {"GPTs on one node of A100, whole source left out",
        {percent(gpts, "mape"), percent(gpts, "coverage80"), count(gpts, "n")}},
       {"products, each (n, k) left out: A100; H100",
        {percent(family(products, "gemm, A100-80G-SXM"), "mape"), percent(family(products, "gemm, H100-SXM"), "mape")}},
       {"attention by library, each source left out",
        {percent(attention, "mape"), percent(attention, "coverage80"), count(attention, "n"),
         count(attention, "origins")}},
       {"grouped products, each (n, k) left out",
        {percent(shapes, "mape"), percent(shapes, "coverage80"), count(shapes, "n")}},
       {"the same, whole sources left out; whole libraries left out",
        {percent(origins, "mape"), percent(libraries, "mape")}},
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
         count(placed, "n")}},
       {"watts of a GPU at its node; of the GPU alone",
        {percent(at_node, "mape"), count(at_node, "n"), count(at_node, "origins"), percent(alone, "mape"),
         count(alone, "n"), count(alone, "origins")}},
       {"the same, all together",
        {percent(energy.at("summary"), "origin_median_ape"), percent(energy.at("summary"), "coverage80"),
         count(energy.at("summary"), "n")}},
       {"joules of a token, with the error of the step",
        {percent(joules, "origin_median_ape"), percent(joules, "coverage80"), count(joules, "n")}}},
      1, 2);
}

namespace {

/// Aims of families of steps: median error, 90th percentile.
struct StepAim {
  const char* family;
  double median, p90;
};
constexpr StepAim kMoeAims[] = {
    {"MoE, FSDP", 0.10, 0.25}, {"MoE, data parallel", 0.10, 0.25}, {"MoE, tensor and pipeline", 0.12, 0.30}};
constexpr double kMoeMemoryAim = 0.07;

}  // namespace

TEST_CASE("docs/accuracy.md: the aims, and what is reached of them") {
  const auto steps = [](const StepAim& aim) -> Figures {
    const json& of = family(runs(), aim.family);
    return {count(100 * aim.median), count(100 * aim.p90), percent(of, "origin_median_ape"), percent(of, "median_ape"),
            percent(of, "p90_ape")};
  };
  const auto medians = [](double aim, const json& of) -> Figures {
    return {count(aim), percent(of, "origin_median_ape"), percent(of, "median_ape")};
  };
  const auto choices = [](const char* name) -> Figures {
    const json& of = family(runs(), name);
    return {{of.at("spearman")}, percent(of, "regret")};
  };
  const json& memories = family(memory_2026(), "MoE, peak");
  check_table(
      "docs/accuracy.md", "| set | aim | reached |",
      {{"MoE with FSDP and expert parallelism", steps(kMoeAims[0])},
       {"MoE with expert parallelism over replicas", steps(kMoeAims[1])},
       {"MoE with tensor and pipeline groups", steps(kMoeAims[2])},
       {"dense with tensor and pipeline groups", medians(8, family(runs(), "dense, tensor and pipeline"))},
       {"dense FSDP", medians(5, family(runs(), "dense, FSDP"))},
       {"dense FSDP, whole stacks left out", medians(7, family(whole(runs()), "dense, FSDP"))},
       {"choices between layouts, dispatchers and microbatches of one MoE run",
        Figures{count(0.9), count(2)} + choices("MoE, tensor and pipeline") + choices("MoE, data parallel") +
            choices("MoE, FSDP")},
       {"memory of MoE runs", {count(100 * kMoeMemoryAim), percent(memories, "median_ape"), count(memories, "n")}},
       {"80 % intervals", Figures{count(75), count(90)} + spread_of_coverage()},
       {"beyond 1.5 times the measurement, which the interval leaves out", far_off(), {"none"}}},
      1, 3);
}

TEST_CASE("README: whether a MoE row reaches its aim") {
  bool reached = family(memory_2026(), "MoE, peak").at("median_ape") <= kMoeMemoryAim;
  for (const StepAim& aim : kMoeAims) {
    const json& of = family(runs(), aim.family);
    reached = reached || (of.at("origin_median_ape") <= aim.median && of.at("p90_ape") <= aim.p90);
  }
  std::ifstream page("README.md");
  const std::string text(std::istreambuf_iterator<char>(page), {});
  CHECK((text.find("No MoE row reaches its aim.") != std::string::npos) == !reached);
}

namespace {

/// Median error in percent, and count, of predicted steps whose regime starts so.
std::pair<double, int> median_of(const std::string& starts) {
  std::vector<double> sizes;
  for (const json& row : runs().at("rows"))
    if (!row.at("predicted_s").is_null() && row.at("regime").get<std::string>().starts_with(starts))
      sizes.push_back(100 * std::abs(row.at("predicted_s").get<double>() / row.at("measured_s").get<double>() - 1));
  REQUIRE_FALSE(sizes.empty());
  std::sort(sizes.begin(), sizes.end());
  const std::size_t n = sizes.size();
  return {(sizes[(n - 1) / 2] + sizes[n / 2]) / 2, static_cast<int>(n)};
}

constexpr const char* kAblation = "bench/studies/ablation/ablation.csv";

/// By what is taken out and the family: rows, error with it in percent, error without it. The page has the day.
std::map<std::pair<std::string, std::string>, std::vector<std::string>> ablations() {
  const auto recorded =
      wt::read_csv(kAblation, {"day", "without", "family", "rows", "error_with_percent", "error_without_percent"});
  CHECK(recorded.broken.empty());
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> out;
  const std::string page = paragraph("docs/accuracy.md", "The next table shows how much each modelled mechanism");
  for (const wt::CsvRow& row : recorded.rows) {
    CHECK_THAT(page, Catch::Contains("of " + row.cells[0]));
    out[{row.cells[1], row.cells[2]}] = {row.cells[3], row.cells[4], row.cells[5]};
  }
  return out;
}

}  // namespace

TEST_CASE("docs/accuracy.md: what mechanisms buy, as it was recorded") {
  const auto recorded = ablations();
  const auto row = [&](const std::string& name, const std::string& without, const std::string& family) -> Row {
    INFO(without << ", " << family);
    REQUIRE(recorded.count({without, family}) == 1);
    Figures figures;
    for (const std::string& cell : recorded.at({without, family})) figures.push_back(count(std::stod(cell)));
    return {name, figures};
  };
  check_table(
      "docs/accuracy.md", "| mechanism | rows |",
      {row("dispatchers other than NCCL's all-to-all: MoE", "dispatchers", "MoE"),
       row("number formats other than bf16: MoE", "formats", "MoE"), row("number formats: dense", "formats", "dense"),
       row("whole experts beside tensor groups: MoE", "whole experts", "MoE"),
       row("loads that are not balanced, where the run did not force balance: MoE", "loads", "MoE"),
       row("exchanges beside another microbatch: over replicas", "overlap", "MoE, data parallel"),
       row("exchanges beside another microbatch: tensor and pipeline groups", "overlap", "MoE, tensor and pipeline"),
       row("fused kernels for routing: MoE", "fused routing", "MoE"),
       row("gathers and reductions that wait, in JAX: MoE with FSDP", "gathers between layers", "MoE, FSDP"),
       row("FSDP's copies between collectives' buffers and weights: MoE with FSDP", "collective copies", "MoE, FSDP"),
       row("FSDP's copies: dense FSDP", "collective copies", "dense, FSDP"),
       row("FSDP's copies, through the constants alone: MoE with tensor and pipeline groups", "collective copies",
           "MoE, tensor and pipeline"),
       row("gradients added by a kernel of their own, where weights stay: dense, data parallel", "gradient kernel",
           "dense, data parallel"),
       row("the same: dense with tensor and pipeline groups", "gradient kernel", "dense, tensor and pipeline")},
      1, 4);
}

// A recording of other predictions than today's says nothing of today's mechanisms. bench/studies/ablation makes it
// anew.
TEST_CASE("what was recorded of mechanisms is of the predictions that the command makes") {
  int families = 0;
  for (const auto& [of, cells] : ablations()) {
    if (of.first != "nothing") continue;
    ++families;
    INFO(kAblation << ": " << of.second);
    const auto [median, rows] = median_of(of.second);
    CHECK(std::stoi(cells[0]) == rows);
    check_number(cells[1], {median});
  }
  CHECK(families == 8);
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
               {"steps, MoE with FSDP, up to 128 GPUs, where the plan above has 3,072", steps("MoE, FSDP")},
               {"steps, MoE with tensor and pipeline groups", steps("MoE, tensor and pipeline")},
               {"steps, MoE over replicas", steps("MoE, data parallel")},
               {"steps, dense FSDP", steps("dense, FSDP")},
               {"steps of several GPUs of ours, NCCL", {}},
               {"steps of our trainer on two CPU cores, 2026-11-23", Figures{count(9), count(1)} + passes()[2]}},
              1, 8);
}
