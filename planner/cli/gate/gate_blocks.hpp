// Measures two trees in blocks: processes in random order, with each benchmark's median per process.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "bench/gate/sequential.hpp"
#include "planner/cli/gate/gate_trees.hpp"

namespace wt {

class GateBlocks {
 public:
  GateBlocks(GateTree base, GateTree current, std::string command, GoogleBenchmarkClock clock,
             std::filesystem::path log, std::uint64_t seed);

  /// Measures blocks until every benchmark is decided, or the next block would exceed the time limit; at least one.
  /// From the second block on, a Google Benchmark executable runs only undecided benchmarks; if that fails, all
  /// benchmarks from then on. Throws Error{runtime} where a process fails without naming the failed benchmarks.
  GateResult measure(double limit_s, const GateOptions& options);

 private:
  /// Runs one process of either side.
  Profile run(bool is_new, const std::string& filter, double limit_s);
  void block(const std::string& filter, double limit_s);
  /// Arguments that make the command run only these benchmarks; "" where it has no such option.
  std::string filter(const std::vector<std::string>& names) const;
  /// Whether the command can run a subset.
  bool filters() const { return !filter_names_.empty() && takes_filter_; }

  GateTree trees_[2];  // base, new
  std::string command_;
  GoogleBenchmarkClock clock_;
  std::filesystem::path log_;
  std::mt19937_64 random_;
  std::map<std::string, std::string> filter_names_;  // for a Google Benchmark executable: name -> its own name
  bool takes_filter_ = true;                         // until a process fails with a filter
  std::vector<Profile> profiles_[2];
};

}  // namespace wt
