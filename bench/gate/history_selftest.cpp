#include "bench/gate/history_selftest.hpp"

#include <nlohmann/json.hpp>
#include <random>

#include "configs/base/error.hpp"
#include "configs/base/installed.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

using Points = std::vector<std::size_t>;

Points library_points(const std::vector<double>& series, const DivisiveOptions& options = {}) {
  Points points;
  for (const ChangePoint& each : change_points(series, options)) points.push_back(each.index);
  return points;
}

Points our_points(const std::vector<double>& series) {
  Points points;
  for (const LevelShift& each : level_shifts(series).shifts) points.push_back(each.index);
  return points;
}

std::vector<double> numbers(const JsonReader& array) {
  std::vector<double> values;
  for (const JsonReader& each : array.elements()) values.push_back(each.finite());
  return values;
}

Points places(const JsonReader& array) {
  Points points;
  for (const JsonReader& each : array.elements()) points.push_back(static_cast<std::size_t>(each.non_negative()));
  return points;
}

/// The longest range between change points, over its median; empty where it is too short.
std::vector<double> longest_stretch(const std::vector<double>& series, Points points, std::size_t least) {
  points.insert(points.begin(), 0);
  points.push_back(series.size());
  std::size_t best = 0;
  for (std::size_t i = 0; i + 1 < points.size(); ++i)
    if (points[i + 1] - points[i] > points[best + 1] - points[best]) best = i;
  if (points[best + 1] - points[best] < least) return {};
  std::vector<double> values(series.begin() + static_cast<std::ptrdiff_t>(points[best]),
                             series.begin() + static_cast<std::ptrdiff_t>(points[best + 1]));
  const double center = median(values);
  for (double& value : values) value /= center;
  return values;
}

struct Drawn {
  std::vector<double> series;
  Points steps;
};

Drawn draw_series(const std::vector<double>& noise, double step, const HistorySelftestOptions& o,
                  std::mt19937_64& random) {
  Drawn drawn;
  while (drawn.series.size() < o.length) {
    const std::size_t first = random() % (noise.size() - o.block + 1);
    for (std::size_t i = 0; i < o.block && drawn.series.size() < o.length; ++i)
      drawn.series.push_back(noise[first + i]);
  }
  if (step == 0) return drawn;
  for (std::size_t at = 0;;) {
    at += o.least_gap + random() % (o.largest_gap - o.least_gap);
    if (at + o.block > o.length) return drawn;
    const double factor = random() % 2 == 0 ? 1 + step : 1 / (1 + step);
    for (std::size_t i = at; i < o.length; ++i) drawn.series[i] *= factor;
    drawn.steps.push_back(at);
  }
}

void try_golden(HistorySelftest& result, const JsonReader& golden) {
  const JsonReader tigerbeetle = golden.at("tigerbeetle");
  const std::vector<double> series = numbers(tigerbeetle.at("series"));
  Points listed;
  for (const JsonReader& setting : tigerbeetle.at("expected").elements()) {
    const DivisiveOptions options{static_cast<std::size_t>(setting.at("window_len").non_negative()),
                                  setting.at("max_pvalue").finite(), setting.at("min_magnitude").finite()};
    const Points expected = places(setting.at("change_points"));
    ++result.settings;
    result.settings_met += library_points(series, options) == expected ? 1 : 0;
    if (options.max_p == DivisiveOptions{}.max_p && options.min_magnitude == 0) listed = expected;
  }
  constexpr std::size_t kOff = 2;
  result.listed_ours = agreement(listed, our_points(series), kOff);
  result.listed_library = agreement(listed, library_points(series), kOff);

  const auto count = [&](const JsonReader& values, const JsonReader& expected) {
    ++result.counts;
    result.counts_met +=
        library_points(numbers(values)).size() == static_cast<std::size_t>(expected.non_negative()) ? 1 : 0;
  };
  for (const auto& [name, profile] : golden.at("mongodb_profiles").items())
    count(profile.at("series"), profile.at("expected_count_p01_100perm_seed1234"));
  const JsonReader mongodb = golden.at("mongodb_series"), long_series = mongodb.at("long_series");
  count(long_series.at("values"), long_series.at("expected_count_p01_seed1234"));

  // long_series is not used: its values are around 0, where relative changes mean nothing.
  const auto take = [&](const char* name, const std::vector<double>& values, const Points& points) {
    const std::vector<double> stretch = longest_stretch(values, points, result.options.stretch);
    if (!stretch.empty()) result.noise.push_back({name, stretch});
  };
  take("tigerbeetle", series, listed);
  for (const char* name : {"real_series", "robust_series"}) {
    const std::vector<double> values = numbers(mongodb.at(name).at("values"));
    take(name, values, library_points(values));
  }
}

}  // namespace

double Agreement::precision() const {
  return found == 0 ? 1 : static_cast<double>(matched) / static_cast<double>(found);
}
double Agreement::recall() const {
  return expected == 0 ? 1 : static_cast<double>(matched) / static_cast<double>(expected);
}
void Agreement::add(const Agreement& other) {
  expected += other.expected;
  found += other.found;
  matched += other.matched;
}

Agreement agreement(const Points& expected, const Points& found, std::size_t margin) {
  Agreement result{expected.size(), found.size(), 0};
  std::vector<bool> taken(found.size(), false);
  for (std::size_t place : expected) {
    std::size_t nearest = found.size(), least = margin + 1;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t off = found[i] < place ? place - found[i] : found[i] - place;
      if (taken[i] || off >= least) continue;
      least = off;
      nearest = i;
    }
    if (nearest == found.size()) continue;
    taken[nearest] = true;
    ++result.matched;
  }
  return result;
}

std::filesystem::path default_golden_series() { return data_path("tests/data/change_points/golden.json"); }

HistorySelftest history_selftest(const std::filesystem::path& golden, const RecordedRuns& recorded,
                                 const HistorySelftestOptions& options) {
  if (options.block == 0 || options.block > options.stretch || options.least_gap == 0 ||
      options.largest_gap <= options.least_gap)
    throw_usage(
        "gate selftest: found blocks of {} values and gaps of {} to {}, allowed blocks up to the {} values of a "
        "stretch and gaps that grow; correct the options",
        options.block, options.least_gap, options.largest_gap, options.stretch);
  HistorySelftest result;
  result.options = options;
  const nlohmann::json document = read_json(golden);
  try_golden(result, JsonReader(document, golden.string()));

  std::mt19937_64 random(options.seed);
  for (const NoiseStretch& noise : result.noise) {
    for (double step : options.steps) {
      PlantedSteps row{noise.name, step, {}, {}};
      for (std::size_t trial = 0; trial < options.trials; ++trial) {
        const Drawn drawn = draw_series(noise.values, step, options, random);
        row.ours.add(agreement(drawn.steps, our_points(drawn.series), options.margin));
        row.library.add(agreement(drawn.steps, library_points(drawn.series), options.margin));
      }
      result.planted.push_back(row);
    }
    for (std::size_t trial = 0; trial < options.trials; ++trial) {
      const Drawn drawn = draw_series(noise.values, 0, options, random);
      result.quiet_values += drawn.series.size();
      result.quiet_ours += our_points(drawn.series).size();
      result.quiet_library += library_points(drawn.series).size();
    }
  }
  constexpr double kQuiet = 0.01;
  constexpr std::size_t kRoom = 8;  // minimum number of runs on either side of a step
  for (double step : {0.05, 0.10}) {
    RecordedSteps row{step, {}, {}, {}, {}};
    for (std::vector<double> times_s : recorded.times_s) {
      if (times_s.size() <= 2 * kRoom) continue;
      const bool quiet = scatter(times_s) <= kQuiet * median(times_s);
      const std::size_t at = kRoom + random() % (times_s.size() - 2 * kRoom + 1);
      for (std::size_t i = at; i < times_s.size(); ++i) times_s[i] *= 1 + step;
      const Agreement ours = agreement({at}, our_points(times_s), options.margin);
      const Agreement library = agreement({at}, library_points(times_s), options.margin);
      row.ours.add(ours);
      row.library.add(library);
      if (quiet) row.quiet_ours.add(ours), row.quiet_library.add(library);
    }
    result.recorded_steps.push_back(row);
  }
  for (const std::vector<double>& times_s : recorded.times_s) {
    ++result.recorded;
    result.recorded_ours += our_points(times_s).empty() ? 0 : 1;
    result.recorded_library += library_points(times_s).empty() ? 0 : 1;
  }
  return result;
}

}  // namespace wt
