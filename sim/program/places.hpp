// Where things that a program names are kept in flat arrays: by the number of their name, their microbatch and their
// layer. Of layers those alone count that ops act on: a stage has few of its model's.
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
  /// Places of so many names.
  std::size_t size(std::size_t names) const { return names * microbatches_ * layers_; }
  /// -1: outside of microbatches, or of layers. kNone: nothing is there.
  std::size_t at(std::size_t name, int microbatch, int layer) const {
    const std::size_t m = static_cast<std::size_t>(microbatch + 1), l = static_cast<std::size_t>(layer + 1);
    if (m >= microbatches_ || l >= number_.size() || number_[l] == kNone) return kNone;
    return (name * microbatches_ + m) * layers_ + number_[l];
  }

 private:
  std::size_t microbatches_, layers_ = 1;  ///< with what is outside of them
  std::vector<std::size_t> number_;        ///< by layer
};

}  // namespace wt
