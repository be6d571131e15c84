// Where a rank's tensors are and its kernels run: the key `device` of a run file and of its rehearsal.
#pragma once
#include <string>

namespace wt {

class YamlMap;

enum class DeviceKind { cpu, cuda };
std::string to_string(DeviceKind device);

/// `device`: cpu where it is not said. Throws Error{usage} on others than cpu and cuda.
DeviceKind device_from_yaml(YamlMap& map);

}  // namespace wt
