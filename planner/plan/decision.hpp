// Which of several clusters and numbers of GPUs: each is planned, those that are done in time are weighed, and where
// none is, the nearest miss is named with what would make it feasible.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.hpp"

namespace wt {

/// What of the options that are done in time is made smallest: days, or GPUs (then days).
enum class Prefer { days, gpus };

struct DecisionSpec {
  std::vector<std::string> clusters;  ///< files or presets; empty = the study's
  std::vector<std::int64_t> gpus;     ///< empty = the study's
  std::optional<double> within_s;     ///< the run has to be done, at the 95 % quantile of simulated runs
  Prefer prefer = Prefer::days;
};

struct PlannedOption {
  std::string cluster;
  std::int64_t gpus = 0;
  std::optional<PlanInputs> inputs;
  std::optional<Plan> plan;  ///< nothing: `misfit` says why
  std::string misfit;
  double days() const { return plan->schedule.days(); }
  double p95_days() const;
  double gpu_hours() const;  ///< of the GPUs that train, expected
  bool in_time = false;
};

struct Decision {
  std::vector<PlannedOption> options;  ///< by cluster, then by GPUs
  std::optional<std::size_t> chosen;   ///< none is done in time
  std::optional<std::size_t> nearest;  ///< the one that is done first, where none is in time
  std::vector<std::size_t> front;      ///< no other option is done earlier with no more GPU-hours; by days
  std::string sentence;
};

/// "256", "256,512" or "256..4096": then doublings from the first number on and the halves between them, up to the
/// last. Throws Error{usage}.
std::vector<std::int64_t> parse_gpus(const std::string& text);

/// Plans the study on each option. Throws Error{usage}: an option that is no study (whole nodes, unknown names);
/// Error{finding} where nothing fits on any.
Decision decide(const StudySpec& study, const std::string& origin, const DecisionSpec& asked, bool allow_assumed,
                const SearchProgress& progress = {});

}  // namespace wt
