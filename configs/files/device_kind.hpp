// The device of a rank's tensors and kernels: the key `device` of a run file and of its rehearsal.
#pragma once
#include <string>

namespace wt {

class YamlMap;

enum class DeviceKind { cpu, cuda };
std::string to_string(DeviceKind device);

/// Reads `device`; the default is cpu. Throws Error{usage} for words other than cpu and cuda.
DeviceKind device_from_yaml(YamlMap& map);

}  // namespace wt
