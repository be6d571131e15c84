// Tests the gate on recorded timings: its rate of false alarms, and what it detects. Two sides are drawn from runs of
// the same code on the same GPU, so that any finding is a false alarm; then steps of known size are added to one side.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/gate/gate.hpp"

namespace wt {

/// Timings of the same benchmarks in many runs: one value (a median, seconds) per benchmark and run.
struct RecordedRuns {
  std::string source;
  std::vector<std::string> runs;
  std::vector<std::string> benchmarks;
  std::vector<std::vector<double>> times_s;  ///< [benchmark][run]
};

/// Reads CSV: "benchmark,<run>,<run>...", then a line per benchmark, in milliseconds. Throws Error{usage} with file,
/// line and column for a line with missing values or a value that is not positive.
RecordedRuns read_recorded_runs(const std::filesystem::path& file);
/// tests/data/liger_h100/speed_ms.csv of the data that belongs to this program.
std::filesystem::path default_recorded_runs();

/// Simulated `gate run`s in blocks, on benchmarks drawn from all recorded ones.
struct BlockTrials {
  std::size_t benchmarks;  ///< of one run
  double minutes;
  bool filtered = true;  ///< decided benchmarks are no longer measured, which Google Benchmark supports
};

struct SelftestOptions {
  std::size_t samples = 9;   ///< runs per side
  std::size_t trials = 300;  ///< gate runs per figure
  std::vector<double> steps = {0.02, 0.05, 0.10};
  double step_share = 0.1;     ///< share of benchmarks with a step in one trial
  double quiet_spread = 0.01;  ///< a benchmark is quiet when 1.4826 MAD / median over all runs is at most this
  std::uint64_t seed = 1;
  GateOptions gate = {};
  std::vector<BlockTrials> block_trials = {{30, 15},        {60, 15},        {60, 60},       {564, 60},
                                           {30, 15, false}, {60, 15, false}, {60, 60, false}};
  double block_step = 0.05;
  double process_s = 1;       ///< assumed start time of a process
  double benchmark_s = 0.04;  ///< assumed time of a benchmark in a process, at least two calls
};

/// The one-sided upper 95 % bound of a rate (Clopper and Pearson 1934): the largest true rate at which 5 % of such runs
/// would show this share of `trials` or less. For 0 of 300 it is 1 %.
double rate_bound(double share, std::size_t trials);

/// Shares of benchmarks, over all trials.
struct FalseAlarms {
  double slower = 0, faster = 0, inconclusive = 0;
  double naive = 0;        ///< share that "median slower by more than relative_floor" would call slower
  double failed_runs = 0;  ///< share of gate runs with at least one benchmark called slower
  std::size_t trials = 0;  ///< gate runs
  std::size_t judged = 0;  ///< benchmarks x trials
};

struct Recall {
  double step = 0;
  double all = 0, quiet = 0;  ///< share of stepped benchmarks called slower
  double called_same = 0;     ///< share of stepped benchmarks called the same: silent misses
  double below_floors = 0;    ///< share of stepped benchmarks whose step is below the floors
  double failed_runs = 0;     ///< share of gate runs with at least one stepped benchmark called slower
  std::size_t injected = 0, injected_quiet = 0;
};

struct BlocksResult {
  std::size_t benchmarks = 0;
  double minutes = 0;       ///< limit
  bool filtered = true;     ///< as in BlockTrials
  double failed_runs = 0;   ///< share of runs of the same code with a benchmark called slower
  double inconclusive = 0;  ///< share of benchmarks in these runs
  double minutes_used = 0;  ///< mean over these runs
  Recall recall;            ///< with a step on step_share of the benchmarks
};

struct SelftestResult {
  SelftestOptions options;
  std::string source;
  std::size_t benchmarks = 0, quiet_benchmarks = 0, runs = 0;
  FalseAlarms interleaved;     ///< sides drawn at random from all runs, like an interleaved comparison
  FalseAlarms consecutive;     ///< older against newer runs: the effect of drift without interleaving
  std::vector<Recall> recall;  ///< on interleaved sides
  std::vector<BlocksResult> blocks;
};

/// Results for options.block_trials; `quiet` marks benchmarks by options.quiet_spread. The processes of a block are
/// consecutive recorded runs in random order; blocks are drawn with replacement. Time is added up, not spent.
std::vector<BlocksResult> selftest_blocks(const RecordedRuns& recorded, const SelftestOptions& options,
                                          const std::vector<bool>& quiet);

/// Deterministic for a seed, on every machine. Throws Error{usage} with fewer than 2 x samples runs.
SelftestResult selftest(const RecordedRuns& recorded, const SelftestOptions& options = {});

}  // namespace wt
