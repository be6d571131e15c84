// Fits the constants of each stack (sim/cost/stacks/step_constants.hpp) to all published steps, or to the steps of the
// other origins or stacks.
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
  /// `stacks` assigns frameworks to stacks (stack_of). Rows and stacks must outlive the object. Fits nothing yet.
  StackFit(const std::vector<RunRow>& runs, const std::vector<StackSpec>& stacks, BenchmarkTimes benchmarks);
  /// A fit without the steps of an origin. `benchmarks` time the other steps.
  StackFit(const StackFit& whole, const std::string& origin, BenchmarkTimes benchmarks);
  StackFit(const StackFit&) = delete;
  StackFit& operator=(const StackFit&) = delete;

  /// Fitted to all steps, once, in a second or two. Throws Error{usage} if there are none.
  const StepModel& model() const;
  /// Fitted without the steps of a stack. Throws Error{usage} if no step remains.
  const StepModel& without_stack(const std::string& stack) const;
  bool knows_stack(const std::string& stack) const { return knows(stack, &StepTraits::stack); }
  bool knows_chip(const std::string& chip) const { return knows(chip, &StepTraits::chip); }

  bool knows_origin(const std::string& origin) const;
  /// RunRow::origin. If the same run was first measured under another origin, that origin.
  const std::string& origin_of(const RunRow& row) const;
  /// Origins that share measurements count as one. Returns its name.
  const std::string& same_as(const std::string& origin) const;

 private:
  struct Step {
    const RunRow* row = nullptr;
    std::shared_ptr<const StepWork> work;
    StepTraits traits;
  };
  /// Adds the row's step, unless step_work refuses the row.
  void add(const RunRow& row);
  bool knows(const std::string& name, std::string StepTraits::*what) const;
  void join(std::string origin, const std::string& other);
  template <typename Skip>
  std::unique_ptr<StepModel> fitted(Skip skip) const;

  const std::vector<StackSpec>& stacks_;
  BenchmarkTimes benchmarks_;
  std::vector<Step> steps_;                  ///< each measurement once
  std::map<std::string, std::string> same_;  ///< origin to the name it counts under
  std::map<std::string, std::string> origin_of_measurement_;
  mutable std::unique_ptr<StepModel> all_;
  mutable std::map<std::string, std::unique_ptr<StepModel>> without_stack_;
};

}  // namespace wt
