// What published steps say of stacks: the constants of the step model (step_model.hpp), fitted on all of them, or
// without some. Prices of a stack ask for the first; `windtunnel validate runs` asks without what a row belongs to.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/stack.hpp"
#include "sim/cost/stacks/step_model.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

/// A stack on a GPU, by the name that a table or a cluster file gives it.
StepTraits traits_of(const StackSpec& stack, const std::string& gpu);

/// What must have no part in a fit.
enum class StepsLeftOut {
  nothing,
  source,  ///< all rows of who measured the row (RunRow::origin)
  stack,   ///< all rows of the same stack, too
};

class StackFit {
 public:
  /// `stacks`: by which frameworks are told (stack_of). Fits nothing yet.
  StackFit(const std::vector<RunRow>& runs, const std::vector<StackSpec>& stacks, const ItemTimes& items,
           const CollectiveEstimator& collectives);
  StackFit(const StackFit&) = delete;
  StackFit& operator=(const StackFit&) = delete;

  /// All steps (a second or two, once). Throws Error{usage} without any.
  const StepModel& model() const;
  /// Without what `row`, run by a stack of these traits, belongs to; null where nothing is left.
  const StepModel* without(const RunRow& row, const StepTraits& traits, StepsLeftOut left_out) const;
  /// Whether another source than the row's has the stack, or the GPU's chip.
  bool knows_stack(const RunRow& row, const StepTraits& traits) const { return knows(row, traits, &StepTraits::stack); }
  bool knows_chip(const RunRow& row, const StepTraits& traits) const { return knows(row, traits, &StepTraits::chip); }

 private:
  struct Step {
    const RunRow* row = nullptr;
    StepWork work;
    StepTraits traits;
  };
  bool knows(const RunRow& row, const StepTraits& traits, std::string StepTraits::*what) const;
  /// Sources whose measurements are partly the same count as one, whatever tables call them.
  const std::string& source_of(const RunRow& row) const;
  const std::string& same_as(const std::string& source) const;
  void join(std::string source, const std::string& other);
  template <typename Skip>
  std::unique_ptr<StepModel> fitted(Skip skip) const;

  std::vector<Step> steps_;                  ///< every measurement once
  std::map<std::string, std::string> same_;  ///< of a source the one that it counts as
  std::map<std::string, std::string> source_of_measurement_;
  mutable std::unique_ptr<StepModel> all_;
  mutable std::map<std::pair<std::string, std::string>, std::unique_ptr<StepModel>> without_;  ///< by source and stack
};

}  // namespace wt
