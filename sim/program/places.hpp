// Indices of flat arrays for things that a program names: by name, microbatch and layer. Only layers on which ops act
// have places, because a stage has few of its model's layers.
#pragma once
#include <cstddef>
#include <string_view>
#include <unordered_map>
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
  /// The number of a name; numbers count from 0. The text must outlive the object.
  std::size_t number(std::string_view name) { return names_.try_emplace(name, names_.size()).first->second; }
  const std::unordered_map<std::string_view, std::size_t>& names() const { return names_; }

  /// Number of all places. Call it once all names and layers are known.
  std::size_t size() const { return names_.size() * microbatches_ * layers_; }
  /// `microbatch` and `layer` are -1 outside of microbatches or layers. kNone: there is no such place.
  std::size_t at(std::size_t name, int microbatch, int layer) const {
    const std::size_t m = static_cast<std::size_t>(microbatch + 1), l = static_cast<std::size_t>(layer + 1);
    if (m >= microbatches_ || l >= number_.size() || number_[l] == kNone) return kNone;
    return (name * microbatches_ + m) * layers_ + number_[l];
  }
  /// The place that an op of `microbatch` means by a name of `layer`: the first for which is_there(place) is true. It
  /// tries the op's microbatch (-1, the end of the step, means the last one), then none; for each, the layer, then
  /// none.
  template <class IsThere>
  std::size_t find(std::size_t name, int microbatch, int layer, const IsThere& is_there) const {
    for (const int m : {microbatch < 0 ? static_cast<int>(microbatches_) - 2 : microbatch, -1})
      for (const int l : {layer, -1})
        if (const std::size_t place = at(name, m, l); place != kNone && is_there(place)) return place;
    return kNone;
  }

 private:
  std::size_t microbatches_, layers_ = 1;  ///< including one for "outside"
  std::vector<std::size_t> number_;        ///< by layer
  std::unordered_map<std::string_view, std::size_t> names_;
};

}  // namespace wt
