// Tables and transcripts of docs/validate.md beside the commands that print them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "tests/fixtures/page_tables.hpp"
#include "tests/fixtures/validated.hpp"

using namespace wt::test;

namespace {

const std::string kPage = "docs/validate.md";

}  // namespace

TEST_CASE("docs/validate.md: what the commands print", "[.nightly]") {
  for (const char* arguments :
       {"kernels configs/measurements/kernel_times.csv", "collectives configs/measurements/collectives.csv",
        "routing configs/measurements/routing_step_times.csv", "memory configs/measurements/training_runs.csv",
        "memory configs/measurements/outside_allocator.csv", "energy"}) {
    const auto [status, text] = run(arguments);
    CHECK(status == 0);
    check_transcript(kPage, std::string("windtunnel validate ") + arguments, text);
  }
}

TEST_CASE("docs/validate.md: published rates by library") {
  const json& rates = document("kernels", "kernel_rates.csv");
  const json& all = rates.at("summary");
  check_numbers(paragraph(kPage, "`validate kernels configs/measurements/kernel_rates.csv` predicts "),
                {count(all, "n"), count(static_cast<double>(rates.at("rows").size())), percent(all, "mape"),
                 percent(all, "p90_ape"), percent(all, "coverage80"), percent(all.at("baseline"), "mape")});
  const auto row = [&](const char* of) -> Figures {
    const json& found = regime(rates, of);
    return {count(found, "n"), percent(found, "mape"), percent(found, "bias"), percent(found, "coverage80")};
  };
  check_table(kPage, "| rows | n |",
              {{"attention forward, library measured on this GPU by another origin",
                row("attention_forward, library measured")},
               {"attention forward, library measured only on another GPU",
                row("attention_forward, library measured on another GPU")}},
              1, 5);
}

TEST_CASE("docs/validate.md: grouped products") {
  const auto figures = [](const json& of) -> Figures {
    return {count(of, "n"), percent(of, "mape"), percent(of, "bias"), percent(of, "coverage80")};
  };
  check_table(kPage, "| grouped products without |",
              {{"their (n, k)", figures(grouped_products().at("summary"))},
               {"their origin", figures(apart(grouped_products(), "grouped_origins_left_out").at("summary"))},
               {"their library", figures(apart(grouped_products(), "grouped_libraries_left_out").at("summary"))},
               {"their library, without weight gradients",
                figures(regime(apart(grouped_products(), "grouped_libraries_left_out"),
                               "grouped_gemm, library never measured"))},
               {"rows that time more than the kernel", figures(apart(grouped_products(), "more_timed").at("summary"))}},
              1, 5);
}

TEST_CASE("docs/validate.md: collectives with whole sources left out") {
  const json &clusters = collectives(), &sources = whole(collectives());
  const auto both = [&](const std::string& of) -> Figures {
    return {percent(regime(clusters, of), "mape"), percent(regime(sources, of), "mape")};
  };
  const std::string one_node = "all-reduce, one node";
  Rows rows = {{one_node, {percent(family(clusters, one_node), "mape"), percent(family(sources, one_node), "mape")}}};
  for (const char* of :
       {"all-reduce, many nodes, >= 64 MiB", "all-reduce, many nodes, < 64 MiB", "gather, many nodes, >= 64 MiB"})
    rows.push_back({of, both(of)});
  check_table(kPage, "| collective | error, each", rows, 1, 3);
}

TEST_CASE("docs/validate.md: published plans", "[.nightly]") {  // two minutes
  const json& summary = published_plans().at("summary");
  std::string text;
  for (const std::string& line : transcript(kPage, "windtunnel validate plans")) text += line + " ";
  check_numbers(text, {count(summary, "inside"), count(summary, "n"), count(summary, "origins"),
                       percent(summary, "origin_median_ape"), percent(summary, "median_ape"),
                       count(summary, "in_interval"), count(summary, "fits"), count(summary, "ours_predicted_faster"),
                       count(summary, "n"), percent(summary, "median_less_time"), count(summary, "beyond_interval")});

  Rows rows;
  for (const json& plan : published_plans().at("plans")) {
    const std::string name = plan.at("name");  // model, GPUs, layout, batch
    const json &theirs = plan.at("theirs"), &ours = plan.at("ours");
    const double published = plan.at("published_s"), predicted = theirs.at("predicted_s");
    static const std::regex release(R"( \(.*\))"), longer("H100 SXM ~94-95GB HBM2e lower TDP");
    rows.push_back(
        {std::regex_replace(std::regex_replace(name.substr(0, name.find(", dp ")), release, ""), longer, "H100-96GB"),
         {count(plan, "layouts"),
          {published},
          {predicted},
          {theirs.at("interval80_s")[0]},
          {theirs.at("interval80_s")[1]},
          {100 * (predicted / published - 1)},
          {ours.at("predicted_s")},
          percent(plan, "less_time")},
         {plan.at("stack").get<std::string>() + " | ", plan.at("fits") ? " | yes |" : " | no |"}});
  }
  check_table(kPage, "| run | stack |", rows, 1, 10);
}

namespace {

/// Rows, median error, 90th percentile and share inside their interval of an origin's rows.
Figures of_origin(const json& from, const std::string& origin) {
  std::vector<double> sizes;
  double inside = 0;
  for (const json& row : from.at("rows")) {
    if (row.at("origin") != origin || row.at("predicted_bytes").is_null()) continue;
    const double measured = row.at("measured_bytes");
    sizes.push_back(100 * std::abs(row.at("predicted_bytes").get<double>() / measured - 1));
    inside += row.at("interval80_bytes")[0] <= measured && measured <= row.at("interval80_bytes")[1].get<double>();
  }
  REQUIRE(sizes.size() > 1);
  std::sort(sizes.begin(), sizes.end());
  const auto quantile = [&](double p) {
    const double at = p * static_cast<double>(sizes.size() - 1);
    const std::size_t below = std::min(static_cast<std::size_t>(at), sizes.size() - 2);
    return sizes[below] + (at - static_cast<double>(below)) * (sizes[below + 1] - sizes[below]);
  };
  const double n = static_cast<double>(sizes.size());
  return {count(n), {quantile(0.5)}, {quantile(0.9)}, {100 * inside / n}};
}

}  // namespace

TEST_CASE("docs/validate.md: figures of memory") {
  const auto row = [](const json& of) -> Figures {
    return {count(of, "n"), percent(of, "median_ape"), percent(of, "p90_ape"), percent(of, "coverage80")};
  };
  const json& layers = document("memory", "simulator_tables.csv");
  check_table(
      kPage, "| figures | rows |",
      {{"allocated, Megatron-Core (SimuMax)", row(regime(memory(), "peak allocated"))},
       {"reserved, nanotron", row(regime(memory(), "peak reserved"))},
       {"the same, whole source left out", row(regime(whole(memory()), "peak reserved"))},
       {"reserved, torchtitan", row(document("memory", "torchtitan_runs.csv").at("summary"))},
       {"activations of layers (Korthikanti et al. 2022)", row(regime(layers, "activations of the layers"))},
       {"states of layers (the same)", row(regime(layers, "weights and optimizer of the layers"))},
       {"kind of figure not said, BLOOM's trials on Megatron-DeepSpeed", of_origin(later_memory(), "bigscience")},
       {"kind of figure not said, KempnerForge", of_origin(later_memory(), "kempnerforge")},
       {"stack not described, whynlp's TinyLlama", of_origin(later_memory(), "whynlp-tinyllama")}},
      1, 5);
}
