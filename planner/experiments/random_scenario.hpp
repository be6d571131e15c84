// Scenarios drawn from the whole grammar that a drill can inject, for soaking recovery in what nobody thought of.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"

namespace wt {

/// The places of a step that faults are drawn from.
struct StepPlaces {
  std::vector<std::string> op_ids;       ///< of one step of any rank
  std::vector<std::string> collectives;  ///< those that communicate
};

/// Scenario number `number` of the series that starts from `seed`: one to three events, of which each can strike (the
/// next one strikes the generation that recovers from the one before). The same on every machine. It passes
/// check_drill; `expect` says what must hold after it.
Scenario random_scenario(const RunSpec& run, const StepPlaces& places, std::uint64_t seed, std::int64_t number);

}  // namespace wt
