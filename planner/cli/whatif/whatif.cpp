// windtunnel whatif: plans a study again with other values of its keys.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/model_words.hpp"
#include "configs/files/study_keys.hpp"
#include "configs/files/study_prices.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/study_words.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/whatif/whatif_report.hpp"
#include "reports/render/progress.hpp"

namespace wt {
namespace {

struct Options {
  std::string study, measured, output;
  std::vector<std::string> set, sweep;
  GivenPrices prices;
  bool json = false, allow_assumed = false;
};

void what_if_command(const Options& o) {
  const std::filesystem::path file = find_config("studies", o.study);
  std::vector<KeyValuesOf> settings, sweeps;
  for (const std::string& one : o.set) settings.push_back(parse_assignment(one, false));
  for (const std::string& one : o.sweep) sweeps.push_back(parse_assignment(one, true));
  if (!o.output.empty()) make_folder(o.output);
  Progress bar("reading inputs");
  const std::string text =
      with_measured(with_prices(read_file(file, "a study file"), o.prices, file.string()), o.measured);
  const WhatIf result = what_if(text, file.string(), settings, sweeps, o.allow_assumed, bar.of_parts());
  bar.finish();
  fmt::print(stderr, "{}", model_lines(study_from_text(text, file.string()).model));
  std::vector<std::filesystem::path> files;
  if (!o.output.empty()) files = write_what_if(result, o.output);
  if (o.json) {
    fmt::print("{}\n", what_if_json(result).dump(1));
  } else {
    fmt::print("{}\n\n{}", what_if_answer(result), shown_table(what_if_table(result)));
    for (const std::string& note : what_if_notes(result)) fmt::print("- {}\n", note);
    for (const WhatIfRow& row : result.rows)
      if (!row.plan && result.base() != nullptr && row.failure == Code::finding)
        fmt::print("- {}: {}\n", fmt::join(row.values, ", "), row.misfit);
    for (const auto& written : files) fmt::print("wrote {}\n", written.string());
  }
  Code status = Code::finding;  // if no row has a plan
  bool planned = false;
  for (const WhatIfRow& row : result.rows) {
    planned = planned || row.plan;
    if (row.plan || row.failure == Code::finding) continue;
    status = row.failure;
    fmt::print(stderr, "windtunnel: {}: {}\n", fmt::join(row.values, ", "), row.misfit);
  }
  if (!planned && status == Code::finding) fmt::print(stderr, "windtunnel: {}\n", result.rows.front().misfit);
  if (!planned || status != Code::finding) set_status(static_cast<int>(status));
}

}  // namespace

void add_whatif(CLI::App& app) {
  const Command command(
      app, "whatif",
      "Plan a study again with other values of its keys, one row a value\n"
      "Example: windtunnel whatif dbrx-3072-h100 --sweep cluster.nic.bandwidth=100Gb/s,200Gb/s,400Gb/s -o out/nic\n"
      "         windtunnel whatif dbrx-3072-h100 --set search.expert_degrees=8 --sweep search.shard_sizes=64,128,256");
  const auto o = command.runs(what_if_command);
  command.option("study", o->study, "Study file, or a name in configs/studies").required();
  command.option("--set", o->set, "key=value, a dotted key of the study, cluster.* or model.*; may be repeated")
      .one_a_mention();
  add_price_words(command, o->prices);
  command.option("--sweep", o->sweep, "key=a,b,c; may be repeated, then every combination").one_a_mention();
  add_measured_word(command, o->measured);
  command.output(o->output, Output::folder, "Folder for whatif.html, .md, .json and .csv, which compare the rows");
  command.flag("--json", o->json, "Print one JSON document");
  command.flag("--allow-assumed", o->allow_assumed, "Estimate by a roofline what nobody measured, marked as assumed");
}

}  // namespace wt
