// Measuring two trees in blocks: processes in random order, each benchmark's median in each of them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "bench/gate/sequential.hpp"
#include "planner/cli/gate/gate_trees.hpp"

namespace wt {

class GateBlocks {
 public:
  GateBlocks(GateTree base, GateTree current, std::string command, std::filesystem::path log, std::uint64_t seed);

  /// Blocks until every benchmark is decided, or the next block would not end within the time; one is always measured.
  /// From the second on a Google Benchmark executable is asked for the undecided benchmarks alone; where it fails so,
  /// for everything from then on. Throws Error{runtime} where a process fails without naming the benchmarks that did.
  GateResult measure(double limit_s, const GateOptions& options);

 private:
  /// Of one process of either side.
  Profile run(bool is_new, const std::string& filter, double limit_s);
  void block(const std::string& filter, double limit_s);
  /// Words that make the command measure these benchmarks alone; "" where it takes none.
  std::string filter(const std::vector<std::string>& names) const;
  /// Can be asked for some benchmarks alone.
  bool filters() const { return !filter_names_.empty() && takes_filter_; }

  GateTree trees_[2];  // base, new
  std::string command_;
  std::filesystem::path log_;
  std::mt19937_64 random_;
  std::map<std::string, std::string> filter_names_;  // of a Google Benchmark executable: name -> its own
  bool takes_filter_ = true;                         // until a process fails with one
  std::vector<Profile> profiles_[2];
};

}  // namespace wt
