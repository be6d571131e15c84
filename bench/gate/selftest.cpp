#include "bench/gate/selftest.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <random>
#include <set>

#include "bench/gate/rank_tests.hpp"
#include "bench/gate/sequential.hpp"
#include "configs/base/error.hpp"
#include "configs/base/installed.hpp"
#include "configs/base/parsed.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  for (char c : line) {
    if (c == ',')
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

Profile side(const RecordedRuns& recorded, const std::vector<std::size_t>& runs, const std::vector<double>& factors) {
  Profile profile;
  for (std::size_t b = 0; b < recorded.benchmarks.size(); ++b) {
    Measurement m;
    m.kernel = recorded.benchmarks[b];
    m.pass = "";
    m.evidence = {Evidence::measured, recorded.source};
    for (std::size_t run : runs) m.samples.push_back(recorded.times_s[b][run] * (factors.empty() ? 1 : factors[b]));
    profile.measurements.push_back(std::move(m));
  }
  return profile;
}

std::vector<bool> find_quiet(const RecordedRuns& recorded, double spread) {
  std::vector<bool> quiet;
  for (const std::vector<double>& times : recorded.times_s) {
    quiet.push_back(median_absolute_deviation(times) <= spread * median(times));
  }
  return quiet;
}

// Adds sums; they become shares at the end.
void add(FalseAlarms& sum, const GateResult& result) {
  sum.judged += result.rows.size();
  sum.slower += static_cast<double>(result.count(Verdict::slower));
  sum.faster += static_cast<double>(result.count(Verdict::faster));
  sum.inconclusive += static_cast<double>(result.count(Verdict::inconclusive));
  sum.failed_runs += result.count(Verdict::slower) > 0 ? 1 : 0;
  for (const GateRow& row : result.rows) sum.naive += *row.ratio > 1 + result.options.relative_floor ? 1 : 0;
}

void to_shares(FalseAlarms& sum, std::size_t trials) {
  sum.trials = trials;
  const double judged = static_cast<double>(std::max<std::size_t>(1, sum.judged));
  for (double* each : {&sum.slower, &sum.faster, &sum.inconclusive, &sum.naive}) *each /= judged;
  sum.failed_runs /= static_cast<double>(trials);
}

struct Sides {
  std::vector<std::size_t> base, current;
};

Sides draw(std::size_t runs, std::size_t samples, std::mt19937_64& random) {
  const std::vector<std::size_t> order = shuffled(runs, random);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(samples);
  return {{order.begin(), middle}, {middle, middle + static_cast<std::ptrdiff_t>(samples)}};
}

Recall measure_recall(const RecordedRuns& recorded, const SelftestOptions& options, double step,
                      const std::vector<bool>& quiet) {
  std::mt19937_64 random(options.seed);  // every step size uses the same draws
  Recall recall{.step = step};
  const std::size_t count = recorded.benchmarks.size();
  const auto hit =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(options.step_share * static_cast<double>(count))));
  for (std::size_t trial = 0; trial < options.trials; ++trial) {
    const Sides sides = draw(recorded.runs.size(), options.samples, random);
    const std::vector<std::size_t> order = shuffled(count, random);
    std::vector<double> factors(count, 1.0);
    std::set<std::string> stepped, stepped_quiet;
    for (std::size_t i = 0; i < hit; ++i) {
      factors[order[i]] = 1 + step;
      stepped.insert(recorded.benchmarks[order[i]]);
      if (quiet[order[i]]) stepped_quiet.insert(recorded.benchmarks[order[i]]);
    }
    const GateResult result =
        compare(side(recorded, sides.base, {}), side(recorded, sides.current, factors), options.gate);
    bool found_one = false;
    for (const GateRow& row : result.rows) {
      if (!stepped.count(row.name)) continue;
      const bool found = row.verdict == Verdict::slower;
      found_one = found_one || found;
      recall.all += found ? 1 : 0;
      recall.quiet += found && stepped_quiet.count(row.name) ? 1 : 0;
      recall.called_same += row.verdict == Verdict::same ? 1 : 0;
    }
    for (std::size_t i = 0; i < hit; ++i) {
      const bool too_short = step * median(recorded.times_s[order[i]]) <= options.gate.absolute_floor_s;
      recall.below_floors += step <= options.gate.relative_floor || too_short ? 1 : 0;
    }
    recall.failed_runs += found_one ? 1 : 0;
    recall.injected += stepped.size();
    recall.injected_quiet += stepped_quiet.size();
  }
  recall.all /= static_cast<double>(recall.injected);
  recall.called_same /= static_cast<double>(recall.injected);
  recall.below_floors /= static_cast<double>(recall.injected);
  recall.quiet /= static_cast<double>(std::max<std::size_t>(1, recall.injected_quiet));
  recall.failed_runs /= static_cast<double>(options.trials);
  return recall;
}

}  // namespace

std::filesystem::path default_recorded_runs() { return data_path("tests/data/liger_h100/speed_ms.csv"); }

RecordedRuns read_recorded_runs(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line))
    throw_usage("{}: cannot be read, allowed a file of recorded timings; check the path", file.string());
  RecordedRuns recorded;
  recorded.source = file.filename().string();
  recorded.runs = split(line);
  recorded.runs.erase(recorded.runs.begin());
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    const std::vector<std::string> cells = split(line);
    if (cells.size() != recorded.runs.size() + 1)
      throw_usage("{}:{}: found {} columns, allowed {} as in the first line; complete the line", file.string(), number,
                  cells.size(), recorded.runs.size() + 1);
    recorded.benchmarks.push_back(cells[0]);
    std::vector<double> times;
    for (std::size_t i = 1; i < cells.size(); ++i) {
      const double ms = parsed<double>(cells[i]).value_or(0);
      if (!(ms > 0) || !std::isfinite(ms))
        throw_usage("{}:{}: column {} ({}): found '{}', allowed a time in ms above 0; correct it", file.string(),
                    number, i + 1, recorded.runs[i - 1], cells[i]);
      times.push_back(ms * 1e-3);
    }
    recorded.times_s.push_back(std::move(times));
  }
  if (recorded.benchmarks.empty())
    throw_usage("{}: found no benchmark, allowed at least one; check the file", file.string());
  return recorded;
}

double rate_bound(double share, std::size_t trials) {
  const double n = static_cast<double>(trials), events = std::round(share * n);
  if (events >= n) return 1;
  const auto at_most = [&](double rate) {  // probability of as few events or fewer
    double term = std::pow(1 - rate, n), sum = term;
    for (double k = 1; k <= events; ++k) sum += term *= (n - k + 1) / k * rate / (1 - rate);
    return sum;
  };
  double low = events / n, high = 1;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (at_most(middle) > 0.05 ? low : high) = middle;
  }
  return high;
}

SelftestResult selftest(const RecordedRuns& recorded, const SelftestOptions& options) {
  const std::size_t runs = recorded.runs.size();
  if (options.samples == 0 || options.trials == 0 || runs < 2 * options.samples)
    throw_usage(
        "gate selftest: found {} runs for {} samples a side and {} trials, allowed 1 or more of each and two sides "
        "from the runs; ask for fewer samples",
        runs, options.samples, options.trials);
  SelftestResult result;
  result.options = options;
  result.source = recorded.source;
  result.benchmarks = recorded.benchmarks.size();
  result.runs = runs;
  const std::vector<bool> quiet = find_quiet(recorded, options.quiet_spread);
  result.quiet_benchmarks = static_cast<std::size_t>(std::ranges::count(quiet, true));

  std::mt19937_64 random(options.seed);
  for (std::size_t trial = 0; trial < options.trials; ++trial) {
    const Sides sides = draw(runs, options.samples, random);
    add(result.interleaved, compare(side(recorded, sides.base, {}), side(recorded, sides.current, {}), options.gate));
  }
  to_shares(result.interleaved, options.trials);

  const std::size_t windows = runs - 2 * options.samples + 1;
  for (std::size_t first = 0; first < windows; ++first) {
    Sides sides{std::vector<std::size_t>(options.samples), std::vector<std::size_t>(options.samples)};
    std::iota(sides.base.begin(), sides.base.end(), first);
    std::iota(sides.current.begin(), sides.current.end(), first + options.samples);
    add(result.consecutive, compare(side(recorded, sides.base, {}), side(recorded, sides.current, {}), options.gate));
  }
  to_shares(result.consecutive, windows);

  if (runs >= 2 * kBlockSide) result.blocks = selftest_blocks(recorded, options, quiet);
  for (double step : options.steps) result.recall.push_back(measure_recall(recorded, options, step, quiet));
  return result;
}

}  // namespace wt
