// Which kernel classes a plan's step is priced by, and on how many measurements each of them rests.
#include <algorithm>

#include "planner/plan/plan.hpp"
#include "planner/search/search_evaluate.hpp"

namespace wt {
namespace {

/// The class whose measurements price the item: its own, its forward pass's, or that of the other precision.
ClassKey class_behind(const MachineData& data, const WorkItem& item) {
  const Precision other = item.precision == Precision::fp32 ? Precision::bf16 : Precision::fp32;
  for (const ClassKey& key :
       {ClassKey{item.kernel, item.pass, item.precision}, ClassKey{item.kernel, item.pass, other},
        ClassKey{item.kernel, Pass::forward, item.precision}, ClassKey{item.kernel, Pass::forward, other}})
    if (data.fits.count(key) && (key.precision == item.precision || !is_product(item.kernel))) return key;
  return {item.kernel, item.pass, item.precision};
}

std::string first_source(const MachineData& data, const ClassKey& key) {
  for (const auto& [item, points] : data.table)
    if (ClassKey{item.kernel, item.pass, item.precision} == key && !points.empty()) return points.front().source;
  return "no measurement of this kernel";
}

}  // namespace

std::vector<EvidenceSource> evidence_sources(const PlanInputs& inputs, const Plan& plan) {
  const auto* machine = dynamic_cast<const MachineModel*>(inputs.prices.get());
  if (machine == nullptr) return {};  // a stack's prices have no classes
  const SearchProblem problem = search_problem(inputs, *machine);
  const ProgramSet set = build_program_set(problem.model, plan.layout, program_options(problem, plan.layout));
  const Microbatches sequences = sequences_of(problem, plan.layout);
  std::map<const WorkItem*, double> seconds_of;  // layers repeat the program's items
  std::map<ClassKey, double> seconds;
  double sum = 0;
  for (const OpInstance& instance : unroll(set.programs[0])) {
    const double received =
        static_cast<double>(sequences.of(instance.microbatch) * problem.seq * problem.model.top_k) * plan.imbalance;
    for (const WorkItem& item : instance.op->work) {
      const auto [found, fresh] = seconds_of.try_emplace(&item, 0.0);
      if (fresh) found->second = machine->item(item, instance.layer >= 0 ? received : 0).seconds;
      if (!(found->second > 0)) continue;
      seconds[class_behind(machine->data(), item)] += found->second;
      sum += found->second;
    }
  }
  std::vector<EvidenceSource> out;
  for (const auto& [key, value] : seconds) {
    const auto fit = machine->data().fits.find(key);
    out.push_back({to_string(key), value / sum, fit == machine->data().fits.end() ? 0 : fit->second.points,
                   first_source(machine->data(), key)});
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return out;
}

}  // namespace wt
