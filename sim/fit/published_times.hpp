// Everything that is fitted to the published tables of configs/measurements: what `windtunnel calibrate --published`
// writes to configs/constants, and what judges ask without an origin.
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

/// What times of steps rest on: benchmarks, and the constants of stacks that steps have with these.
struct StepTimes {
  BenchmarkTimes benchmarks;
  std::shared_ptr<const StackFit> stacks;  ///< fits when first asked for a model: a second or two
};

/// The published tables, and all constants that are fitted to them.
class PublishedTimes {
 public:
  /// Of configs/measurements, read and fitted once a process.
  static const PublishedTimes& get();
  explicit PublishedTimes(PublishedTables tables);
  PublishedTimes(const PublishedTimes&) = delete;
  PublishedTimes& operator=(const PublishedTimes&) = delete;
  /// The same benchmarks beside other runs.
  PublishedTimes(const PublishedTimes& other, std::vector<RunRow> runs);

  const PublishedTables& tables() const { return tables_; }
  const std::vector<StackSpec>& stacks() const { return stacks_; }
  const BenchmarkTimes& benchmarks() const { return all_.benchmarks; }
  const StackFit& stack_fit() const { return *all_.stacks; }
  /// As if an origin (StackFit::origin_of) had published nothing, no step and no benchmark. Made when first asked for:
  /// where it has benchmarks, these are fitted anew and every step is timed by them, for a second or two.
  const StepTimes& without(const std::string& origin) const;
  /// By step_family: how far off steps of other origins than `without` were.
  const ErrorBounds& step_bounds(const std::string& without = "") const;
  /// The memory of stacks without the figures of an origin; "" = of all.
  StackMemories memory(const std::string& without = "") const;
  /// The documents of configs/constants, by the names of their files.
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
