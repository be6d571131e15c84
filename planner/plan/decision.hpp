// Which of several clusters, numbers of GPUs and batches: each is planned, those that are done in time are weighed, and
// where none is, the nearest miss is named with what would make it feasible.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "configs/files/study_assignments.hpp"
#include "configs/files/study_options.hpp"
#include "planner/plan/plan.hpp"

namespace wt {

struct DecisionSpec {
  StudyOptions options = {};            ///< empty ones = the study's
  Assignments assignments = {};         ///< of the study's other keys, in each option
  std::optional<double> within_s = {};  ///< the run has to be done, at the 95 % quantile of simulated runs and steps
  std::optional<double> budget = {};    ///< of money, at the 95 % quantile; in the currency of the options' prices
  std::optional<Prefer> prefer =
      {};  ///< of the options that are in time and within budget; none: what the study prefers
};

struct PlannedOption {
  std::string cluster;
  std::int64_t gpus = 0;
  std::int64_t batch = 0;  ///< sequences a step
  std::optional<PlanInputs> inputs = {};
  std::optional<Plan> plan = {};  ///< nothing: `misfit` says why
  std::string misfit = {};
  double days() const { return plan->cost.days.p50; }
  double p95_days() const { return plan->cost.days.p95; }
  double gpu_hours() const { return plan->cost.gpu_hours.p50; }  ///< of the GPUs that train
  /// Money at P50 where every option has prices, else GPU-hours.
  double spent(bool priced) const { return priced ? plan->cost.money->p50 : gpu_hours(); }
  bool in_time = false, in_budget = false;
  bool feasible() const { return in_time && in_budget; }
};

/// Knowing one class of prices of one cluster before an option is taken.
struct OptionWorth {
  std::string cluster, prices;
  double changes = 0;                  ///< how often another option would be taken
  double saves = 0;                    ///< expected, of what is preferred: days, money, kWh
  std::optional<double> minutes = {};  ///< to measure it, and how: Worth
  std::string how;
  bool joint = false;  ///< several classes at once: after the single ones
};

struct Decision {
  std::vector<PlannedOption> options;  ///< by cluster, then by GPUs, then by batch
  std::optional<std::size_t> chosen;   ///< none is in time and within budget
  std::optional<std::size_t> nearest;  ///< the one that misses by the smallest factor, in time and money
  std::vector<std::size_t> front;      ///< no other option is done earlier and spends no more; by days
  Prefer prefer = Prefer::days;
  bool priced = false;   ///< every option that is planned has money
  bool batches = false;  ///< the options differ in their batches
  std::string sentence;
  std::string preferred_unit;     ///< "days", "GPUs", the prices' currency, "kWh"
  std::vector<OptionWorth> next;  ///< what is worth measuring before one is taken (option_worth.hpp)
  std::string next_sentence;      ///< of the first; "" where no price is asked for
};

/// What comparing batches leaves out, for people; "" where all options have the same.
std::string batch_note(const Decision& decision);
/// What `prefer` makes smallest of a planned option.
double preferred(const PlannedOption& option, Prefer prefer);

/// Plans the study of this text on each option, after prices and inputs of all were read. Throws Error{usage}: an
/// option that is no study (whole nodes, unknown names), a budget, or a preference for money or energy, without their
/// prices; Error{finding} where nothing fits on any.
Decision decide(const std::string& study_text, const std::string& origin, const DecisionSpec& asked, bool allow_assumed,
                const SearchProgress& progress = {});

}  // namespace wt
