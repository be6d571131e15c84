#include "configs/files/device_kind.hpp"

#include <array>

#include "configs/base/yaml.hpp"

namespace wt {

std::string to_string(DeviceKind device) { return device == DeviceKind::cpu ? "cpu" : "cuda"; }

DeviceKind device_from_yaml(YamlMap& map) {
  return map.enumerator("device", std::array{"cpu", "cuda"}, DeviceKind::cpu);
}

}  // namespace wt
