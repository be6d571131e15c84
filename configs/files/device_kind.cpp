#include "configs/files/device_kind.hpp"

#include "configs/base/yaml.hpp"

namespace wt {

std::string to_string(DeviceKind device) { return device == DeviceKind::cpu ? "cpu" : "cuda"; }

DeviceKind device_from_yaml(YamlMap& map) {
  return map.choice("device", {"cpu", "cuda"}, "cpu") == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
}

}  // namespace wt
