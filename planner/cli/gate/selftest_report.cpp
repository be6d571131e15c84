#include <fmt/core.h>

#include "configs/base/json_members.hpp"
#include "planner/cli/gate/gate_report.hpp"

namespace wt {

using nlohmann::json;

WT_TO_JSON(FalseAlarms, slower, faster, inconclusive, naive, failed_runs, trials, judged)
WT_TO_JSON(Recall, step, all, quiet, called_same, below_floors, failed_runs, injected, injected_quiet)
WT_TO_JSON(BlocksResult, benchmarks, minutes, filtered, failed_runs, inconclusive, minutes_used, recall)

namespace {

/// "0.3 % (1 of 300; 95 % bound 1.6 %)".
std::string rate_text(double share, std::size_t trials) {
  const double events = std::round(share * static_cast<double>(trials)), bound = rate_bound(share, trials) * 100;
  const std::string counts = fmt::format("{:.0f} of {}", events, trials);
  return events == 0 ? fmt::format("under {:.1f} % ({})", bound, counts)
                     : fmt::format("{:.1f} % ({}; 95 % bound {:.1f} %)", share * 100, counts, bound);
}

std::string alarms_text(const char* title, const FalseAlarms& f, double floor) {
  return fmt::format(
      "  {:<14} {:6.3f} % of benchmarks called slower, {:.3f} % faster, {:.1f} % inconclusive\n"
      "                 gate runs that fail: {}\n"
      "  {:<14} (\"median more than {:g} % slower\" alone would call {:.1f} %)\n",
      title, f.slower * 100, f.faster * 100, f.inconclusive * 100, rate_text(f.failed_runs, f.trials), "", floor * 100,
      f.naive * 100);
}

/// With the upper end of the share of failed runs.
json bounded(json share, double failed_runs, std::size_t trials) {
  share["failed_runs_bound"] = rate_bound(failed_runs, trials);
  return share;
}

json alarms_json(const FalseAlarms& f) { return bounded(f, f.failed_runs, f.trials); }

}  // namespace

std::string selftest_text(const SelftestResult& r) {
  const SelftestOptions& o = r.options;
  std::string text = fmt::format(
      "Gate selftest on {}: {} benchmarks ({} quiet: spread <= {:g} %), {} runs, {} samples a side, {} trials, seed "
      "{}\n\n"
      "The thresholds were chosen on this recording: its rates are no independent evidence. A 95 % bound is of what "
      "was\n"
      "drawn from it.\n\n"
      "False alarms (same code on both sides), by how the two sides are measured\n",
      r.source, r.benchmarks, r.quiet_benchmarks, o.quiet_spread * 100, r.runs, o.samples, o.trials, o.seed);
  text += alarms_text("in turns", r.interleaved, o.gate.relative_floor);
  text += alarms_text("base, then new", r.consecutive, o.gate.relative_floor);
  text += fmt::format(
      "\nRecall (a step on {:g} % of the benchmarks, in turns)\n"
      "  step   found: all   quiet   called same   below the floors   gate runs that fail\n",
      o.step_share * 100);
  for (const Recall& x : r.recall)
    text += fmt::format("  {:3.0f} %  {:10.1f} %  {:5.1f} %  {:10.1f} %  {:15.1f} %  {:18.1f} %\n", x.step * 100,
                        x.all * 100, x.quiet * 100, x.called_same * 100, x.below_floors * 100, x.failed_runs * 100);
  if (r.blocks.empty()) return text;
  text += fmt::format(
      "\ngate run, in blocks of random order (a step of {:g} % on {:g} % of the benchmarks)\n"
      "  benchmarks   measured again   minutes           same code: runs that fail   inconclusive   step found: all   "
      "quiet   below the floors\n",
      o.block_step * 100, o.step_share * 100);
  for (const BlocksResult& x : r.blocks)
    text += fmt::format("  {:10} {:>16} {:9.0f} {:>35} {:12.1f} % {:15.1f} % {:5.1f} % {:16.1f} %\n", x.benchmarks,
                        x.filtered ? "undecided" : "all", x.minutes, rate_text(x.failed_runs, o.trials),
                        x.inconclusive * 100, x.recall.all * 100, x.recall.quiet * 100, x.recall.below_floors * 100);
  return text + fmt::format(
                    "  Assumed: a process takes {:g} s to start, a benchmark in it {:g} ms or two calls, whichever is "
                    "longer.\n",
                    o.process_s, o.benchmark_s * 1e3);
}

json selftest_json(const SelftestResult& r) {
  json blocks = json::array();
  for (const BlocksResult& x : r.blocks) blocks.push_back(bounded(x, x.failed_runs, r.options.trials));
  return {{"schema", "windtunnel.gate-selftest/1"},
          {"source", r.source},
          {"benchmarks", r.benchmarks},
          {"quiet_benchmarks", r.quiet_benchmarks},
          {"runs", r.runs},
          {"thresholds_chosen_on_source", true},
          {"samples", r.options.samples},
          {"trials", r.options.trials},
          {"step_share", r.options.step_share},
          {"quiet_spread", r.options.quiet_spread},
          {"seed", r.options.seed},
          {"interleaved", alarms_json(r.interleaved)},
          {"consecutive", alarms_json(r.consecutive)},
          {"recall", r.recall},
          {"process_s", r.options.process_s},
          {"benchmark_s", r.options.benchmark_s},
          {"blocks", std::move(blocks)}};
}

}  // namespace wt
