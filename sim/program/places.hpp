// Indices into flat arrays for things that a program names, by number of the name, microbatch and layer. Only layers
// with ops count, because a pipeline stage has few of its model's layers.
#pragma once
#include <cstddef>
#include <vector>

namespace wt {

class Places {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  Places(int microbatches, int layers)
      : microbatches_(static_cast<std::size_t>(microbatches) + 1),
        number_(static_cast<std::size_t>(layers) + 1, kNone) {
    number_[0] = 0;
  }
  void add_layer(int layer) {
    std::size_t& number = number_.at(static_cast<std::size_t>(layer + 1));
    if (number == kNone) number = layers_++;
  }
  /// Number of places for that many names.
  std::size_t size(std::size_t names) const { return names * microbatches_ * layers_; }
  /// -1 means outside the microbatches, or outside the layers. Returns kNone for a layer without ops.
  std::size_t at(std::size_t name, int microbatch, int layer) const {
    const std::size_t m = static_cast<std::size_t>(microbatch + 1), l = static_cast<std::size_t>(layer + 1);
    if (m >= microbatches_ || l >= number_.size() || number_[l] == kNone) return kNone;
    return (name * microbatches_ + m) * layers_ + number_[l];
  }

 private:
  std::size_t microbatches_, layers_ = 1;  ///< including one for "outside"
  std::vector<std::size_t> number_;        ///< index: layer + 1
};

}  // namespace wt
