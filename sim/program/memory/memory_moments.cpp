#include "sim/program/memory/memory_moments.hpp"

#include <algorithm>

namespace wt {
namespace {

/// `started`: after the first microbatch's first op.
StepPart part_of(const OpInstance& instance, bool started) {
  if (instance.op->action == Action::head_loss) return StepPart::loss;
  if (instance.microbatch < 0) return started ? StepPart::update : StepPart::forward;
  return instance.op->direction == Direction::forward ? StepPart::forward : StepPart::backward;
}

}  // namespace

std::string to_string(StepPart part) {
  static constexpr std::array<const char*, kStepParts.size()> kNames = {"forward", "loss", "backward", "update"};
  return kNames[static_cast<std::size_t>(part)];
}

std::vector<MemoryMoment> memory_moments(const Program& program, const MemoryReplay& replay) {
  const std::vector<OpInstance> ops = unroll(program);
  std::array<MemoryMoment, kStepParts.size()> highest;
  std::map<std::string, double> live;
  bool started = false;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    started = started || ops[i].microbatch >= 0;
    for (; taken < replay.events_until[i]; ++taken) live[replay.events[taken].buffer] += replay.events[taken].bytes;
    const double bytes = replay.peak_bytes_of[i];
    const StepPart part = part_of(ops[i], started);
    MemoryMoment& moment = highest[static_cast<std::size_t>(part)];
    if (bytes <= moment.bytes) continue;
    moment = {part, ops[i].id(), bytes, live};
  }
  std::vector<MemoryMoment> out;
  for (MemoryMoment& moment : highest) {
    std::erase_if(moment.bytes_of, [](const auto& buffer) { return buffer.second <= 0; });
    if (moment.bytes > 0) out.push_back(std::move(moment));
  }
  return out;
}

}  // namespace wt
