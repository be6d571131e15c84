#include "planner/plan/other_gpus.hpp"

#include <algorithm>
#include <vector>

#include "configs/base/error.hpp"
#include "planner/plan/plan_search.hpp"

namespace wt {
namespace {

SpaceFit fit_on(PlanInputs inputs, std::int64_t gpus) try {
  StudySpec& s = inputs.study;
  s.gpus = gpus;
  s.cluster.set_nodes(std::max<std::int64_t>(1, gpus / s.cluster.gpus_per_node));
  const PlanSearch asked(inputs);
  return space_fit(asked.problem);
} catch (const Error&) {
  return SpaceFit::empty;  // the study asks for something that so many GPUs cannot have
}

/// Whole nodes, or parts of one, that divide the batch, the fewest GPUs first.
std::vector<std::int64_t> usable_numbers(const StudySpec& s) {
  std::vector<std::int64_t> out;
  for (std::int64_t gpus = s.global_batch; (gpus = usable_gpus(gpus, s.cluster.gpus_per_node, s.global_batch)) > 0;
       --gpus)
    out.push_back(gpus);
  std::ranges::reverse(out);
  return out;
}

}  // namespace

std::string dividing_gpus_sentence(const StudySpec& s) {
  const std::vector<std::int64_t> usable = usable_numbers(s);
  const auto above = std::ranges::upper_bound(usable, s.gpus);
  std::string next = above == usable.begin() ? "" : std::to_string(*(above - 1));
  if (above != usable.end()) next += fmt::format("{}{}", next.empty() ? "" : " and ", *above);
  return fmt::format("The batch of {} sequences does not divide among {} GPUs. It does among {}.", s.global_batch,
                     s.gpus, next);
}

std::string other_gpus_sentence(const PlanInputs& inputs) {
  const StudySpec& s = inputs.study;
  const SpaceFit own = fit_on(inputs, s.gpus);
  if (own == SpaceFit::fits) return "";
  const std::string next =
      own == SpaceFit::empty && !divides_batch(s) ? dividing_gpus_sentence(s) + " " : std::string();
  const std::vector<std::int64_t> usable = usable_numbers(s);
  const auto fewest =
      std::ranges::find_if(usable, [&](std::int64_t gpus) { return fit_on(inputs, gpus) == SpaceFit::fits; });
  return next + (fewest == usable.end() ? "No number of GPUs that divides the batch has a layout that fits."
                                        : fmt::format("The fewest GPUs on which a layout fits: {}.", *fewest));
}

Plan make_plan_or_say(const PlanInputs& inputs, const SearchProgress& progress) try {
  return make_plan(inputs, progress);
} catch (const Error& error) {
  const std::string others = error.code() == Code::finding ? other_gpus_sentence(inputs) : "";
  if (others.empty()) throw;
  throw_error(Code::finding, "{}. {}", error.what(), others);
}

}  // namespace wt
