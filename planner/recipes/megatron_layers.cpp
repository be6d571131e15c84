// Layers with experts or a window, in Megatron-LM's flags: a number, or a Python expression of lists.

#include <cctype>
#include <functional>

#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

/// Evaluates lists, sums and products like _eval_pattern of megatron/training/arguments.py.
class LayerList {
 public:
  LayerList(std::string text, const MegatronKeys& keys, std::string field)
      : text_(std::move(text)), keys_(keys), field_(std::move(field)) {}
  std::vector<bool> all() {
    std::vector<bool> out = sum();
    if (at_ != text_.size()) refuse();
    return out;
  }

 private:
  [[noreturn]] void refuse() const {
    keys_.fail(field_, "found '{}', needs a number or lists of 0 and 1 as in ([0]*3+[1]*58)", text_);
  }
  bool next(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::vector<bool> sum() {
    std::vector<bool> out = product();
    while (next('+')) {
      const std::vector<bool> more = product();
      out.insert(out.end(), more.begin(), more.end());
    }
    return out;
  }
  std::vector<bool> product() {
    const std::vector<bool> once = atom();
    std::vector<bool> out = once;
    while (next('*')) {
      constexpr std::int64_t kMostLayers = 100000;
      std::int64_t times = 0;
      if (at_ >= text_.size() || std::isdigit(static_cast<unsigned char>(text_[at_])) == 0) refuse();
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 && times < kMostLayers)
        times = 10 * times + (text_[at_++] - '0');
      const std::vector<bool> repeated = out;
      if (times * static_cast<std::int64_t>(repeated.size()) > kMostLayers) refuse();
      out.clear();
      for (; times > 0; --times) out.insert(out.end(), repeated.begin(), repeated.end());
    }
    return out;
  }
  std::vector<bool> atom() {
    constexpr int kDeepest = 100;
    if (next('(')) {
      if (++depth_ > kDeepest) refuse();
      std::vector<bool> out = sum();
      if (!next(')')) refuse();
      return out;
    }
    if (!next('[')) refuse();
    std::vector<bool> out;
    do {
      const bool one = next('1');
      if (!one && !next('0')) refuse();
      out.push_back(one);
    } while (next(','));
    if (!next(']')) refuse();
    return out;
  }

  std::string text_;
  const MegatronKeys& keys_;
  std::string field_;
  std::size_t at_ = 0;
  int depth_ = 0;  ///< open parentheses
};

}  // namespace

Settings::Value megatron_layer_list(std::int64_t layers, bool text, const std::function<bool(std::int64_t)>& has) {
  if (!text) {
    Settings::Value list = Settings::Value::array();
    for (std::int64_t layer = 0; layer < layers; ++layer) list.push_back(has(layer) ? 1 : 0);
    return list;
  }
  std::string out;
  for (std::int64_t layer = 0, end = 0; layer < layers; layer = end) {
    while (end < layers && has(end) == has(layer)) ++end;
    out += fmt::format("{}[{}]*{}", out.empty() ? "" : "+", has(layer) ? 1 : 0, end - layer);
  }
  return "(" + out + ")";
}

std::vector<bool> read_megatron_layer_list(MegatronKeys& keys, const std::string& field, std::int64_t layers,
                                           const std::function<bool(std::int64_t layer, std::int64_t n)>& nth) {
  const Settings::Value value = keys.value(field);
  std::vector<bool> out;
  if (value.is_number_integer() && value > 0) {
    for (std::int64_t layer = 0; layer < layers; ++layer) out.push_back(nth(layer, value.get<std::int64_t>()));
    return out;
  }
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  std::erase(text, ' ');
  out = LayerList(text, keys, field).all();
  if (static_cast<std::int64_t>(out.size()) != layers)
    keys.fail(field, "found {} layers, needs the model's {}", out.size(), layers);
  return out;
}

}  // namespace wt
