#include "planner/plan/plan_evidence.hpp"

#include <algorithm>

#include "planner/search/search_evaluate.hpp"

namespace wt {

std::vector<PricedClass> priced_classes(const PlanInputs& inputs, const Plan& plan) {
  const SearchProblem problem = search_problem(inputs, *inputs.prices);
  const ProgramSet set = build_program_set(problem.model, plan.layout, program_options(problem, plan.layout));
  const Microbatches sequences = sequences_of(problem, plan.layout);
  struct Priced {
    double seconds = 0;
    PricedClass* by = nullptr;
  };
  std::map<const WorkItem*, Priced> priced;  // layers repeat the program's items
  std::map<std::string, PricedClass> classes;
  double sum = 0;
  for (const OpInstance& instance : unroll(set.programs[0])) {
    const double received =
        static_cast<double>(sequences.of(instance.microbatch) * problem.seq * problem.model.top_k) * plan.imbalance;
    for (const WorkItem& item : instance.op->work) {
      const auto [found, fresh] = priced.try_emplace(&item);
      Priced& price = found->second;
      if (fresh) {
        const double rows = instance.layer >= 0 ? received : 0;
        price.seconds = inputs.prices->item(item, rows).seconds;
        if (price.seconds > 0) {
          PriceBasis basis = inputs.prices->explain(item, rows);
          price.by = &classes[basis.name];
          static_cast<PriceBasis&>(*price.by) = std::move(basis);
        }
      }
      if (price.by == nullptr) continue;
      price.by->share += price.seconds;
      sum += price.seconds;
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
