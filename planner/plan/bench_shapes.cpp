#include "planner/plan/bench_shapes.hpp"

#include <algorithm>

#include "bench/work/cases.hpp"
#include "configs/base/error.hpp"
#include "planner/plan/plan.hpp"
#include "planner/search/group_bounds.hpp"
#include "planner/search/search_evaluate.hpp"

namespace wt {
namespace {

/// Seconds are 0 if the profiles lack this class of kernels.
TimeEstimate time_of(const OpCost& cost, const WorkItem& item) {
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
  run.lora = s.lora;
  run.layout = layout;
  run.precision = s.precision.compute;
  run.device = s.cluster.shared_cores() ? DeviceKind::cpu : DeviceKind::cuda;
  run.steps = 1;
  run.seq = s.seq;
  run.global_batch = s.global_batch;
  return run;
}

}  // namespace

namespace {

/// Collects the work items of layouts.
class ShapesOf {
 public:
  explicit ShapesOf(const PlanInputs& inputs) : inputs_(inputs), problem_(search_problem(inputs, *inputs.times)) {
    const StudySpec& s = inputs.study;
    if (s.cluster.one_gpu(s.gpus).empty())
      throw_usage("study {}: found {}, and a benchmark is of one GPU; needs a study of nodes of one kind", s.name,
                  s.cluster.nodes_text(s.gpus));
    problem_.space.expert_copies
        .clear();  // placements are not planned here, and layouts without copies have the same shapes
    out_.gpu = s.cluster.shared_cores() ? "" : s.cluster.one_gpu(s.gpus);
  }
  const SearchProblem& problem() const { return problem_; }

  /// Adds a layout that represents `members` layouts with the same computation.
  void add(const Layout& given, std::int64_t members) {
    const Layout layout = with_stack_chunks(problem_, given);
    if (out_.layouts == 0) out_.run = run_of(inputs_.study, layout);
    out_.layouts += members;
    const Microbatches sequences = sequences_of(problem_, layout);
    items_.add(build_program_set(problem_.model, layout, program_options(problem_, sequences)),
               static_cast<double>(sequences.each * problem_.seq * problem_.model.top_k));
  }

  StudyShapes take() {
    for (const WorkItem& item : items_.list()) {
      const TimeEstimate estimate = time_of(*inputs_.times, item);
      if (estimate.lookup == Lookup::exact && estimate.seconds > 0)
        ++out_.known;
      else
        out_.missing.push_back({item, estimate.seconds});
    }
    return std::move(out_);
  }

 private:
  const PlanInputs& inputs_;
  SearchProblem problem_;
  StepItems items_;
  StudyShapes out_;
};

}  // namespace

StudyShapes study_shapes(const PlanInputs& inputs) {
  ShapesOf shapes(inputs);
  const SearchProblem& problem = shapes.problem();
  GroupBounds bounds(problem);
  bool fits = false;
  for (const LayoutGroup& group : LayoutSpace(problem).groups()) {  // members of a group compute the same
    if (bounds.memory_bytes(group) > problem.memory_limit_bytes ||
        step_memory(problem, group.layout).needed() > problem.memory_limit_bytes)
      continue;
    shapes.add(group.layout, group.members);
    fits = true;
  }
  if (!fits)
    throw_error(Code::finding,
                "study {}: no layout fits, so that there is nothing to measure; windtunnel plan names the nearest miss",
                inputs.study.name);
  return shapes.take();
}

StudyShapes layout_shapes(const PlanInputs& inputs, const std::vector<Layout>& layouts) {
  ShapesOf shapes(inputs);
  for (const Layout& layout : layouts) shapes.add(layout, 1);
  return shapes.take();
}

double estimated_s(const MissingShape& shape, bool on_gpu, int samples) {
  // Orders of magnitude for: fp64 products on one core, random inputs and comparisons on a host, inputs on a GPU,
  // samples of 10 ms.
  constexpr double kCheck_s = 0.05, kReferenceFlopsPerS = 1e10, kHost_Bps = 2e9, kDevice_Bps = 5e11, kSample_s = 0.01;
  const double flops = std::max(1.0, shape.item.flops(0)), bytes = shape.item.bytes(0);
  const double checked = std::min(1.0, kMostReferenceFlops / flops);  // of a larger product, fewer rows are checked
  const bool on_device = on_gpu && bytes > static_cast<double>(kHostReference_bytes);
  return kCheck_s +
         (on_device ? 20 * bytes / kDevice_Bps : checked * (flops / kReferenceFlopsPerS + bytes / kHost_Bps)) +
         samples * (bytes / (on_gpu ? kDevice_Bps : kHost_Bps) + std::max(kSample_s, shape.seconds) + shape.seconds);
}

}  // namespace wt
