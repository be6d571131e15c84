#include "planner/plan/bench_shapes.hpp"

#include <algorithm>
#include <cmath>

#include "bench/suites/cases.hpp"
#include "configs/spec/support/error.hpp"
#include "planner/search/group_bounds.hpp"
#include "planner/search/search_evaluate.hpp"

namespace wt {
namespace {

/// 0 where the study's profiles say nothing of this class of kernels.
Price price_of(const OpCost& cost, const WorkItem& item) {
  try {
    return cost.item(item, 0);
  } catch (const Error&) {
    return {};
  }
}

RunSpec run_of(const StudySpec& s, const Layout& layout) {
  RunSpec run;
  run.name = s.name;
  run.model = s.model;
  run.layout = layout;
  run.precision = s.precision;
  run.device = s.cluster.shared_cores() ? DeviceKind::cpu : DeviceKind::cuda;
  run.steps = 1;
  run.seq = s.seq;
  run.global_batch = s.global_batch;
  return run;
}

}  // namespace

StudyShapes study_shapes(const PlanInputs& inputs) {
  const SearchProblem problem = search_problem(inputs, *inputs.prices);
  StudyShapes out;
  if (inputs.study.cluster.one_gpu(inputs.study.gpus).empty())
    throw_error(Code::usage, "study {}: found {}, and a benchmark is of one GPU; needs a study of nodes of one kind",
                inputs.study.name, inputs.study.cluster.nodes_text(inputs.study.gpus));
  out.gpu = inputs.study.cluster.shared_cores() ? "" : inputs.study.cluster.one_gpu(inputs.study.gpus);
  StepItems items;
  GroupBounds bounds(problem);
  for (const LayoutGroup& group : LayoutSpace(problem).groups()) {  // members of a group compute the same
    if (bounds.memory_bytes(group) > problem.memory_limit_bytes ||
        step_memory(problem, group.layout).needed() > problem.memory_limit_bytes)
      continue;
    out.layouts += group.members;
    const Layout layout = dealt(problem, group.layout);
    if (out.layouts == group.members) out.run = run_of(inputs.study, layout);
    const Microbatches sequences = sequences_of(problem, layout);
    items.add(build_program_set(problem.model, layout, program_options(problem, sequences)),
              static_cast<double>(sequences.each * problem.seq * problem.model.top_k));
  }
  if (out.layouts == 0)
    throw_error(Code::finding,
                "study {}: no layout fits, so that there is nothing to measure; windtunnel plan names the nearest miss",
                inputs.study.name);
  for (const WorkItem& item : items.list()) {
    const Price price = price_of(*inputs.prices, item);
    if (price.lookup == Lookup::exact && price.seconds > 0)
      ++out.known;
    else
      out.missing.push_back({item, price.seconds});
  }
  return out;
}

double estimated_s(const MissingShape& shape, bool on_gpu, int samples) {
  // Orders of magnitude: fp64 products on one core, random inputs and comparisons of a host, inputs of a GPU; a sample
  // of 10 ms.
  constexpr double kCheck_s = 0.05, kReferenceFlopsPerS = 1e10, kHost_Bps = 2e9, kDevice_Bps = 5e11, kSample_s = 0.01;
  const double flops = std::max(1.0, shape.item.flops(0)), bytes = shape.item.bytes(0);
  const double checked = std::min(1.0, kMostReferenceFlops / flops);  // larger ones are checked on fewer rows
  const bool on_device = on_gpu && bytes > static_cast<double>(kHostReference_bytes);
  return kCheck_s +
         (on_device ? 20 * bytes / kDevice_Bps : checked * (flops / kReferenceFlopsPerS + bytes / kHost_Bps)) +
         samples * (bytes / (on_gpu ? kDevice_Bps : kHost_Bps) + std::max(kSample_s, shape.seconds) + shape.seconds);
}

}  // namespace wt
