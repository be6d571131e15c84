// windtunnel compare-offers: compares the cost of one study on several offered clusters.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/model_words.hpp"
#include "configs/files/study_keys.hpp"
#include "planner/cli/compare_offers/offers_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/study_words.hpp"
#include "planner/cli/parts/words.hpp"
#include "reports/render/progress.hpp"
#include "reports/render/write.hpp"

namespace wt {
namespace {

struct Options {
  std::string study, measured, output;
  std::vector<std::string> offers;
  bool json = false, allow_assumed = false;
};

void compare_offers_command(const Options& o) {
  const std::filesystem::path file = find_config("studies", o.study);
  const StudySpec study = study_from_text(with_measured(read_file(file, "a study file"), o.measured), file.string());
  fmt::print(stderr, "{}", model_lines(study.model));
  if (!o.output.empty()) make_folder(o.output);
  std::vector<OfferSpec> offers = read_offers(o.offers);
  Progress bar("reading inputs");
  const OfferComparison result = compare_offers(study, std::move(offers), o.allow_assumed, bar.of_parts());
  bar.finish();
  if (o.json) {
    fmt::print("{}\n", offers_json(result).dump(1));
  } else {
    fmt::print("{}\n\n{}", offers_answer(result), shown_table(offers_table(result)));
    for (const std::string& note : offers_notes(result)) fmt::print("- {}\n", note);
  }
  if (!o.output.empty())
    for (const auto& written : write_report(offers_report(result), o.output, "offers"))
      fmt::print(o.json ? stderr : stdout, "wrote {}\n", written.string());
  if (!result.cheapest) set_status(static_cast<int>(Code::finding));
  for (const OfferRow& row : result.rows) {
    if (row.plan) continue;
    fmt::print(stderr, "windtunnel: offer {}: {}\n", row.offer.name, row.misfit);
    if (row.failure != Code::finding) set_status(static_cast<int>(row.failure));
  }
}

}  // namespace

void add_compare_offers(CLI::App& app) {
  const Command command(app, "compare-offers",
                        "Plan a study on several offered clusters: the cheapest finish, ties, break-even prices\n"
                        "Example: windtunnel compare-offers olmoe-256-h100 made-up-h100 made-up-h200");
  const auto o = command.runs(compare_offers_command);
  command.option("study", o->study, "Study file, or a name in configs/studies").required();
  command.option("offers", o->offers, "Offer files, or names in configs/offers").required();
  add_measured_word(command, o->measured);
  command.output(o->output, Output::folder, "Folder for the report, with what each offer's money is spent on");
  command.flag("--json", o->json, "Print one JSON document");
  command.flag("--allow-assumed", o->allow_assumed, "Estimate by a roofline what nobody measured, marked as assumed");
}

}  // namespace wt
