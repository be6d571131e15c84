#include "configs/files/study_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/parsed.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/limits.hpp"
#include "configs/files/study_keys.hpp"

namespace wt {
namespace {

constexpr const char* kKeys[] = {"cluster", "gpus", "global_train_batch_size"};
constexpr std::int64_t kMost = std::max(limits::kGpus, limits::kBatch);

std::int64_t whole(const std::string& text, const std::string& all, const std::string& where) {
  const auto value = parsed<std::int64_t>(text);
  if (!value || *value < 1 || *value > kMost)
    throw_usage("{}: found '{}', needs whole numbers from 1 to {}: 256, 256,512 or 256..4096", where, all, kMost);
  return *value;
}

/// The text of a number, a range or a list of numbers; "" for any other value.
std::string numbers_text(YamlMap& map, const std::string& key) {
  if (!map.has(key)) return "";
  if (map.node(key).IsSequence()) return fmt::format("{}", fmt::join(map.texts(key), ","));
  return map.node(key).IsScalar() ? map.text(key) : "";
}

bool is_list(const std::string& numbers) {
  return numbers.find(',') != std::string::npos || numbers.find("..") != std::string::npos;
}

std::vector<std::int64_t> numbers(YamlMap& map, const std::string& key) {
  const std::string text = numbers_text(map, key);
  const bool list = map.has(key) && (map.node(key).IsSequence() || is_list(text));
  return list ? parse_numbers(text, map.where(key)) : std::vector<std::int64_t>{};
}

}  // namespace

std::vector<std::int64_t> parse_numbers(const std::string& text, const std::string& where) {
  std::vector<std::int64_t> out;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const std::int64_t first = whole(text.substr(0, dots), text, where),
                       last = whole(text.substr(dots + 2), text, where);
    if (last < first) throw_usage("{}: found {}, needs the smaller number first: {}..{}", where, text, last, first);
    for (std::int64_t n = first; n <= last; n *= 2) {
      out.push_back(n);
      if (n % 2 == 0 && n / 2 * 3 <= last) out.push_back(n / 2 * 3);
    }
    if (out.back() != last) out.push_back(last);
    return out;
  }
  std::size_t begin = 0;
  for (std::size_t comma; begin <= text.size(); begin = comma + 1) {
    comma = std::min(text.find(',', begin), text.size());
    out.push_back(whole(text.substr(begin, comma - begin), text, where));
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

StudyOptions study_options(const std::string& text, const std::string& origin) {
  YamlMap map = YamlMap::from_text(text, origin);
  StudyOptions out;
  if (map.has("cluster") && map.node("cluster").IsSequence()) {
    out.clusters = map.texts("cluster");
    if (out.clusters.empty()) map.fail("cluster", "found an empty list, needs names or files of clusters");
    for (auto at = out.clusters.begin(); at != out.clusters.end(); ++at)
      if (std::find(out.clusters.begin(), at, *at) != at)
        map.fail("cluster", "found '{}' twice, needs each cluster once", *at);
  }
  out.gpus = numbers(map, "gpus");
  out.batches = numbers(map, "global_train_batch_size");
  return out;
}

std::string set_options(const std::string& text, const StudyOptions& options, const std::string& origin) {
  std::vector<std::pair<std::string, std::string>> set;
  if (!options.clusters.empty()) set.emplace_back("cluster", nlohmann::json(options.clusters.front()).dump());
  if (!options.gpus.empty()) set.emplace_back("gpus", std::to_string(options.gpus.front()));
  if (!options.batches.empty()) set.emplace_back("global_train_batch_size", std::to_string(options.batches.front()));
  return set_study_keys(text, std::move(set), origin);
}

bool names_options(const std::string& key) { return std::ranges::find(kKeys, key) != std::end(kKeys); }

void refuse_options(YamlMap& study) {
  for (const std::string key : kKeys) {
    if (!study.has(key)) continue;
    const YAML::Node node = study.node(key);
    if (node.IsSequence() || (node.IsScalar() && key != "cluster" && is_list(study.text(key))))
      study.fail(key,
                 "found {}, which are options of a decision: only windtunnel plan takes several; needs one value here",
                 node.IsScalar() ? study.text(key) : "a list");
  }
}

}  // namespace wt
