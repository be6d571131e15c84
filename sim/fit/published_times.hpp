// All constants that are fitted to the published tables of configs/measurements. `windtunnel calibrate --published`
// writes them to configs/constants; judges ask for fits without an origin.
#pragma once
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/memory/stack_memory.hpp"
#include "sim/cost/stacks/stack_cost.hpp"
#include "sim/fit/stack_fit.hpp"
#include "sim/measurements/published_tables.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

/// What step times are computed from: benchmarks, and constants of stacks fitted to steps with these benchmarks.
struct StepTimes {
  BenchmarkTimes benchmarks;
  std::shared_ptr<const StackFit> stacks;  ///< fitted when its model is first asked for, in a second or two
};

/// The published tables, and all constants that are fitted to them.
class PublishedTimes {
 public:
  /// Fits the tables of configs/measurements. Read and fitted once per process.
  static const PublishedTimes& get();
  explicit PublishedTimes(PublishedTables tables);
  PublishedTimes(const PublishedTimes&) = delete;
  PublishedTimes& operator=(const PublishedTimes&) = delete;
  /// The benchmarks of `other` with other runs.
  PublishedTimes(const PublishedTimes& other, std::vector<RunRow> runs);

  const PublishedTables& tables() const { return tables_; }
  const std::vector<StackSpec>& stacks() const { return stacks_; }
  const BenchmarkTimes& benchmarks() const { return all_.benchmarks; }
  const StackFit& stack_fit() const { return *all_.stacks; }
  /// Times as if an origin (StackFit::origin_of) had published nothing, neither steps nor benchmarks. Made on the first
  /// call. If the origin has benchmarks, they are fitted again and every step is timed again, in a second or two.
  const StepTimes& without(const std::string& origin) const;
  /// Errors of predicted steps by step_family, without the steps of origin `without`.
  const ErrorBounds& step_bounds(const std::string& without = "") const;
  /// The memory of stacks without the figures of origin `without`; "" = with all.
  StackMemories memory(const std::string& without = "") const;
  /// The documents of configs/constants by file name.
  std::map<std::string, nlohmann::json> documents() const;

 private:
  void fit(const BenchmarkTimes& benchmarks);
  BenchmarkTimes benchmarks_without(const std::string& origin) const;

  PublishedTables tables_;
  std::vector<StackSpec> stacks_;
  KernelConstants kernels_;
  CollectiveConstants collectives_;
  StepTimes all_;
  LeftOutErrors errors_;
  mutable std::map<std::string, StepTimes> without_;        ///< by origin
  mutable std::map<std::string, ErrorBounds> step_bounds_;  ///< by origin
};

}  // namespace wt
