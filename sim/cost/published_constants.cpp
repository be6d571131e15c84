#include "sim/cost/published_constants.hpp"

#include "configs/files/fitted_constants.hpp"

namespace wt {
namespace {

template <typename Estimator, typename Constants>
std::shared_ptr<const Estimator> estimator(const char* name) {
  return std::make_shared<Estimator>(fitted_constants<Constants>(name));
}

PublishedConstants read_all() {
  PublishedConstants out;
  out.benchmarks.items = std::make_shared<ItemTimes>(estimator<KernelTimes, KernelConstants>("kernels"));
  // One estimator per process: machine models use it, too.
  out.benchmarks.collectives = {std::shared_ptr<void>(), &CollectiveEstimator::published()};
  out.benchmarks.row_messages = estimator<RowMessages, RowMessages>("row_messages");
  out.steps = fitted_constants<StepModel>("steps");
  out.step_bounds = fitted_constants<ErrorBounds>("step_bounds");
  out.memory = fitted_constants<StackMemories>("memory");
  return out;
}

}  // namespace

const std::vector<MeasuredRun>& PublishedConstants::measured_runs() {
  static const auto all = fitted_constants<std::vector<MeasuredRun>>("measured_runs");
  return all;
}

const PublishedConstants& PublishedConstants::get() {
  static const PublishedConstants all = read_all();
  return all;
}

}  // namespace wt
