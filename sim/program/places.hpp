// Where things that a program names are kept in flat arrays: by their name, their microbatch and their layer. Of layers
// those alone count that ops act on: a stage has few of its model's.
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
  /// Names are asked for by their numbers, which count from 0. The text must outlive this.
  std::size_t number(std::string_view name) { return names_.try_emplace(name, names_.size()).first->second; }
  const std::unordered_map<std::string_view, std::size_t>& names() const { return names_; }

  /// All places, once names and layers are known.
  std::size_t size() const { return names_.size() * microbatches_ * layers_; }
  /// -1: outside of microbatches, or of layers. kNone: nothing is there.
  std::size_t at(std::size_t name, int microbatch, int layer) const {
    const std::size_t m = static_cast<std::size_t>(microbatch + 1), l = static_cast<std::size_t>(layer + 1);
    if (m >= microbatches_ || l >= number_.size() || number_[l] == kNone) return kNone;
    return (name * microbatches_ + m) * layers_ + number_[l];
  }
  /// Where an op of that microbatch finds what it names of that layer, the first place that is_there(place): of its
  /// microbatch (at the end of the step, where that is -1, of the last one) or of none, of the layer or of none.
  template <class IsThere>
  std::size_t find(std::size_t name, int microbatch, int layer, const IsThere& is_there) const {
    for (const int m : {microbatch < 0 ? static_cast<int>(microbatches_) - 2 : microbatch, -1})
      for (const int l : {layer, -1})
        if (const std::size_t place = at(name, m, l); place != kNone && is_there(place)) return place;
    return kNone;
  }

 private:
  std::size_t microbatches_, layers_ = 1;  ///< with what is outside of them
  std::vector<std::size_t> number_;        ///< by layer
  std::unordered_map<std::string_view, std::size_t> names_;
};

}  // namespace wt
