// What published steps say of stacks: the constants of the step model (step_model.hpp), fitted on all of them, or
// without some. Prices of a stack ask for the first; `windtunnel validate runs` asks without what a row belongs to.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/spec/stack.hpp"
#include "sim/cost/stacks/step_model.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

/// A stack on a GPU, by the name that a table or a cluster file gives it.
StepTraits traits_of(const StackSpec& stack, const std::string& gpu);

/// What must have no part in a fit.
enum class StepsLeftOut {
  nothing,
  group,  ///< rows of the same framework and width of the model
  stack,  ///< all rows of the same stack, and the group
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
  /// Without what `row`, run by a stack of these traits, belongs to. StepsLeftOut::group: rows of one of ten parts that
  /// groups are dealt to, the row's own among them; null where nothing is left.
  const StepModel* without(const RunRow& row, const StepTraits& traits, StepsLeftOut left_out) const;
  /// Whether another group than the row's has the stack, or the GPU's chip.
  bool knows_stack(const RunRow& row, const StepTraits& traits) const { return knows(row, traits, &StepTraits::stack); }
  bool knows_chip(const RunRow& row, const StepTraits& traits) const { return knows(row, traits, &StepTraits::chip); }

 private:
  struct Step {
    const RunRow* row = nullptr;
    StepWork work;
    StepTraits traits;
  };
  static constexpr std::size_t kFolds = 10;

  bool knows(const RunRow& row, const StepTraits& traits, std::string StepTraits::*what) const;
  /// Groups whose measurements are partly the same count as one, whatever tables call them.
  const std::string& group_of(const RunRow& row) const;
  const std::string& same_as(const std::string& group) const;
  void join(std::string group, const std::string& other);
  template <typename Skip>
  std::unique_ptr<StepModel> fitted(Skip skip) const;

  std::vector<Step> steps_;                  ///< every measurement once
  std::map<std::string, std::size_t> fold_;  ///< of a group
  std::map<std::string, std::string> same_;  ///< of a group the one that it counts as
  std::map<std::string, std::string> group_of_measurement_;
  mutable std::unique_ptr<StepModel> all_;
  mutable std::array<std::unique_ptr<StepModel>, kFolds> folds_;
  mutable std::map<std::pair<std::string, std::string>, std::unique_ptr<StepModel>> stackless_;  ///< by stack and group
};

}  // namespace wt
