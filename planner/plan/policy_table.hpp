// Compares recovery policies on the same fault traces: the result of each policy whose inputs are known. For the
// others, the missing input and its break-even value.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "configs/files/failures.hpp"
#include "configs/files/study.hpp"
#include "planner/plan/break_evens.hpp"
#include "sim/months/policy_runs.hpp"

namespace wt {

struct PlanInputs;
struct RunSchedule;

/// Number of copies of the optimizer state, each on its own ranks (HSDP). A lost node destroys one of them.
std::int64_t state_copies(const Layout& layout);
/// Sequences per step of each group of context ranks, rounded down, at least 1. They are redistributed when a replica
/// is lost.
std::int64_t sequences_of_group(const StudySpec& study, const Layout& layout);

inline constexpr const char* kNoFailure = "no failure";
inline constexpr const char* kVerifiedRollback = "verified rollback";
inline constexpr const char* kRestartFromStorage = "restart from storage";
inline constexpr const char* kHotSpares = "hot spares";
inline constexpr const char* kLocalCopies = "restart from local copies";
inline constexpr const char* kWithoutReplica = "go on without a replica";

struct PolicyRow {
  std::string policy = {};      ///< kHotSpares
  std::string how = {};         ///< what happens after a failure, with its times
  std::string missing = {};     ///< missing inputs; "" if the policy is known
  std::string break_even = {};  ///< break-even values of missing inputs
  double interval_s = 0;        ///< work between saves to storage
  std::int64_t spares = 0;
  std::optional<PolicyOutcome> outcome = {};        ///< empty = UNKNOWN
  std::optional<PairedDifference> difference = {};  ///< of goodput, relative to the reference policy
};

/// The chosen policy, as simulated in the plan's runs.
struct ChosenPolicy {
  CadenceInput input;   ///< with the study's protections that the policy uses
  CadencePlan cadence;  ///< including the policy's spares
  /// Includes verification for silent errors if the study has errors and does not say when they are found without it.
  TracedPolicy traced;
};

struct PolicyTable {
  std::int64_t traces = 0;
  FaultTraces faults;
  std::vector<PolicyRow> rows;
  std::size_t reference = 0;  ///< restart from storage
  std::size_t chosen = 0;     ///< the best known policy
  ChosenPolicy run;           ///< the chosen policy
  /// Policies are ranked by their tenth percentile if the reference, or a policy with a better median, varies by more
  /// than 10 %. Otherwise by their median.
  bool by_p10 = false;
  std::vector<BreakEvenSurface> surfaces;  ///< for unknown policies
  SourcedNumber spares;                    ///< the fewest with 99.9 % of the best goodput, under the reference policy
  std::string choice;                      ///< a sentence
};

/// Most traces, so that a plan stays quick. There are fewer if the study has fewer runs, or if runs have many failures
/// (but at least 10).
inline constexpr std::int64_t kPlanTraces = 100;
/// Fault traces have the preset's failures and planned stops, and the study's maintenance, slow nodes and faults.
/// Throws Error{usage} for events of entities that the cluster does not describe.
PolicyTable compare_policies(const PlanInputs& inputs, const Layout& layout, const RunSchedule& schedule,
                             std::int64_t traces = kPlanTraces);

}  // namespace wt
