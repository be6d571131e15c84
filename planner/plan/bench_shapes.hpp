// Which kernel shapes a study asks prices for that its profiles do not have measured, and how long it takes to measure
// them.
#pragma once
#include <vector>

#include "bench/work/work_list.hpp"
#include "configs/files/run.hpp"

namespace wt {

struct PlanInputs;

/// That the suite takes of a kernel, unless it is told otherwise.
inline constexpr int kBenchSamples = 9;

struct MissingShape {
  WorkItem item;
  double seconds = 0;  ///< of one call by the study's prices; 0 where they say nothing
};

struct StudyShapes {
  RunSpec run;      ///< of the study's first layout: model, sequence and precision for the inputs
  std::string gpu;  ///< of the cluster; "" where ranks share a host's cores
  std::vector<MissingShape> missing;
  std::int64_t known = 0;    ///< shapes that the profiles have exactly
  std::int64_t layouts = 0;  ///< that need them; of a study those that the search would consider: they divide and fit
};

/// The work items of every layout that divides and fits into memory, each once; rows that routing decides at a quarter,
/// half, once and twice the balanced load. Throws Error{finding} where no layout fits.
StudyShapes study_shapes(const PlanInputs& inputs);
/// The same of these layouts alone. Both throw Error{usage} where the study's GPUs are of several kinds.
StudyShapes layout_shapes(const PlanInputs& inputs, const std::vector<Layout>& layouts);

/// Seconds that the kernel suite takes for one of them: its check beside fp64 on the host, and so many samples with
/// their warm-up.
double estimated_s(const MissingShape& shape, bool on_gpu, int samples);

}  // namespace wt
