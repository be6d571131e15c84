// How `windtunnel train --rehearse` runs one rank of a planned layout: the section `rehearsal` of a run file. Sizes
// that it omits are chosen so that the rank fits the machine.
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
  std::int64_t rank = 0;           ///< of the planned mesh: the one that runs
  std::int64_t steps = 3;          ///< measured steps, after two of warm-up
  std::int64_t width_divisor = 0;  ///< of d_model, heads, FFN widths and vocabulary; 0 = chosen
  std::int64_t layers = 0;         ///< number of layers that run, from the first on; 0 = chosen
  std::int64_t seq = 0;            ///< tokens of a sequence; 0 = chosen
  std::string routing;             ///< recording, histogram, family of histograms, "balanced"; "" = the plan's
  DeviceKind device = DeviceKind::cpu;
  friend bool operator==(const RehearsalSpec&, const RehearsalSpec&) = default;
};

/// Throws Error{usage}: unknown keys, a width other than "1/N", "full" or "auto", an unknown device.
RehearsalSpec read_rehearsal(YamlMap& map);
/// Writes the map for read_rehearsal.
void rehearsal_to_yaml(const RehearsalSpec& spec, YAML::Emitter& out);

}  // namespace wt
