#include <fmt/core.h>

#include "configs/base/json_members.hpp"
#include "planner/cli/gate/history_report.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, const Agreement& a) {
  out = {{"expected", a.expected},
         {"found", a.found},
         {"matched", a.matched},
         {"precision", a.precision()},
         {"recall", a.recall()}};
}
WT_TO_JSON(PlantedSteps, noise, step, ours, library)
WT_TO_JSON(RecordedSteps, step, ours, library, quiet_ours, quiet_library)

namespace {

std::string precision_and_recall(const Agreement& a) {
  return fmt::format("{:5.1f} %  {:5.1f} %", 100 * a.precision(), 100 * a.recall());
}

Agreement over_all(const HistorySelftest& r, Agreement PlantedSteps::*of) {
  Agreement all;
  for (const PlantedSteps& row : r.planted) all.add(row.*of);
  return all;
}

double per_thousand(std::size_t points, std::size_t values) {
  return 1000 * static_cast<double>(points) / static_cast<double>(values);
}

}  // namespace

std::string history_selftest_text(const HistorySelftest& r) {
  const HistorySelftestOptions& o = r.options;
  const ShiftOptions ours;
  const DivisiveOptions library;
  std::string text = fmt::format(
      "Change points on golden.json, seed {}. Ours: window {}, p {:g}, and the effect filter; Otava's defaults: window "
      "{}, p {:g}.\n\n"
      "Published lists\n"
      "  The same algorithm with the same settings gives {} of {} lists of Otava's tests exactly, and with Otava's\n"
      "  defaults {} of {} numbers of points of MongoDB's tests.\n"
      "                                           ours          Otava's defaults\n"
      "                                     precision  recall   precision  recall\n"
      "  Otava's list at p 0.001, window 30  {}      {}\n\n"
      "Steps put into the noise of these series ({} series of {} values a row; a point may be {} values off).\n"
      "The p-value and the effect filter were chosen on these series, with other random draws.\n"
      "                                           ours          Otava's defaults\n"
      "  noise            scatter   step    precision  recall   precision  recall\n",
      o.seed, ours.divisive.window, ours.divisive.max_p, library.window, library.max_p, r.settings_met, r.settings,
      r.counts_met, r.counts, precision_and_recall(r.listed_ours), precision_and_recall(r.listed_library), o.trials,
      o.length, o.margin);
  for (const PlantedSteps& row : r.planted)
    for (const NoiseStretch& noise : r.noise)
      if (noise.name == row.noise)
        text += fmt::format("  {:<15}  {:5.2f} %  {:3.0f} %    {}      {}\n", row.noise, 100 * scatter(noise.values),
                            100 * row.step, precision_and_recall(row.ours), precision_and_recall(row.library));
  text += fmt::format("  {:<15}                    {}      {}\n\n", "all",
                      precision_and_recall(over_all(r, &PlantedSteps::ours)),
                      precision_and_recall(over_all(r, &PlantedSteps::library)));
  text += fmt::format(
      "Points found where nothing changed, of 1,000 values\n"
      "  the same noise without steps  {:.2f} (Otava's defaults {:.2f})\n"
      "Recorded H100 timings, {} series of code that its project did not change; no option was chosen on them\n"
      "  series with a point  {:.1f} % (Otava's defaults {:.1f} %)\n",
      per_thousand(r.quiet_ours, r.quiet_values), per_thousand(r.quiet_library, r.quiet_values), r.recorded,
      per_thousand(r.recorded_ours, r.recorded) / 10, per_thousand(r.recorded_library, r.recorded) / 10);
  for (const RecordedSteps& row : r.recorded_steps)
    text += fmt::format(
        "  a step of {:.0f} % put into each  found in {:.1f} % (Otava's defaults {:.1f} %); in {} quiet ones {:.1f} % "
        "({:.1f} %)\n",
        100 * row.step, 100 * row.ours.recall(), 100 * row.library.recall(), row.quiet_ours.expected,
        100 * row.quiet_ours.recall(), 100 * row.quiet_library.recall());
  return text;
}

json history_selftest_json(const HistorySelftest& r) {
  json noise = json::array();
  for (const NoiseStretch& each : r.noise)
    noise.push_back({{"name", each.name}, {"values", each.values.size()}, {"scatter", scatter(each.values)}});
  return {{"schema", "windtunnel.gate-history-selftest/1"},
          {"seed", r.options.seed},
          {"trials", r.options.trials},
          {"settings", r.settings},
          {"settings_met", r.settings_met},
          {"counts", r.counts},
          {"counts_met", r.counts_met},
          {"listed", {{"ours", r.listed_ours}, {"library", r.listed_library}}},
          {"noise", std::move(noise)},
          {"planted", r.planted},
          {"all", {{"ours", over_all(r, &PlantedSteps::ours)}, {"library", over_all(r, &PlantedSteps::library)}}},
          {"without_steps", {{"values", r.quiet_values}, {"ours", r.quiet_ours}, {"library", r.quiet_library}}},
          {"recorded",
           {{"series", r.recorded},
            {"ours", r.recorded_ours},
            {"library", r.recorded_library},
            {"steps", r.recorded_steps}}}};
}

}  // namespace wt
