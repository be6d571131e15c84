// What predicts a step under a placement of experts: shape and layout of its model, and the loads of its ranks. If
// nobody recorded loads of this model and method, the nearest recording is used. Every assumption is listed in words.
// Cheap compared with timing a step.
#pragma once
#include <string>
#include <vector>

#include "sim/measurements/routing_rows.hpp"

namespace wt {

/// How closely the recorded loads match the row, nearest first. Rows of one kind have similar errors.
enum class RoutedBasis {
  recorded,       ///< loads of this model, method, data set and balancing loss
  other_setting,  ///< loads of another data set or balancing loss
  other_model,    ///< loads of another model with as many experts, choices and expert-parallel ranks
  other_experts,  ///< loads of a model where one of these differs
  other_shape,    ///< shape or layout of another model; perhaps its loads too
};
const char* regime_of(RoutedBasis basis);

struct RoutedCase {
  std::string model;  ///< as the setups spell it if one has it, else as the row does
  RoutedSetup setup;
  RankLoads loads;
  std::pair<std::string, std::string> recording;  ///< model and method whose loads were recorded
  RoutedBasis basis = RoutedBasis::recorded;
  std::vector<std::string> assumed;  ///< properties that the row does not state
  std::string unknown, reason;       ///< what is not known and why; empty if there is a case
};

/// Names are compared by letters and digits alone, methods also by kSynonyms. A model without a setup counts as a
/// variant of its base (PlacedStep::base, else its own name). It takes the shape of a known model or of another variant
/// of that base with the row's experts and choices, and the layout of the nearest setup. Loads are the nearest
/// recording of the same method, without scaling. A method that nobody recorded gets no case.
RoutedCase routed_case(const PlacedStep& row, const RoutedContext& context);

}  // namespace wt
