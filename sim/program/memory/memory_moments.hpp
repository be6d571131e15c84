// What a rank's memory holds in each part of a step, at the part's highest moment.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "sim/program/memory/memory_replay.hpp"

namespace wt {

/// Parts of a step. `loss`: output projection and loss; `update`: what happens once, after the last microbatch.
enum class StepPart { forward, loss, backward, update };
inline constexpr std::array kStepParts = {StepPart::forward, StepPart::loss, StepPart::backward, StepPart::update};
std::string to_string(StepPart part);

struct MemoryMoment {
  StepPart part = StepPart::forward;
  std::string op;                          ///< id of the op at whose issue memory is highest
  double bytes = 0;                        ///< sum of the buffers
  std::map<std::string, double> bytes_of;  ///< by buffer name; "transient" is the running op's
};

/// The highest moment of each part that has ops, in the order of kStepParts. The highest of them is the peak. `replay`
/// is of `program`, with events.
std::vector<MemoryMoment> memory_moments(const Program& program, const MemoryReplay& replay);

}  // namespace wt
