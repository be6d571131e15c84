// The kernel shapes whose times a study needs and its profiles lack, and the time to measure them.
#pragma once
#include <vector>

#include "bench/work/work_list.hpp"
#include "configs/files/run.hpp"

namespace wt {

struct PlanInputs;

/// Default samples per kernel of the suite.
inline constexpr int kBenchSamples = 9;

struct MissingShape {
  WorkItem item;
  double seconds = 0;  ///< time of one call by the study's times; 0 = unknown
};

struct StudyShapes {
  RunSpec run;      ///< the study's first layout: model, sequence and precision of the inputs
  std::string gpu;  ///< of the cluster; "" for shared cores
  std::vector<MissingShape> missing;
  std::int64_t known = 0;  ///< needed shapes that the profiles have exactly
  /// Layouts that need the shapes. For a study: those that the search considers, which divide and fit.
  std::int64_t layouts = 0;
};

/// The distinct work items of every layout that divides and fits into memory. Row counts that depend on routing are a
/// quarter, half, once and twice the balanced load. Throws Error{finding} if no layout fits.
StudyShapes study_shapes(const PlanInputs& inputs);
/// The same for the given layouts. Both throw Error{usage} for a study with several kinds of GPUs.
StudyShapes layout_shapes(const PlanInputs& inputs, const std::vector<Layout>& layouts);

/// Seconds of the kernel suite for one shape: the check against fp64 on the host, and the samples with their warm-up.
double estimated_s(const MissingShape& shape, bool on_gpu, int samples);

}  // namespace wt
