// Which kernel classes a plan's step is priced by, and on how many measurements each of them rests.
#include <algorithm>

#include "planner/plan/plan.hpp"
#include "planner/search/search_evaluate.hpp"

namespace wt {

std::vector<PricedClass> priced_classes(const PlanInputs& inputs, const Plan& plan) {
  const SearchProblem problem = search_problem(inputs, *inputs.prices);
  const ProgramSet set = build_program_set(problem.model, plan.layout, program_options(problem, plan.layout));
  const Microbatches sequences = sequences_of(problem, plan.layout);
  std::map<const WorkItem*, double> seconds_of;  // layers repeat the program's items
  std::map<std::string, PricedClass> classes;
  double sum = 0;
  for (const OpInstance& instance : unroll(set.programs[0])) {
    const double received =
        static_cast<double>(sequences.of(instance.microbatch) * problem.seq * problem.model.top_k) * plan.imbalance;
    for (const WorkItem& item : instance.op->work) {
      const auto [found, fresh] = seconds_of.try_emplace(&item, 0.0);
      if (fresh) found->second = inputs.prices->item(item, instance.layer >= 0 ? received : 0).seconds;
      if (!(found->second > 0)) continue;
      PriceBasis basis = inputs.prices->explain(item);
      PricedClass& entry = classes[basis.name];
      static_cast<PriceBasis&>(entry) = std::move(basis);
      entry.share += found->second;
      sum += found->second;
    }
  }
  std::vector<PricedClass> out;
  for (auto& [name, entry] : classes) {
    entry.share /= sum;
    out.push_back(std::move(entry));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return out;
}

}  // namespace wt
