// Chooses among clusters, numbers of GPUs and batch sizes. Each option is planned, and the feasible ones are compared.
// If none is feasible, names the nearest miss and what would make it feasible.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "configs/files/study_assignments.hpp"
#include "configs/files/study_options.hpp"
#include "planner/plan/plan.hpp"

namespace wt {

struct DecisionSpec {
  StudyOptions options = {};            ///< lists that are empty = the study's value
  Assignments assignments = {};         ///< other keys of the study, set in each option
  std::optional<double> within_s = {};  ///< deadline for the 95 % quantile of simulated runs and steps
  std::optional<double> budget = {};    ///< money at the 95 % quantile, in the currency of the options' prices
  std::optional<Prefer> prefer = {};    ///< objective among feasible options; empty = the study's
};

struct PlannedOption {
  std::string cluster;
  std::int64_t gpus = 0;
  std::int64_t batch = 0;  ///< sequences per step
  std::optional<PlanInputs> inputs = {};
  std::optional<Plan> plan = {};  ///< empty: see `misfit`
  std::string misfit = {};
  double days() const { return plan->cost.days.p50; }
  double p95_days() const { return plan->cost.days.p95; }
  double gpu_hours() const { return plan->cost.gpu_hours.p50; }  ///< of the training GPUs
  /// Money at P50 if every option has prices, else GPU-hours.
  double spent(bool priced) const { return priced ? plan->cost.money->p50 : gpu_hours(); }
  bool in_time = false, in_budget = false;
  bool feasible() const { return in_time && in_budget; }
};

/// The value of knowing one class of times of one cluster before choosing an option.
struct OptionWorth {
  std::string cluster, times;
  double changes = 0;                  ///< probability that the option changes
  double saves = 0;                    ///< expected, in units of the objective: days, money, kWh
  std::optional<double> minutes = {};  ///< duration of the measurement, as in Worth
  std::string how;
  bool joint = false;  ///< several classes at once; ordered after the single ones
};

struct Decision {
  std::vector<PlannedOption> options;  ///< by cluster, then by GPUs, then by batch
  std::optional<std::size_t> chosen;   ///< empty: none is feasible
  std::optional<std::size_t> nearest;  ///< misses deadline or budget by the smallest factor
  std::vector<std::size_t> front;      ///< options for which no other is both earlier and no more expensive; by days
  Prefer prefer = Prefer::days;
  bool priced = false;   ///< every planned option has money
  bool batches = false;  ///< options differ in batch size
  std::string sentence;
  std::string preferred_unit;     ///< "days", "GPUs", the prices' currency, "kWh"
  std::vector<OptionWorth> next;  ///< what to measure before choosing
  std::string next_sentence;      ///< about the first of `next`; "" if times are not varied
};

/// What a comparison of batch sizes ignores; "" if all options have the same.
std::string batch_note(const Decision& decision);
/// The value of a planned option that `prefer` minimises.
double preferred(const PlannedOption& option, Prefer prefer);

/// Plans the study of this text on each option, after reading the inputs of all. Throws Error{usage} for an option that
/// is no valid study (whole nodes, unknown names), and for a budget or a preference for money or energy without prices;
/// Error{finding} if no option has a layout that fits.
Decision decide(const std::string& study_text, const std::string& origin, const DecisionSpec& asked, bool allow_assumed,
                const SearchProgress& progress = {});

}  // namespace wt
