// The constants of each stack (sim/cost/stacks/step_constants.hpp), fitted to all published steps, or to those that
// another origin or another stack published.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "configs/files/stack.hpp"
#include "sim/fit/step_fit.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

class StackFit {
 public:
  /// `stacks`: by which frameworks are told (stack_of). Rows and stacks must outlive it. Fits nothing yet.
  StackFit(const std::vector<RunRow>& runs, const std::vector<StackSpec>& stacks, BenchmarkTimes benchmarks);
  /// The same without the steps of an origin, the others timed by these benchmarks.
  StackFit(const StackFit& whole, const std::string& origin, BenchmarkTimes benchmarks);
  StackFit(const StackFit&) = delete;
  StackFit& operator=(const StackFit&) = delete;

  /// All steps (a second or two, once). Throws Error{usage} without any.
  const StepModel& model() const;
  /// Without the steps of a stack. Throws Error{usage} where nothing is left.
  const StepModel& without_stack(const std::string& stack) const;
  bool knows_stack(const std::string& stack) const { return knows(stack, &StepTraits::stack); }
  bool knows_chip(const std::string& chip) const { return knows(chip, &StepTraits::chip); }

  bool knows_origin(const std::string& origin) const;
  /// RunRow::origin; of a run that was measured under another name, that one.
  const std::string& origin_of(const RunRow& row) const;
  /// Origins whose measurements are partly the same count as one, whatever tables call them.
  const std::string& same_as(const std::string& origin) const;

 private:
  struct Step {
    const RunRow* row = nullptr;
    std::shared_ptr<const StepWork> work;
    StepTraits traits;
  };
  /// Adds the row's step; one that has no work to fit on is left out.
  void add(const RunRow& row);
  bool knows(const std::string& name, std::string StepTraits::*what) const;
  void join(std::string origin, const std::string& other);
  template <typename Skip>
  std::unique_ptr<StepModel> fitted(Skip skip) const;

  const std::vector<StackSpec>& stacks_;
  BenchmarkTimes benchmarks_;
  std::vector<Step> steps_;                  ///< every measurement once
  std::map<std::string, std::string> same_;  ///< of an origin the one that it counts as
  std::map<std::string, std::string> origin_of_measurement_;
  mutable std::unique_ptr<StepModel> all_;
  mutable std::map<std::string, std::unique_ptr<StepModel>> without_stack_;
};

}  // namespace wt
