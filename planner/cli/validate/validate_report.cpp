#include "planner/cli/validate/validate_report.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "configs/base/json_members.hpp"
#include "configs/files/stack.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/provenance.hpp"

namespace wt {

WT_TO_JSON(Judged, line, name, group, origin, regime)
WT_TO_JSON(Ratio, choice, slower, faster, measured, predicted)
WT_TO_JSON(Accuracy, n, abstained, groups, origins, mape, median_ape, p90_ape, bias, spearman, regret, coverage80,
           origin_median_ape, origin_coverage80)

namespace {

constexpr std::int64_t kFewestRows = 10, kFewestGroups = 3;  // for figures of a regime; below, its rows are printed
constexpr std::size_t kMostRowsShown = 40;

nlohmann::json both_json(const std::vector<Judged>& rows) {
  nlohmann::json out = accuracy(rows, &Judged::forecast);
  out["baseline"] = accuracy(rows, &Judged::baseline);
  return out;
}

/// How exactly our files can describe a measurement.
const char* said(const Judged& row) { return !row.forecast.value ? "not" : row.assumed.empty() ? "exactly" : "nearly"; }

nlohmann::json row_json(const Judged& row, const std::string& unit) {
  nlohmann::json out = row;
  out["said"] = said(row);
  out["measured_" + unit] = row.measured > 0 ? nlohmann::json(row.measured) : nlohmann::json();
  const Forecast& f = row.forecast;
  if (!f.value) {
    out["predicted_" + unit] = nullptr;
    out["abstained"] = f.reason;
    return out;
  }
  out["predicted_" + unit] = *f.value;
  out["interval80_" + unit] = {f.low, f.high};
  for (const Evidence kind : {Evidence::measured, Evidence::published, Evidence::derived, Evidence::assumed})
    out["evidence"][to_string(kind)] = f.evidence[static_cast<std::size_t>(kind)];
  out["assumed"] = row.assumed;
  out["baseline_" + unit] = row.baseline.value;
  return out;
}

std::map<std::string, std::vector<Judged>> by_regime(const std::vector<Judged>& rows) {
  std::map<std::string, std::vector<Judged>> regimes;
  for (const Judged& row : rows) regimes[row.regime].push_back(row);
  return regimes;
}

/// Groups regimes by the first two words of their names: "gemm, H100-SXM", "all-reduce, one node".
std::map<std::string, std::vector<Judged>> by_family(const std::vector<Judged>& rows) {
  std::map<std::string, std::vector<Judged>> families;
  std::map<std::string, std::set<std::string>> regimes;
  for (const Judged& row : rows) {
    const std::size_t second = row.regime.find(", ");
    const std::string family =
        row.regime.substr(0, second == std::string::npos ? second : row.regime.find(", ", second + 2));
    families[family].push_back(row);
    regimes[family].insert(row.regime);
  }
  std::erase_if(families, [&](const auto& family) { return regimes.at(family.first).size() < 2; });
  return families;
}

nlohmann::json list_json(const std::map<std::string, std::vector<Judged>>& parts, const char* key) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& [name, rows] : parts) {
    nlohmann::json part = both_json(rows);
    part[key] = name;
    out.push_back(std::move(part));
  }
  return out;
}

nlohmann::json rows_json(const std::vector<Judged>& rows, const std::string& unit) {
  nlohmann::json out = nlohmann::json::array();
  for (const Judged& row : rows) out.push_back(row_json(row, unit));
  return out;
}

/// Figures of rows that were judged in another way; null for no rows.
nlohmann::json figures_json(const std::vector<Judged>& rows) {
  if (rows.empty()) return nullptr;
  return {{"summary", both_json(rows)},
          {"regimes", list_json(by_regime(rows), "regime")},
          {"families", list_json(by_family(rows), "family")}};
}

nlohmann::json ratios_json(const std::vector<Ratio>& ratios) {
  if (ratios.empty()) return nullptr;
  const auto error = [&](double Ratio::*which) {
    const RatioError e = ratio_error(ratios, which);
    return nlohmann::json{{"mape", e.mean}, {"largest", e.largest}};
  };
  nlohmann::json out = error(&Ratio::predicted);
  out["n"] = ratios.size();
  out["baseline"] = error(&Ratio::baseline);
  for (const Ratio& r : ratios) out["pairs"].emplace_back(r)["balanced"] = r.baseline;
  return out;
}

nlohmann::json stacks_json(const std::optional<StepModel>& steps) {
  if (!steps) return nullptr;
  nlohmann::json out;
  const StepConstants typical = steps->constants({});
  for (std::size_t i = 0; i < kStepConstants; ++i)
    out["typical"][name_of(static_cast<StepConstant>(i))] = typical.values[i];
  for (const std::string& stack : steps->stacks()) out[stack] = steps->factors(stack);
  return out;
}

/// The typical stack's constants, followed by each stack's factors.
Table stack_table(const StepModel& steps) {
  Table table{.columns = {"stack"}};
  for (const char* name : kStackFactors) table.columns.push_back(numeric(name));
  const StepConstants typical = steps.constants({});
  table.rows.emplace_back(1, Cell("typical: constants"));
  for (const char* name : kStackFactors)
    for (std::size_t i = 0; i < kStepConstants; ++i)
      if (std::string(name) == name_of(static_cast<StepConstant>(i))) table.rows.back().emplace_back(typical.values[i]);
  for (const std::string& stack : steps.stacks()) {
    table.rows.emplace_back(1, Cell(stack));
    for (const auto& factors = steps.factors(stack); const char* name : kStackFactors)
      table.rows.back().emplace_back(factors.at(name), fmt::format("{:.2f}", factors.at(name)));
  }
  return table;
}

nlohmann::json outcomes_json(const std::vector<JudgedOutcome>& outcomes) {
  nlohmann::json out = nlohmann::json::array();
  for (const JudgedOutcome& o : outcomes)
    out.push_back({{"line", o.line},
                   {"name", o.name},
                   {"origin", o.origin},
                   {"ran", o.ran},
                   {"runs_out", o.runs_out},
                   {"reason", o.reason}});
  return out;
}

Cell percent(const std::optional<double>& fraction) {
  return fraction ? Cell(*fraction * 100, fmt::format("{:.1f}", *fraction * 100)) : Cell("-");
}

void add_accuracy(Table& table, const std::string& name, const std::vector<Judged>& rows, bool origins) {
  const Accuracy model = accuracy(rows, &Judged::forecast), naive = accuracy(rows, &Judged::baseline);
  std::vector<Cell>& cells = table.rows.emplace_back();
  cells = {name, whole(model.n), whole(model.abstained), whole(model.groups)};
  const auto add = [&](std::initializer_list<Cell> more) { cells.insert(cells.end(), more); };
  if (origins) add({whole(model.origins), percent(model.origin_median_ape), percent(model.origin_coverage80)});
  add({percent(model.mape), percent(model.median_ape), percent(model.p90_ape), percent(model.bias),
       percent(model.coverage80), percent(naive.mape)});
}

/// With means over origins where rows are of several.
Table accuracy_table(const std::vector<Judged>& rows, const std::string& baseline) {
  const bool origins = accuracy(rows, &Judged::forecast).origins > 1;
  Table table{.columns = {"regime", numeric("n"), numeric("abstained"), numeric("groups")}};
  const auto add = [&](std::initializer_list<Column> more) { table.columns.insert(table.columns.end(), more); };
  if (origins) add({numeric("origins"), numeric("median by origin", "%"), numeric("in interval by origin", "%")});
  add({numeric("mean error", "%"), numeric("median", "%"), numeric("90th percentile", "%"), numeric("bias", "%"),
       numeric("in 80 % interval", "%"), numeric(baseline, "%")});
  for (const auto& [name, members] : by_regime(rows)) add_accuracy(table, name, members, origins);
  for (const auto& [name, members] : by_family(rows)) add_accuracy(table, name + " (together)", members, origins);
  add_accuracy(table, "all", rows, origins);
  return table;
}

Table reasons(const std::vector<Judged>& rows) {
  std::map<std::string, std::int64_t> counts;
  for (const Judged& row : rows)
    if (!row.forecast.value) ++counts[row.forecast.reason];
  Table table{.title = "Why rows have no prediction", .columns = {numeric("rows"), "reason"}};
  for (const auto& [reason, n] : counts) table.rows.push_back({whole(n), reason});
  return table;
}

/// Assumptions behind predicted rows, the most common first.
Table assumptions(const std::vector<Judged>& rows) {
  std::map<std::string, std::int64_t> counts;
  for (const Judged& row : rows)
    if (row.forecast.value)
      for (const std::string& each : row.assumed) ++counts[each];
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table{.title = "What nobody said of rows with a prediction", .columns = {numeric("rows"), "assumed"}};
  for (const auto& [words, n] : sorted)
    if (table.rows.size() < kMostRowsShown) table.rows.push_back({whole(n), words});
  if (sorted.size() > kMostRowsShown)
    table.note = fmt::format("{} more; --json has all", sorted.size() - kMostRowsShown);
  return table;
}

Table ratio_table(const std::vector<Ratio>& all, const std::string& baseline) {
  std::map<std::string, std::vector<Ratio>> by_pair;
  for (const Ratio& r : all) by_pair[r.slower + " over " + r.faster].push_back(r);
  Table table{.columns = {"pair", numeric("n"), numeric("measured"), numeric("predicted"), numeric("mean error", "%"),
                          numeric("largest", "%"), numeric(baseline, "%")}};
  const auto add = [&](const std::string& name, const std::vector<Ratio>& ratios) {
    double measured = 0, predicted = 0;
    for (const Ratio& r : ratios) measured += r.measured, predicted += r.predicted;
    const auto n = static_cast<double>(ratios.size());
    const RatioError error = ratio_error(ratios, &Ratio::predicted);
    table.rows.push_back({name, whole(ratios.size()), Cell(measured / n), Cell(predicted / n), percent(error.mean),
                          percent(error.largest), percent(ratio_error(ratios, &Ratio::baseline).mean)});
  };
  for (const auto& [name, ratios] : by_pair) add(name, ratios);
  add("all", all);
  return table;
}

/// Whether the predicted probability of running out of memory is on the side of what happened, by origin.
Table outcome_table(const std::vector<JudgedOutcome>& outcomes) {
  Table table{.columns = {"origin", numeric("ran"), numeric("of them right"), numeric("ran out"),
                          numeric("of them right"), numeric("not predicted"), numeric("right", "%")}};
  std::map<std::string, std::vector<const JudgedOutcome*>> by_origin;
  for (const JudgedOutcome& o : outcomes) by_origin[o.origin].push_back(&o);
  const auto add = [&](const std::string& name, const std::vector<const JudgedOutcome*>& rows) {
    std::array<std::int64_t, 2> count{}, right{};  // ran out, ran
    std::int64_t unknown = 0;
    for (const JudgedOutcome* o : rows)
      if (!o->runs_out)
        ++unknown;
      else
        ++count[o->ran], right[o->ran] += o->right() ? 1 : 0;
    const std::int64_t all = count[0] + count[1];
    table.rows.push_back(
        {name, whole(count[1]), whole(right[1]), whole(count[0]), whole(right[0]), whole(unknown),
         percent(all > 0 ? std::optional(static_cast<double>(right[0] + right[1]) / static_cast<double>(all))
                         : std::nullopt)});
  };
  std::vector<const JudgedOutcome*> all;
  for (const JudgedOutcome& o : outcomes) all.push_back(&o);
  for (const auto& [origin, rows] : by_origin) add(origin, rows);
  if (!outcomes.empty()) add("all", all);
  return table;
}

/// What our files could describe, and what not.
std::string faithfulness(const Judged& row) {
  if (!row.forecast.value) return "not at all: " + row.forecast.reason;
  if (row.assumed.empty()) return "exactly";
  return fmt::format("nearly; assumed: {}", fmt::join(row.assumed, ", "));
}

Table row_table(const std::vector<const Judged*>& rows, const ValueUnit& unit) {
  Table table{.columns = {numeric("line"), "measurement", numeric("measured", unit.shown),
                          numeric("predicted", unit.shown), numeric("80 % interval", unit.shown), numeric("error", "%"),
                          "said"}};
  for (const Judged* row : rows) {
    const Forecast& f = row->forecast;
    const bool told = f.value.has_value();
    table.rows.push_back(
        {whole(row->line), row->name, row->measured > 0 ? Cell(row->measured * unit.scale) : Cell("-"),
         told ? Cell(*f.value * unit.scale) : Cell("-"),
         told ? fmt::format("{} to {}", format_number(f.low * unit.scale), format_number(f.high * unit.scale)) : "-",
         told ? percent(*f.value / row->measured - 1) : Cell("-"), faithfulness(*row)});
  }
  return table;
}

Table every_row(const std::vector<Judged>& rows, const ValueUnit& unit) {
  std::vector<const Judged*> all;
  all.reserve(rows.size());
  for (const Judged& row : rows) all.push_back(&row);
  return row_table(all, unit);
}

/// Predicted rows of regimes with too few rows for figures.
Table thin_rows(const std::map<std::string, std::vector<Judged>>& regimes, const ValueUnit& unit) {
  std::vector<const Judged*> thin;
  for (const auto& [name, rows] : regimes) {
    const Accuracy a = accuracy(rows, &Judged::forecast);
    if (a.n >= kFewestRows && a.groups >= kFewestGroups) continue;
    for (const Judged& row : rows)
      if (row.forecast.value) thin.push_back(&row);
  }
  const std::size_t all = thin.size();
  thin.resize(std::min(all, kMostRowsShown));
  Table table = row_table(thin, unit);
  table.title = "Rows of regimes with fewer than 10 rows or 3 groups";
  if (all > thin.size()) table.note = fmt::format("{} more; --json has all", all - thin.size());
  return table;
}

/// Number of rows by family that could be described exactly, nearly or not at all.
Table faithfulness_table(const std::vector<Judged>& rows) {
  Table table{.columns = {"family", numeric("exactly"), numeric("nearly"), numeric("not at all")}};
  const auto add = [&](const std::string& name, const std::vector<Judged>& members) {
    std::map<std::string, std::int64_t> counts;
    for (const Judged& row : members) ++counts[said(row)];
    table.rows.push_back({name, whole(counts["exactly"]), whole(counts["nearly"]), whole(counts["not"])});
  };
  for (const auto& [name, members] : by_family(rows)) add(name, members);
  add("all", rows);
  return table;
}

/// Choices with three alternatives or more.
Table choice_table(const std::vector<Judged>& rows) {
  Table table{.columns = {"choice", numeric("alternatives"), numeric("rank correlation"), numeric("regret", "%")},
              .note = "Regret: what the alternative took that was predicted fastest, over the fastest one."};
  for (const ChoiceAccuracy& choice : accuracy_of_choices(rows, &Judged::forecast))
    if (choice.spearman)
      table.rows.push_back({choice.choice, whole(choice.n),
                            Cell(*choice.spearman, fmt::format("{:.2f}", *choice.spearman)), percent(choice.regret)});
  return table;
}

}  // namespace

nlohmann::json validation_json(const Validation& v) {
  nlohmann::json apart = nlohmann::json::object();
  for (const JudgedApart& part : v.apart) apart[part.key] = figures_json(part.rows);
  return {{"schema", "windtunnel.validation/1"},
          {"subject", v.subject},
          {"file", v.file},
          {"method", v.method},
          {"naive", v.baseline},
          {"rows", rows_json(v.rows, v.unit.key)},
          {"regimes", list_json(by_regime(v.rows), "regime")},
          {"families", list_json(by_family(v.rows), "family")},
          {"whole_sources_left_out", figures_json(v.whole_sources)},
          {"apart", apart},
          {"stacks", stacks_json(v.steps)},
          {"ratios", ratios_json(v.ratios)},
          {"outcomes", outcomes_json(v.outcomes)},
          {"summary", both_json(v.rows)}};
}

Report validation_report(const Validation& v) {
  const Accuracy model = accuracy(v.rows, &Judged::forecast), naive = accuracy(v.rows, &Judged::baseline);
  Report report{.title = "Validation of " + v.subject};
  if (model.n == 0) {
    report.answer = fmt::format("None of {} measurements can be predicted.", v.rows.size());
  } else {
    report.answer =
        fmt::format("{} of {} measurements predicted with a mean error of {:.1f} %, where {} gives {:.1f} %.", model.n,
                    v.rows.size(), *model.mape * 100, v.baseline, *naive.mape * 100);
    report.answer_range =
        fmt::format("median {:.1f} %, 90th percentile {:.1f} %, bias {:+.1f} %; {:.0f} % inside their 80 % interval",
                    *model.median_ape * 100, *model.p90_ape * 100, *model.bias * 100, *model.coverage80 * 100);
    if (model.origins > 1) {
      report.answer = fmt::format(
          "{} of {} measurements predicted; the mean over {} origins of their median errors is {:.1f} %, where {} "
          "gives {:.1f} %.",
          model.n, v.rows.size(), model.origins, *model.origin_median_ape * 100, v.baseline,
          *naive.origin_median_ape * 100);
      report.answer_range = fmt::format(
          "{:.0f} % inside their 80 % interval, likewise by origin; all rows together: mean error {:.1f} %, {}",
          *model.origin_coverage80 * 100, *model.mape * 100, report.answer_range);
    }
  }
  report.sections.push_back({"accuracy", "How far off", {v.method}, {accuracy_table(v.rows, v.baseline)}});
  if (!v.whole_sources.empty())
    report.sections.push_back({"sources",
                               fmt::format("The same with everything from a row's {} left out", v.whole),
                               {},
                               {accuracy_table(v.whole_sources, v.baseline)}});
  for (const JudgedApart& part : v.apart) {
    std::string id = part.key;
    std::ranges::replace(id, '_', '-');
    report.sections.push_back({id, part.title, {}, {accuracy_table(part.rows, v.baseline)}});
  }
  if (Table outcomes = outcome_table(v.outcomes); !outcomes.rows.empty())
    report.sections.push_back(
        {"outcomes",
         "Ran, or ran out of memory",
         {"Right: the predicted probability that the process needs more than its GPU has is below "
          "a half for a run that ran. Everything from a row's origin is left out."},
         {outcomes}});
  if (v.steps)
    report.sections.push_back(
        {"stacks",
         "What stacks take, over the typical one",
         {"Factors fitted to the runs of configs/measurements; configs/stacks/NAME.yaml may say others (step)."},
         {stack_table(*v.steps)}});
  if (!v.ratios.empty())
    report.sections.push_back(
        {"ratios", "How much longer one alternative takes than another", {}, {ratio_table(v.ratios, v.baseline)}});
  if (Table choices = choice_table(v.rows); !choices.rows.empty())
    report.sections.push_back({"choices", "Which alternative is fastest", {}, {choices}});
  if (v.files)
    report.sections.push_back({"said",
                               "How faithfully runs could be said",
                               {"A run is written as the files of a user. Nearly: something that counts was not said "
                                "of it, and is assumed. --rows prints what, row by row."},
                               {faithfulness_table(v.rows)}});
  if (Table assumed = assumptions(v.rows); !assumed.rows.empty())
    report.sections.push_back({"assumed", "What it assumes", {}, {assumed}});
  if (Table why = reasons(v.rows); !why.rows.empty())
    report.sections.push_back({"abstained", "What it does not predict", {}, {why}});
  if (v.every_row)
    report.sections.push_back({"rows", "Row by row", {}, {every_row(v.rows, v.unit)}});
  else if (Table thin = thin_rows(by_regime(v.rows), v.unit); !thin.rows.empty())
    report.sections.push_back({"rows", "Row by row", {}, {thin}});
  report.provenance = provenance({{"file", v.file}});
  report.payload = validation_json(v);
  return report;
}

}  // namespace wt
