// The gate tried on recorded timings: how often does it cry wolf, and what does it find? Two sides are drawn from runs
// of the same code on the same GPU (any finding is a false alarm), then steps of known size are put into one of them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/gate/gate.hpp"

namespace wt {

/// Timings of the same benchmarks in many runs: one value (a median, in seconds) per benchmark and run.
struct RecordedRuns {
  std::string source;
  std::vector<std::string> runs;
  std::vector<std::string> benchmarks;
  std::vector<std::vector<double>> times_s;  ///< [benchmark][run]
};

/// Comma-separated: "benchmark,<run>,<run>..." then a line per benchmark, in milliseconds. Throws Error{usage} naming
/// file, line and column for a ragged line or a value that is not positive.
RecordedRuns read_recorded_runs(const std::filesystem::path& file);
/// tests/data/liger_h100/speed_ms.csv of the tree that the program was built from.
std::filesystem::path default_recorded_runs();

/// A gate run in blocks (gate run), on benchmarks drawn from all recorded ones.
struct BlockTrials {
  std::size_t benchmarks;  ///< in one run
  double minutes;
  bool filtered = true;  ///< what is decided is not measured again, as Google Benchmark can do
};

struct SelftestOptions {
  std::size_t samples = 9;   ///< runs a side
  std::size_t trials = 300;  ///< gate runs per figure
  std::vector<double> steps = {0.02, 0.05, 0.10};
  double step_share = 0.1;     ///< share of the benchmarks that a step hits in one trial
  double quiet_spread = 0.01;  ///< a benchmark is quiet when 1.4826 MAD / median over all runs is at most this
  std::uint64_t seed = 1;
  GateOptions gate;
  std::vector<BlockTrials> block_trials = {{30, 15},        {60, 15},        {60, 60},       {564, 60},
                                           {30, 15, false}, {60, 15, false}, {60, 60, false}};
  double block_step = 0.05;
  double process_s = 1;       ///< assumed of a process in a block: its start
  double benchmark_s = 0.04;  ///< assumed of each benchmark in it: this or two calls, whichever is longer
};

/// Of a share of so many trials, the largest true rate that a run with as few events or fewer would show in 5 % of the
/// cases (Clopper and Pearson 1934, one-sided): 1 % of none in 300.
double rate_bound(double share, std::size_t trials);

/// Shares of benchmarks, over all trials.
struct FalseAlarms {
  double slower = 0, faster = 0, inconclusive = 0;
  double naive = 0;        ///< what "median more than relative_floor slower" would have called slower
  double failed_runs = 0;  ///< share of gate runs with at least one benchmark called slower
  std::size_t trials = 0;  ///< gate runs
  std::size_t judged = 0;  ///< benchmarks x trials
};

struct Recall {
  double step = 0;
  double all = 0, quiet = 0;  ///< share of stepped benchmarks called slower
  double called_same = 0;     ///< share of stepped benchmarks called the same: misses that say nothing
  double below_floors = 0;    ///< share of stepped benchmarks whose step the floors forbid to report
  double failed_runs = 0;     ///< share of gate runs with at least one stepped benchmark called slower
  std::size_t injected = 0, injected_quiet = 0;
};

struct BlocksResult {
  std::size_t benchmarks = 0;
  double minutes = 0;       ///< limit
  bool filtered = true;     ///< as tried
  double failed_runs = 0;   ///< share of runs of the same code with a benchmark called slower
  double inconclusive = 0;  ///< share of benchmarks in these runs
  double minutes_used = 0;  ///< mean of these runs
  Recall recall;            ///< a step on step_share of the benchmarks
};

struct SelftestResult {
  SelftestOptions options;
  std::string source;
  std::size_t benchmarks = 0, quiet_benchmarks = 0, runs = 0;
  FalseAlarms interleaved;     ///< sides drawn at random from all runs, as an interleaved comparison would
  FalseAlarms consecutive;     ///< the older runs against the newer: what drift costs when sides are not interleaved
  std::vector<Recall> recall;  ///< on interleaved sides
  std::vector<BlocksResult> blocks;
};

/// Of options.block_trials; `quiet` as options.quiet_spread says. A block's processes are recorded runs that follow one
/// another, as many as a block has, in random order; blocks are drawn with replacement. Time is counted, not spent.
std::vector<BlocksResult> selftest_blocks(const RecordedRuns& recorded, const SelftestOptions& options,
                                          const std::vector<bool>& quiet);

/// The same for the same seed on every machine. Throws Error{usage} with fewer than 2 x samples runs.
SelftestResult selftest(const RecordedRuns& recorded, const SelftestOptions& options = {});

}  // namespace wt
