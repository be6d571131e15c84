#include "configs/base/yaml_references.hpp"

#include <fmt/format.h>

#include "configs/base/error.hpp"

namespace wt {
namespace {

/// A longer chain of references is a circle.
constexpr int kLongestChain = 32;
/// Limits the expanded text: in a chain, each value may hold the next one twice, which doubles the text at every link.
constexpr std::size_t kLongestText = 1 << 16;
constexpr std::int64_t kMostReferred = 1 << 20;  // values that references expand to
constexpr std::int64_t kMostFollowed = 1 << 16;  // references inside references, which may expand to nothing

std::int64_t nodes_in(const YAML::Node& node) {
  std::int64_t all = 1;
  if (node.IsMap())
    for (const auto& entry : node) all += nodes_in(entry.second);
  else if (node.IsSequence())
    for (const auto& entry : node) all += nodes_in(entry);
  return all;
}

class References {
 public:
  References(YAML::Node root, const std::string& origin) : root_(std::move(root)), origin_(origin) {}

  void fill(YAML::Node node) {
    if (node.IsMap())
      for (auto entry : node) fill_value(entry.second);
    else if (node.IsSequence())
      for (auto entry : node) fill_value(entry);
  }

 private:
  static bool holds_reference(const YAML::Node& node) {
    return node.IsScalar() && node.Scalar().find("${") != std::string::npos;
  }

  void fill_value(YAML::Node value) {
    if (!holds_reference(value)) return fill(value);
    const YAML::Node found = resolved(value, 0);
    if ((nodes_ += nodes_in(found)) > kMostReferred)
      fail(value, fmt::format("found references that stand for more than {} values", kMostReferred));
    value = YAML::Clone(found);
  }

  [[noreturn]] void fail(const YAML::Node& at, const std::string& what) const {
    throw_usage("{}:{}: {}", origin_, at.Mark().line + 1, what);
  }

  YAML::Node resolved(const YAML::Node& value, int depth) {
    if (depth > 0 && ++followed_ > kMostFollowed)
      fail(value, fmt::format("found references that lead to more than {} others", kMostFollowed));
    if (!holds_reference(value)) return value;
    std::string text = value.Scalar();
    if (depth > kLongestChain) fail(value, fmt::format("found '{}', whose references lead back to it", text));
    while (true) {
      const std::size_t begin = text.find("${"), end = text.find('}', begin);
      if (begin == std::string::npos) return YAML::Node(text);
      if (end == std::string::npos) fail(value, fmt::format("found '{}', needs a closing brace", text));
      const std::string path = text.substr(begin + 2, end - begin - 2);
      const YAML::Node found = resolved(at_path(value, path), depth + 1);
      if (begin == 0 && end + 1 == text.size()) return found;
      if (!found.IsScalar()) fail(value, fmt::format("found '{}' inside of a text, needs one value there", path));
      text.replace(begin, end + 1 - begin, found.Scalar());
      if (text.size() > kLongestText)
        fail(value, fmt::format("found references that stand for a text of more than {} bytes", kLongestText));
    }
  }

  YAML::Node at_path(const YAML::Node& from, const std::string& path) const {
    YAML::Node node = root_;
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      const YAML::Node next =
          node.IsMap() ? std::as_const(node)[path.substr(begin, end - begin)] : YAML::Node(YAML::NodeType::Undefined);
      if (!next.IsDefined())
        fail(from,
             fmt::format("found ${{{}}}, but the file has no value there; needs a key such as variables.x", path));
      node.reset(next);
      begin = end + 1;
    }
    return node;
  }

  YAML::Node root_;
  const std::string& origin_;
  std::int64_t nodes_ = 0, followed_ = 0;
};

}  // namespace

void fill_in_references(YAML::Node root, const std::string& origin) { References(root, origin).fill(root); }

}  // namespace wt
