// Which layers of a model have a feature, as a list of flags that repeats over the layers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace wt {

struct LayerPattern {
  std::vector<bool> repeats;  ///< layer l has flag l modulo the length; empty = every layer has the feature

  bool at(std::int64_t layer) const {
    return repeats.empty() || repeats[static_cast<std::size_t>(layer) % repeats.size()];
  }
  /// The shortest pattern that gives these layers.
  static LayerPattern of(std::vector<bool> layers) {
    std::size_t length = 1;
    for (std::size_t layer = 1; layer < layers.size(); ++layer)
      if (layers[layer] != layers[layer % length]) length = layer + 1;
    if (length < layers.size()) layers.resize(length);
    if (layers == std::vector<bool>{true}) layers.clear();
    return {std::move(layers)};
  }
  friend bool operator==(const LayerPattern&, const LayerPattern&) = default;
};

}  // namespace wt
