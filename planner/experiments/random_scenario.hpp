// Random scenarios from all faults that a drill can inject, to test recovery from combinations that nobody thought of.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"

namespace wt {

/// Places of a step where faults are injected.
struct StepPlaces {
  std::vector<std::string> op_ids;       ///< of one step, for any rank
  std::vector<std::string> collectives;  ///< ops that communicate
};

/// Scenario `number` of the series for `seed`: one to three events that certainly happen (each in the generation that
/// recovers from the one before). The same on every machine. It passes check_drill; `expect` is what must hold
/// afterwards.
Scenario random_scenario(const RunSpec& run, const StepPlaces& places, std::uint64_t seed, std::int64_t number);

}  // namespace wt
