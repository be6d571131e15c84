#include "sim/cost/stacks/measured_runs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "configs/base/quantity.hpp"
#include "configs/files/data_sheet.hpp"
#include "sim/cost/stacks/step_family.hpp"

namespace wt {
namespace {

struct AmountFeature {
  double RunFeatures::*value;
  const char* name;
};
constexpr std::array kAmounts = {AmountFeature{&RunFeatures::gpus, "GPUs"},
                                 AmountFeature{&RunFeatures::flops_per_token, "FLOPs a token"},
                                 AmountFeature{&RunFeatures::sequence, "tokens a sequence"},
                                 AmountFeature{&RunFeatures::microbatch, "tokens a microbatch"},
                                 AmountFeature{&RunFeatures::expert, "expert degree"},
                                 AmountFeature{&RunFeatures::split, "ranks a microbatch"}};
struct WordFeature {
  std::string RunFeatures::*value;
  const char* name;
};
constexpr std::array kWords = {WordFeature{&RunFeatures::gpu, "GPU"}, WordFeature{&RunFeatures::stack, "stack"},
                               WordFeature{&RunFeatures::format, "format"}};
constexpr double kSame = 1.25;  // up to here amounts are not named as a difference
constexpr double kBeyond = 2;   // times the largest measured amount, or below the smallest

std::string amount_text(double value) { return value >= 1e9 ? format_tokens(value) : fmt::format("{:.0f}", value); }

/// "4 x", "1/3 of": how much larger an amount is.
std::string times(double ratio) {
  return ratio >= 10  ? fmt::format("{:.0f} x", ratio)
         : ratio >= 1 ? fmt::format("{:.2g} x", ratio)
                      : fmt::format("1/{:.2g} of", 1 / ratio);
}

}  // namespace

RunFeatures features_of(const RunSpec& run, const ClusterSpec& cluster, const StackSpec& stack) {
  const auto sheet = data_sheet(cluster.gpu_name);
  const Layout& layout = run.layout;
  return {.family = step_family(run.model, layout),
          .gpu = sheet ? sheet->name : cluster.gpu_name,
          .stack = stack.name,
          .format = to_string(run.precisions.forward),
          .gpus = static_cast<double>(layout.world()),
          .flops_per_token = run.model.flops_per_token(run.seq),
          .sequence = static_cast<double>(run.seq),
          .microbatch = static_cast<double>(run.tokens().each),
          .expert = static_cast<double>(layout.expert),
          .split = static_cast<double>(layout.tensor * layout.pipeline * layout.context)};
}

double doublings_apart(const RunFeatures& a, const RunFeatures& b) {
  if (a.family != b.family) return std::numeric_limits<double>::infinity();
  double out = 0;
  for (const AmountFeature& amount : kAmounts) out += std::abs(std::log2(a.*amount.value / b.*amount.value));
  for (const WordFeature& word : kWords) out += a.*word.value != b.*word.value ? 1 : 0;
  return out;
}

std::vector<Relative> relatives(const RunFeatures& asked, const std::vector<MeasuredRun>& runs, std::size_t most) {
  std::vector<std::pair<double, const MeasuredRun*>> near;
  for (const MeasuredRun& run : runs)
    if (const double apart = doublings_apart(asked, run.features); std::isfinite(apart)) near.emplace_back(apart, &run);
  std::ranges::stable_sort(near, {}, [](const auto& each) { return each.first; });
  std::set<std::pair<std::string, std::string>> seen;
  std::vector<Relative> out;
  for (const auto& [apart, run] : near) {
    if (out.size() == most) break;
    if (!seen.emplace(run->origin, run->name).second) continue;
    Relative& relative = out.emplace_back(Relative{*run, apart, {}});
    for (const AmountFeature& amount : kAmounts) {
      const double ratio = asked.*amount.value / run->features.*amount.value;
      if (ratio > kSame || ratio < 1 / kSame)
        relative.differences.push_back(fmt::format("{} the {}", times(ratio), amount.name));
    }
    for (const WordFeature& word : kWords)
      if (asked.*word.value != run->features.*word.value)
        relative.differences.push_back(fmt::format("{} {}", word.name, asked.*word.value));
  }
  return out;
}

std::vector<std::string> beyond_measured(const RunFeatures& asked, const std::vector<MeasuredRun>& runs) {
  std::vector<std::string> out;
  for (const AmountFeature& amount : kAmounts) {
    double least = std::numeric_limits<double>::infinity(), largest = 0;
    for (const MeasuredRun& run : runs)
      if (run.features.family == asked.family) {
        least = std::min(least, run.features.*amount.value);
        largest = std::max(largest, run.features.*amount.value);
      }
    const double value = asked.*amount.value;
    if (largest > 0 && value > kBeyond * largest)
      out.push_back(fmt::format("{} {}, where runs like it had {} at most", amount_text(value), amount.name,
                                amount_text(largest)));
    else if (largest > 0 && value * kBeyond < least)
      out.push_back(fmt::format("{} {}, where runs like it had {} at least", amount_text(value), amount.name,
                                amount_text(least)));
  }
  return out;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunFeatures, family, gpu, stack, format, gpus, flops_per_token, sequence, microbatch,
                                   expert, split)

void to_json(nlohmann::json& json, const MeasuredRun& r) {
  json = {{"name", r.name},
          {"origin", r.origin},
          {"features", r.features},
          {"measured", r.measured},
          {"predicted", r.predicted}};
}

void from_json(const nlohmann::json& json, MeasuredRun& r) {
  json.at("name").get_to(r.name);
  json.at("origin").get_to(r.origin);
  json.at("features").get_to(r.features);
  json.at("measured").get_to(r.measured);
  json.at("predicted").get_to(r.predicted);
}

}  // namespace wt
