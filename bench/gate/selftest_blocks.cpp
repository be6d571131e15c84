// Simulates `gate run` on recorded timings: false alarms, and detections within the time limit.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/gate/rank_tests.hpp"
#include "bench/gate/selftest.hpp"
#include "bench/gate/sequential.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

struct BlocksTrial {
  const RecordedRuns& recorded;
  const SelftestOptions& options;
  const BlockTrials& what;
  std::vector<std::size_t> chosen;  ///< benchmarks of the run
  std::vector<double> factors;      ///< factor on each benchmark's times on the new side
};

struct BlocksEnd {
  std::vector<GateRow> rows;
  double seconds = 0;
};

BlocksEnd run_blocks(const BlocksTrial& trial, std::mt19937_64& random) {
  std::vector<GateRow> rows(trial.chosen.size());
  std::vector<double> cost_s;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].name = trial.recorded.benchmarks[trial.chosen[i]];
    rows[i].unit = "s";
    cost_s.push_back(std::max(trial.options.benchmark_s, 2 * median(trial.recorded.times_s[trial.chosen[i]])));
  }
  SequentialGate gate(rows, trial.options.gate);
  double seconds = 0;
  const std::size_t windows = trial.recorded.runs.size() - 2 * kBlockSide + 1;
  const bool filtered = trial.what.filtered;
  const double everything_s = std::accumulate(cost_s.begin(), cost_s.end(), 0.0);
  while (true) {
    const std::vector<std::size_t> due = filtered ? gate.next() : gate.undecided();
    if (due.empty()) break;
    double due_s = 0;
    for (std::size_t i : due) due_s += cost_s[i];
    const double block_s = 2 * kBlockSide * (trial.options.process_s + (filtered ? due_s : everything_s));
    if (seconds + block_s > 60 * trial.what.minutes) break;
    seconds += block_s;
    const std::size_t first = random() % windows;
    const std::vector<bool> order = block_order(random);
    for (std::size_t i : due) {
      std::vector<double> base, current;
      for (std::size_t p = 0; p < order.size(); ++p) {
        const double time_s = trial.recorded.times_s[trial.chosen[i]][first + p];
        if (order[p])
          current.push_back(time_s * trial.factors[i]);
        else
          base.push_back(time_s);
      }
      gate.add(i, base, current);
    }
  }
  return {gate.rows(), seconds};
}

BlocksResult try_blocks(const RecordedRuns& recorded, const SelftestOptions& options, const BlockTrials& what,
                        const std::vector<bool>& quiet) {
  std::mt19937_64 random(options.seed);
  BlocksResult out;
  out.benchmarks = std::min(what.benchmarks, recorded.benchmarks.size());
  out.minutes = what.minutes;
  out.filtered = what.filtered;
  out.recall.step = options.block_step;
  const double count = static_cast<double>(out.benchmarks), trials = static_cast<double>(options.trials);
  const auto stepped = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(options.step_share * count)));
  for (std::size_t t = 0; t < options.trials; ++t) {
    BlocksTrial trial{recorded, options, what, shuffled(recorded.benchmarks.size(), random), {}};
    trial.chosen.resize(out.benchmarks);
    trial.factors.assign(out.benchmarks, 1.0);
    const BlocksEnd same = run_blocks(trial, random);
    const auto is = [](Verdict verdict) { return [verdict](const GateRow& row) { return row.verdict == verdict; }; };
    out.failed_runs += std::ranges::any_of(same.rows, is(Verdict::slower)) ? 1 / trials : 0;
    out.inconclusive +=
        static_cast<double>(std::ranges::count_if(same.rows, is(Verdict::inconclusive))) / (count * trials);
    out.minutes_used += same.seconds / 60 / trials;

    std::fill_n(trial.factors.begin(), stepped, 1 + options.block_step);  // `chosen` is in random order
    const BlocksEnd changed = run_blocks(trial, random);
    bool any = false;
    for (std::size_t i = 0; i < stepped; ++i) {
      const bool found = changed.rows[i].verdict == Verdict::slower, is_quiet = quiet[trial.chosen[i]];
      const double step_s = options.block_step * median(recorded.times_s[trial.chosen[i]]);
      any = any || found;
      out.recall.all += found ? 1 : 0;
      out.recall.quiet += found && is_quiet ? 1 : 0;
      out.recall.injected_quiet += is_quiet ? 1 : 0;
      out.recall.called_same += changed.rows[i].verdict == Verdict::same ? 1 : 0;
      out.recall.below_floors +=
          options.block_step <= options.gate.relative_floor || step_s <= options.gate.absolute_floor_s ? 1 : 0;
    }
    out.recall.injected += stepped;
    out.recall.failed_runs += any ? 1 / trials : 0;
  }
  for (double* each : {&out.recall.all, &out.recall.called_same, &out.recall.below_floors})
    *each /= static_cast<double>(out.recall.injected);
  out.recall.quiet /= static_cast<double>(std::max<std::size_t>(1, out.recall.injected_quiet));
  return out;
}

}  // namespace

std::vector<BlocksResult> selftest_blocks(const RecordedRuns& recorded, const SelftestOptions& options,
                                          const std::vector<bool>& quiet) {
  std::vector<BlocksResult> out;
  for (const BlockTrials& what : options.block_trials) out.push_back(try_blocks(recorded, options, what, quiet));
  return out;
}

}  // namespace wt
