#include "configs/files/shared_cache.hpp"

#include <array>
#include <filesystem>

#include "configs/base/lists.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

/// "" for a stream without a remote folder.
std::string cache_of(const StreamSpec& stream) {
  if (stream.remote.empty()) return "";
  if (stream.local.empty()) return "the temporary folder of " + stream.remote_folder();
  return std::filesystem::path(stream.local_folder()).lexically_normal().string();
}

std::vector<std::array<std::string, 3>> places_of(const DatasetSpec& set) {
  return mapped(set.streams, [](const StreamSpec& s) { return std::array{s.remote, s.local, s.split}; });
}

}  // namespace

std::string limited_cache_of_both(const DatasetSpec& a, const DatasetSpec& b) {
  if (!a.cache_limit && !b.cache_limit) return "";
  if (a.cache_limit == b.cache_limit && places_of(a) == places_of(b)) return "";
  for (const StreamSpec& one : a.streams)
    for (const StreamSpec& other : b.streams)
      if (std::string cache = cache_of(one); !cache.empty() && cache == cache_of(other)) return cache;
  return "";
}

void check_caches(const YamlMap& map, const EvaluationSpec& evaluation, const DatasetSpec& trained) {
  for (std::size_t i = 0; i < evaluation.sets.size(); ++i) {
    const auto& [label, dataset] = evaluation.sets[i];
    const auto check = [&, &label = label, &dataset = dataset](const DatasetSpec& other, const std::string& whose) {
      if (const std::string folder = limited_cache_of_both(dataset, other); !folder.empty())
        map.fail_entry("eval_loader", i,
                       "found that '{}' caches shards in {}, and so does {}, with a cache_limit and as another data "
                       "set or with another limit; needs a folder of its own as `local`",
                       label, folder, whose);
    };
    check(trained, "the train_loader");
    for (std::size_t j = 0; j < i; ++j) check(evaluation.sets[j].dataset, "'" + evaluation.sets[j].label + "'");
  }
}

}  // namespace wt
