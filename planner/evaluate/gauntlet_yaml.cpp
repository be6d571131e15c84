// Reads Foundry's map eval_gauntlet strictly.
#include <fmt/ranges.h>

#include <set>

#include "configs/base/yaml.hpp"
#include "planner/evaluate/gauntlet.hpp"

namespace wt {
namespace {

GauntletBenchmark read_benchmark(YamlMap at) {
  GauntletBenchmark out;
  out.name = at.text("name");
  out.shots = at.integer("num_fewshot", 0);
  out.baseline = at.number("random_baseline", 0, 1);
  if (out.baseline >= 1) at.fail("random_baseline", "found 1, allowed is at least 0 and below 1");
  out.metric = at.text("metric", "");
  if (at.has("samples")) out.samples = at.integer("samples", 1);
  at.finish();
  return out;
}

}  // namespace

GauntletSpec read_gauntlet(YamlMap at) {
  GauntletSpec out;
  const std::string weighting = at.choice("weighting", {"EQUAL", "SAMPLE_SZ", "LOG_SAMPLE_SZ"}, "EQUAL");
  using Weighting = GauntletSpec::Weighting;
  out.weighting = weighting == "EQUAL"       ? Weighting::equal
                  : weighting == "SAMPLE_SZ" ? Weighting::sample_size
                                             : Weighting::log_sample_size;
  out.subtract_baseline = at.boolean("subtract_random_baseline", true);
  out.rescale = at.boolean("rescale_accuracy", true);
  if (out.rescale && !out.subtract_baseline)
    at.fail("rescale_accuracy",
            "found true beside subtract_random_baseline: false, which LLM Foundry refuses; set both to false");
  std::set<std::string> categories;
  for (YamlMap category : at.maps("categories")) {
    GauntletSpec::Category& to = out.categories.emplace_back();
    to.name = category.text("name");
    if (!categories.insert(to.name).second) category.fail("name", "found category " + to.name + " twice");
    for (const YamlMap& benchmark : category.maps("benchmarks")) to.benchmarks.push_back(read_benchmark(benchmark));
    if (to.benchmarks.empty()) category.fail("benchmarks", "found none, needs at least one");
    category.finish();
  }
  if (out.categories.empty()) at.fail("categories", "found none, needs at least one");
  const std::vector<std::string> names(categories.begin(), categories.end());
  if (at.has("averages")) {
    const YAML::Node averages = at.node("averages");
    if (!averages.IsMap()) at.fail("averages", "found no map, needs a list of categories a name");
    for (const auto& average : averages) {
      const std::string name = average.first.as<std::string>();
      if (categories.contains(name))
        at.fail("averages", "found average " + name + ", which is a category's name, too; give it another");
      if (!average.second.IsSequence() || average.second.size() == 0)
        at.fail("averages", "found no list under " + name + ", needs categories");
      GauntletSpec::Average& to = out.averages.emplace_back(GauntletSpec::Average{name, {}});
      for (const YAML::Node& each : average.second) {
        to.categories.push_back(each.IsScalar() ? each.Scalar() : "");
        if (!categories.contains(to.categories.back()))
          at.fail("averages", fmt::format("found category '{}' under {}, the categories are {}", to.categories.back(),
                                          name, fmt::join(names, ", ")));
      }
    }
  } else {
    out.averages.push_back({"default_average", {}});  // Foundry's name
    for (const GauntletSpec::Category& category : out.categories)
      out.averages.back().categories.push_back(category.name);
  }
  at.finish();
  return out;
}

}  // namespace wt
