// What the time of a step under a placement of experts rests on: the shape and layout behind its model's name, and the
// loads of its ranks. Where nobody recorded those of this very model and method, the nearest that somebody did, every
// assumption in words. Costs nothing beyond the machine's times.
#pragma once
#include <string>
#include <vector>

#include "sim/measurements/routing_rows.hpp"

namespace wt {

/// How near what was recorded is to the row, the nearest first; rows of one kind err alike.
enum class RoutedBasis {
  recorded,       ///< loads of this model, method, data set and balancing loss
  other_setting,  ///< of another data set or loss
  other_model,    ///< of another model with as many experts, choices and expert-parallel ranks
  other_experts,  ///< of a model where one of these differs
  other_shape,    ///< shape or layout are those of another model; the loads may be, too
};
const char* regime_of(RoutedBasis basis);

struct RoutedCase {
  std::string model;  ///< as setups name it where they do; else as the row does
  RoutedSetup setup;
  RankLoads loads;
  std::pair<std::string, std::string> recording;  ///< model and method that the loads were recorded of
  RoutedBasis basis = RoutedBasis::recorded;
  std::vector<std::string> assumed;  ///< what nobody said of this row
  std::string unknown, reason;       ///< what is not known and why, where there is no case
};

/// Names are compared by letters and digits alone, methods by kSynonyms. A model that no setup has is a variant of its
/// base (PlacedStep::base, else its own name), a known model or another variant of it, with the row's experts and
/// choices, in the layout of the nearest setup; loads are those of the nearest recorded of the method, as they are.
/// Nothing is assumed of methods that nobody recorded.
RoutedCase routed_case(const PlacedStep& row, const RoutedContext& context);

}  // namespace wt
