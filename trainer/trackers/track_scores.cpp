#include "trainer/trackers/track_scores.hpp"

#include "configs/base/clock.hpp"
#include "trainer/trackers/mlflow.hpp"
#include "trainer/trackers/tensorboard.hpp"
#include "trainer/trackers/trackers.hpp"

namespace wt {
namespace {

/// Sends to one tracker and describes the result.
template <class Send>
std::string told(const Tracker& tracker, std::size_t scores, const Send& send) try {
  send();
  return fmt::format("{}: logged {} scores", tracker.name(), scores);
} catch (const std::exception& error) {
  return fmt::format("{}: logged no scores: {}", tracker.name(), error.what());
}

}  // namespace

std::vector<std::string> track_scores(const RunSpec& run, const std::filesystem::path& folder, std::int64_t step,
                                      const std::vector<std::pair<std::string, double>>& scores) {
  check_loggers(run.loggers);
  TrackedRun tracked{.name = run.name, .folder = folder, .done = step};
  tracked.start_unix_s = clock_s(CLOCK_REALTIME);
  TrackedStep all{.step = step, .unix_s = tracked.start_unix_s};
  for (const auto& [name, value] : scores) all.values.push_back({.metric = nullptr, .name = name, .value = value});
  const std::span<const TrackedStep> steps(&all, 1);

  std::vector<std::string> out;
  if (const auto& spec = run.loggers.mlflow) {
    MlflowTracker mlflow(mlflow_in_environment(*spec), MlflowLogin::from_environment(), "");
    out.push_back(told(mlflow, scores.size(), [&] { mlflow.add(tracked, steps); }));
  }
  if (const auto& spec = run.loggers.tensorboard) {
    TensorboardTracker tensorboard(*spec);
    // A separate writer needs a separate folder, because readers process a folder's files in sequence.
    tracked.name = run.name + "_evaluation";
    tracked.done = step - 1;
    tracked.run_file = run_to_yaml(run);
    out.push_back(told(tensorboard, scores.size(), [&] {
      tensorboard.begin(tracked);
      tensorboard.log(steps);
    }));
  }
  return out;
}

}  // namespace wt
