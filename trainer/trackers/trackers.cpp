#include "trainer/trackers/trackers.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "configs/base/clock.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/running.hpp"
#include "trainer/trackers/metric_names.hpp"
#include "trainer/trackers/mlflow.hpp"
#include "trainer/trackers/prometheus.hpp"
#include "trainer/trackers/run_parameters.hpp"
#include "trainer/trackers/tensorboard.hpp"

namespace wt {
namespace {

std::string name_of_start(const TrackedRun& run) {
  return fmt::format("{:016x}",
                     hash_of(fmt::format("{} {} {} {}", host_name(), getpid(), run.start_unix_s, run.folder.string())));
}

}  // namespace

Trackers::Trackers(const RunSpec& run, const std::filesystem::path& folder, std::int64_t done,
                   const TrackerThreadOptions& options)
    : run_(run) {
  if (!run.loggers.any()) return;
  TrackedRun told{.name = run.name,
                  .folder = folder,
                  .done = done,
                  .parameters = {},
                  .run_file = run_to_yaml(run),
                  .start_unix_s = clock_s(CLOCK_REALTIME)};
  told.parameters = run_parameters(told.run_file);
  const auto start = [&](std::unique_ptr<Tracker> tracker) {
    threads_.push_back(std::make_unique<TrackerThread>(std::move(tracker), told, options));
  };
  if (const auto& mlflow = run.loggers.mlflow)
    start(std::make_unique<MlflowTracker>(mlflow_in_environment(*mlflow), MlflowLogin::from_environment(),
                                          name_of_start(told)));
  if (const auto& tensorboard = run.loggers.tensorboard) start(std::make_unique<TensorboardTracker>(*tensorboard));
  if (const auto& prometheus = run.loggers.prometheus) start(std::make_unique<PrometheusTracker>(*prometheus));
}

void Trackers::step(const nlohmann::json& line) {
  if (threads_.empty()) return;
  const bool evaluation = line.contains("label");
  TrackedStep step = evaluation ? tracked_evaluation(line, clock_s(CLOCK_REALTIME)) : tracked_step(run_, line);
  if (!evaluation) step.first_of_start = std::exchange(first_of_start_, false);
  for (const auto& thread : threads_) thread->step(step);
}

void Trackers::end(TrackedEnd how, double at_most_s) {
  const double until_s = steady_s() + at_most_s;
  for (const auto& thread : threads_) thread->ask_to_end(how, at_most_s);
  for (const auto& thread : threads_) thread->end(how, std::max(0.0, until_s - steady_s()));
}

void check_loggers(const LoggersSpec& loggers) {
  if (!loggers.mlflow) return;
  mlflow_in_environment(*loggers.mlflow);
  MlflowLogin::from_environment();
}

}  // namespace wt
