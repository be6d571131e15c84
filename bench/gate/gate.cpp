#include "bench/gate/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/formats/google_benchmark.hpp"
#include "bench/formats/merge_profiles.hpp"
#include "bench/formats/nvbench.hpp"
#include "bench/gate/rank_tests.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/lookup.hpp"

namespace wt {
namespace {

void check(const GateOptions& o) {
  const auto refuse = [](const char* key, double found, const char* allowed) {
    throw_usage("gate: {}: found {}, allowed {}; correct the option", key, found, allowed);
  };
  if (!(o.alpha > 0 && o.alpha < 1)) refuse("alpha", o.alpha, "above 0 and below 1");
  if (!(o.relative_floor >= 0 && o.relative_floor < 1))
    refuse("relative_floor", o.relative_floor, "0 or more, below 1");
  if (!(o.absolute_floor_s >= 0 && std::isfinite(o.absolute_floor_s)))
    refuse("absolute_floor_s", o.absolute_floor_s, "0 or more");
  if (o.min_samples < 2) refuse("min_samples", static_cast<double>(o.min_samples), "2 or more");
  // Below 7 per side, full separation by chance is likelier than 1 in 1,000.
  if (o.separation_samples < 7) refuse("separation_samples", static_cast<double>(o.separation_samples), "7 or more");
}

// The absolute floor in the unit of the samples; 0 for units other than time.
double absolute_floor(const GateOptions& options, const std::string& unit) {
  static const std::map<std::string, double> per_second = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
  return options.absolute_floor_s * value_or(per_second, unit);
}

bool fully_separated(const std::vector<double>& x, const std::vector<double>& y) {
  const auto [x_low, x_high] = std::ranges::minmax_element(x);
  const auto [y_low, y_high] = std::ranges::minmax_element(y);
  return *x_high < *y_low || *y_high < *x_low;
}

/// The reason for which two measurements are not comparable, or "".
std::string obstacle(const Measurement& base, const Measurement& current) {
  if (base.unit != current.unit) return fmt::format("units differ: {} and {}", base.unit, current.unit);
  if (base.smaller_is_better != current.smaller_is_better) return "directions differ: smaller and bigger is better";
  for (const Measurement* m : {&base, &current})
    if (m->evidence.kind != Evidence::measured)
      return fmt::format("a side is {}, not measured", to_string(m->evidence.kind));
  for (const Measurement* m : {&base, &current})
    if (!m->throttled.empty())
      return fmt::format("a side was timed on a throttled device ({})", fmt::join(m->throttled, ", "));
  return "";
}

GateRow measure(const Measurement& base, const Measurement& current, const GateOptions& options) {
  GateRow row;
  row.name = current.name();
  row.unit = current.unit;
  row.smaller_is_better = current.smaller_is_better;
  row.base_n = base.samples.size();
  row.current_n = current.samples.size();
  row.base_median = base.median();
  row.current_median = current.median();
  if (const std::string why = obstacle(base, current); !why.empty()) {
    row.verdict = Verdict::incomparable;
    row.reason = why;
    return row;
  }
  row.delta = *row.current_median - *row.base_median;
  if (*row.base_median > 0) row.ratio = *row.current_median / *row.base_median;
  if (std::min(row.base_n, row.current_n) < options.min_samples) {
    row.verdict = Verdict::inconclusive;
    row.reason = fmt::format("{} and {} samples; {} a side are needed", row.base_n, row.current_n, options.min_samples);
    row.samples_needed = options.min_samples;
    return row;
  }
  row.p = mann_whitney_p(base.samples, current.samples);
  row.separated = fully_separated(base.samples, current.samples);
  if (const auto interval = ratio_interval(base.samples, current.samples)) {
    row.ratio_low = interval->low;
    row.ratio_high = interval->high;
  }
  return row;
}

std::optional<std::size_t> samples_needed(const GateRow& row, const GateOptions& options) {
  if (!row.ratio_low || !(*row.ratio_low > 0) || options.relative_floor == 0) return std::nullopt;
  // The interval's width falls with the square root of the samples; half of it should be half the floor.
  const double half = 0.5 * std::log(*row.ratio_high / *row.ratio_low);
  const double factor = std::pow(half / (0.5 * std::log1p(options.relative_floor)), 2);
  const double n = std::ceil(static_cast<double>(std::min(row.base_n, row.current_n)) * std::max(1.0, factor));
  return static_cast<std::size_t>(std::min(n, 1e6));
}

void judge(GateRow& row, const GateOptions& options) {
  const bool enough = std::min(row.base_n, row.current_n) >= options.separation_samples;
  const bool significant = *row.p_adjusted < options.alpha || (row.separated && enough);
  if (!row.ratio) {  // the base median is 0: counts, such as errors or bytes
    row.verdict = *row.delta == 0 ? Verdict::same : Verdict::inconclusive;
    row.reason = *row.delta == 0 ? "both medians are 0" : "the base's median is 0, so there is no ratio";
    return;
  }
  const bool large = *row.ratio == 0 || beyond_floors(row, *row.ratio, options);
  const std::string test =
      fmt::format("adjusted p {:.2g}{}", *row.p_adjusted, row.separated ? ", fully separated" : "");
  if (significant && large) {
    const bool worse = row.smaller_is_better ? *row.ratio > 1 : *row.ratio < 1;
    row.verdict = worse ? Verdict::slower : Verdict::faster;
    row.reason = test;
    return;
  }
  const bool low_inside = row.ratio_low && !beyond_floors(row, *row.ratio_low, options);
  const bool high_inside = row.ratio_high && !beyond_floors(row, *row.ratio_high, options);
  if (!large && low_inside && high_inside) {
    const bool certain = significant && worsening(row, *row.ratio) > 1;
    row.verdict = certain ? Verdict::below_floor : Verdict::same;
    row.reason = "the 95 % interval lies within the floors" + (certain ? ": " + test : "");
    return;
  }
  row.verdict = Verdict::inconclusive;
  row.samples_needed = samples_needed(row, options);
  row.reason = large ? "the medians differ, but not certainly: " + test
                     : "the samples are too scattered to exclude a change: " + test;
}

GateRow one_sided(const Measurement& m, Verdict verdict) {
  GateRow row;
  row.name = m.name();
  row.unit = m.unit;
  row.smaller_is_better = m.smaller_is_better;
  row.verdict = verdict;
  (verdict == Verdict::missing ? row.base_n : row.current_n) = m.samples.size();
  (verdict == Verdict::missing ? row.base_median : row.current_median) = m.median();
  row.reason = verdict == Verdict::missing ? "in the base only" : "in the new profile only";
  return row;
}

/// `base`: null where the base did not measure it. `before`: it also failed in the base.
GateRow failed(const FailedMeasurement& failure, const Measurement* base, bool before) {
  GateRow row;
  row.name = failure.name;
  if (base) row = one_sided(*base, Verdict::missing);
  row.verdict = Verdict::failed;
  row.failed_before = before;
  row.reason = (before ? "in the base, too: " : "") + failure.error;
  return row;
}

}  // namespace

double worsening(const GateRow& row, double ratio) { return row.smaller_is_better ? ratio : 1 / ratio; }

bool beyond_floors(const GateRow& row, double ratio, const GateOptions& options) {
  const double worse = worsening(row, ratio);
  const bool relative = std::max(worse, 1 / worse) > 1 + options.relative_floor;
  return relative && std::abs(ratio - 1) * *row.base_median > absolute_floor(options, row.unit);
}

namespace {

bool worse_first(const GateRow& a, const GateRow& b) {
  if (a.verdict != b.verdict) return a.verdict < b.verdict;
  const auto worse = [](const GateRow& row) { return row.ratio && *row.ratio > 0 ? worsening(row, *row.ratio) : 0.0; };
  return worse(a) != worse(b) ? worse(a) > worse(b) : a.name < b.name;
}

}  // namespace

void sort_rows(std::vector<GateRow>& rows) { std::ranges::sort(rows, worse_first); }

namespace {

/// The dates of a profile, one for each process that was merged ("a + b"), sorted. ISO 8601 sorts as text.
std::vector<std::string> dates(const Fingerprint& facts) {
  std::vector<std::string> out;
  const auto fact = facts.find("date");
  if (fact == facts.end()) return out;
  constexpr std::string_view kAnd = " + ";
  for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + kAnd.size()) {
    end = fact->second.find(kAnd, at);
    out.push_back(fact->second.substr(at, end == std::string::npos ? end : end - at));
  }
  std::ranges::sort(out);
  return out;
}

Order order_of(const Fingerprint& base, const Fingerprint& current) {
  const std::vector<std::string> before = dates(base), after = dates(current);
  if (before.empty() || after.empty()) return Order::unknown;
  return before.front() < after.back() && after.front() < before.back() ? Order::in_turns : Order::base_then_new;
}

}  // namespace

std::string GateResult::order_sentence() const {
  const auto rate = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  if (order == Order::in_blocks)
    return fmt::format(
        "Measured in blocks of random order: at most {} of such runs call any benchmark slower that did not change.",
        rate(options.alpha));
  if (order == Order::in_turns)
    return fmt::format(
        "Measured in turns: of the same code on both sides {} of such comparisons fail, on the recording that the "
        "thresholds were chosen on.",
        rate(kFalseAlarmsInTurns));
  return fmt::format(
      "{}: of the same code on both sides {} of such comparisons fail, measured in turns {} (windtunnel gate selftest, "
      "on the recording that the thresholds were chosen on); docs/gate.md says how.",
      order == Order::unknown ? "When the sides were measured is not known. If one after the other"
                              : "One side was measured after the other",
      rate(kFalseAlarmsBaseThenNew), rate(kFalseAlarmsInTurns));
}

GateResult compare(const Profile& base, const Profile& current, const GateOptions& options) {
  check(options);
  GateResult result;
  result.order = order_of(base.fingerprint, current.fingerprint);
  result.options = options;
  result.base_fingerprint = base.fingerprint;
  result.current_fingerprint = current.fingerprint;
  result.differences = differences(base.fingerprint, current.fingerprint, options.ignored_facts);

  std::map<std::string, const Measurement*> unmatched;
  for (const Measurement& m : base.measurements) unmatched[m.name()] = &m;
  const auto measured = [](const Measurement& m) { return m.evidence.kind == Evidence::measured; };
  std::set<std::string>
      fell;  // a benchmark that failed in any process has failed, even if other processes have samples
  for (const FailedMeasurement& f : current.failures) {
    if (!fell.insert(f.name).second) continue;
    const auto match = unmatched.find(f.name);
    const auto is_it = [&](const auto& other) { return other.name == f.name; };
    const bool runs =
        std::ranges::any_of(current.measurements, [&](const Measurement& m) { return m.name() == f.name; });
    // If it failed in only some of the base's processes, and in all new ones, it did run before.
    const bool before = (match == unmatched.end() || runs) && std::ranges::any_of(base.failures, is_it);
    result.rows.push_back(failed(f, match == unmatched.end() ? nullptr : match->second, before));
    if (match != unmatched.end()) unmatched.erase(match);
  }
  std::vector<std::size_t> tested;
  std::vector<double> p;
  for (const Measurement& m : current.measurements) {
    if (fell.count(m.name())) continue;
    const auto match = unmatched.find(m.name());
    if (!measured(m) && (match == unmatched.end() || !measured(*match->second))) {
      ++result.unmeasured;
      if (match != unmatched.end()) unmatched.erase(match);
      continue;
    }
    if (match == unmatched.end()) {
      result.rows.push_back(one_sided(m, Verdict::fresh));
      continue;
    }
    GateRow row = measure(*match->second, m, options);
    unmatched.erase(match);
    if (!result.differences.empty()) {
      row.verdict = Verdict::incomparable;
      row.reason = "the fingerprints differ";
      row.p.reset();
      row.samples_needed.reset();
    }
    if (row.p) {
      tested.push_back(result.rows.size());
      p.push_back(*row.p);
    }
    result.rows.push_back(std::move(row));
  }
  const std::vector<double> adjusted = benjamini_hochberg(p);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    result.rows[tested[i]].p_adjusted = adjusted[i];
    judge(result.rows[tested[i]], options);
  }
  for (const auto& [name, m] : unmatched)
    if (measured(*m))
      result.rows.push_back(one_sided(*m, Verdict::missing));
    else
      ++result.unmeasured;
  sort_rows(result.rows);
  return result;
}

Profile read_gate_input(const std::vector<std::filesystem::path>& files, GoogleBenchmarkClock clock) {
  std::vector<Profile> profiles;
  std::vector<std::string> names;
  for (const auto& file : files) {
    const nlohmann::json document = read_json(file);
    if (clock != GoogleBenchmarkClock::real && !is_google_benchmark(document))
      throw_usage(
          "{}: found no JSON of Google Benchmark, needs it for --clock cpu; its times have a clock of their own",
          file.string());
    profiles.push_back(is_google_benchmark(document) ? from_google_benchmark(document, file.string(), clock)
                       : is_nvbench(document)        ? from_nvbench(document, file).profile
                                                     : profile_from_json(document, file.string()));
    names.push_back(file.string());
  }
  return merge(profiles, names);
}

}  // namespace wt
