// windtunnel calibrate: profiles in, machine model out, with what is left over class by class.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "configs/spec/find.hpp"
#include "planner/cli/command.hpp"
#include "planner/cli/output.hpp"
#include "planner/cli/words.hpp"
#include "reports/build/cells.hpp"
#include "sim/cost/fit/calibrate.hpp"

namespace wt {
namespace {

struct Options {
  std::vector<std::string> profiles;
  std::string output;
  bool allow_assumed = false, json = false;
};

/// Negative: was not determined.
Cell error_cell(double share) { return share < 0 ? Cell("-") : percent(share); }

Table residual_table(const CalibrationResult& result) {
  Table table{.title = "Predicted against measured, by class"};
  table.columns = {{"class"},
                   {"how"},
                   {"points", "", Align::right},
                   {"median error", "%", Align::right},
                   {"90th percentile", "%", Align::right},
                   {"bias", "%", Align::right},
                   {"held out, median", "%", Align::right},
                   {"held out, 90th percentile", "%", Align::right}};
  for (const ClassResidual& r : result.residuals)
    table.rows.push_back({r.name,
                          r.how,
                          {static_cast<double>(r.points), fmt::format("{}", r.points)},
                          error_cell(r.median_error),
                          error_cell(r.p90_error),
                          signed_percent(r.bias),
                          error_cell(r.held_out_median),
                          error_cell(r.held_out_p90)});
  table.note =
      "Held out: predicted from the other shapes or points only; '-' where too few are there to leave one out.";
  return table;
}

/// The class that is predicted worst where it was not measured.
const ClassResidual* worst(const CalibrationResult& result) {
  const ClassResidual* found = nullptr;
  for (const ClassResidual& r : result.residuals)
    if (r.held_out_median >= 0 && (found == nullptr || r.held_out_median > found->held_out_median)) found = &r;
  return found;
}

Report report_of(const CalibrationResult& result, const Options& o) {
  Report report;
  report.title = "Machine model";
  const auto device = result.model.data().fingerprint.find("device");
  const std::string name = device == result.model.data().fingerprint.end() ? "this machine" : device->second;
  std::int64_t points = 0;
  for (const ClassResidual& r : result.residuals) points += r.points;
  report.answer =
      fmt::format("{} measured points of {} give {} classes of op times.", points, name, result.residuals.size());
  if (const ClassResidual* r = worst(result))
    report.answer_range =
        fmt::format("hardest class held out: {}, median error {:.1f} %", r->name, r->held_out_median * 100);
  report.sections.push_back({"residuals", "What is left over", {}, {residual_table(result)}});
  if (!result.notes.empty()) report.sections.push_back({"notes", "What to know", result.notes, {}});
  nlohmann::json classes = nlohmann::json::array();
  for (const ClassResidual& r : result.residuals)
    classes.push_back(
        {{"class", r.name},
         {"how", r.how},
         {"points", r.points},
         {"median_error", r.median_error},
         {"p90_error", r.p90_error},
         {"bias", r.bias},
         {"held_out_median", r.held_out_median < 0 ? nlohmann::json() : nlohmann::json(r.held_out_median)},
         {"held_out_p90", r.held_out_p90 < 0 ? nlohmann::json() : nlohmann::json(r.held_out_p90)}});
  report.payload = {{"residuals", classes}, {"notes", result.notes}};
  std::string profiles;
  for (const std::string& profile : o.profiles) profiles += (profiles.empty() ? "" : ", ") + profile;
  report.provenance = provenance({{"profiles", profiles}});
  return report;
}

void run_calibrate(const Options& o) {
  std::vector<Profile> profiles;
  for (const std::string& profile : o.profiles) profiles.push_back(read_profile(find_config("profiles", profile)));
  const CalibrationResult result = calibrate(profiles, {o.allow_assumed});
  if (!o.output.empty()) write_machine(result.model.data(), o.output);
  put_report(report_of(result, o), o.json);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  const Command command(app, "calibrate",
                        "Make a machine model out of profiles, and say how well it predicts them\n"
                        "Example: windtunnel calibrate profile.json -o machine.json");
  auto o = std::make_shared<Options>();
  command.option("PROFILE", o->profiles, "Profiles of one machine: files, or names of yours in configs/profiles")
      .required();
  command.option("-o,--output", o->output, "Machine model (JSON) to write");
  command.flag("--allow-assumed", o->allow_assumed,
               "Let the model price what nobody measured by a roofline, marked as assumed");
  command.flag("--json", o->json, "Print one JSON document");
  command.runs([o] { run_calibrate(*o); });
}

}  // namespace wt
