// How `windtunnel train --rehearse` runs one rank of a planned layout: the `rehearsal` section of a run file. What a
// section leaves out is chosen so that the rank fits the machine.
#pragma once
#include <cstdint>
#include <string>

#include "configs/files/device_kind.hpp"

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

struct RehearsalSpec {
  std::int64_t rank = 0;           ///< of the planned mesh: the one that is really run
  std::int64_t steps = 3;          ///< measured, after two of warm-up
  std::int64_t width_divisor = 0;  ///< of d_model, heads, FFN widths and vocabulary; 0 = chosen
  std::int64_t layers = 0;         ///< the first so many are run; 0 = chosen
  std::int64_t seq = 0;            ///< tokens a sequence; 0 = chosen
  std::string routing;             ///< recording, histogram or family of them, "balanced"; "" = the plan's
  DeviceKind device = DeviceKind::cpu;
  friend bool operator==(const RehearsalSpec&, const RehearsalSpec&) = default;
};

/// Throws Error{usage}: unknown keys, a width that is no fraction "1/N", an unknown device.
RehearsalSpec read_rehearsal(YamlMap& map);
/// The map that read_rehearsal reads back to the same.
void rehearsal_to_yaml(const RehearsalSpec& spec, YAML::Emitter& out);

}  // namespace wt
