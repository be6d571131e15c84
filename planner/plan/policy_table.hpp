// Ways to recover from failures, side by side on the same traces of faults: what each comes to with the inputs that are
// known, and for the others which input is missing and what it would have to be.
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

/// Copies of the optimizer state, each on ranks of its own (HSDP): what a lost node takes along is one of them.
std::int64_t state_copies(const Layout& layout);
/// Sequences that each group of context ranks has of a step, rounded down, at least 1: what is dealt out anew when a
/// replica is lost.
std::int64_t sequences_of_group(const StudySpec& study, const Layout& layout);

inline constexpr const char* kNoFailure = "no failure";
inline constexpr const char* kVerifiedRollback = "verified rollback";
inline constexpr const char* kRestartFromStorage = "restart from storage";
inline constexpr const char* kHotSpares = "hot spares";
inline constexpr const char* kLocalCopies = "restart from local copies";
inline constexpr const char* kWithoutReplica = "go on without a replica";

struct PolicyRow {
  std::string policy = {};      ///< kHotSpares
  std::string how = {};         ///< what happens after a loss, with the times that it takes
  std::string missing = {};     ///< the inputs that nobody gives; "" where the policy is known
  std::string break_even = {};  ///< of an unknown one: what they would have to be for it to pay
  double interval_s = 0;        ///< work between saves to storage
  std::int64_t spares = 0;
  std::optional<PolicyOutcome> outcome = {};        ///< none = UNKNOWN
  std::optional<PairedDifference> difference = {};  ///< of the goodput, less the reference's
};

/// The chosen way to recover as runs of the plan.
struct ChosenPolicy {
  CadenceInput input;   ///< with what a study protects a run with, as far as the policy has it
  CadencePlan cadence;  ///< with the policy's spares
  /// With checks for silent errors, too, where the study has them and does not say what the policy loses without.
  TracedPolicy traced;
};

struct PolicyTable {
  std::int64_t traces = 0;
  FaultTraces faults;
  std::vector<PolicyRow> rows;
  std::size_t reference = 0;  ///< restart from storage
  std::size_t chosen = 0;     ///< the best that is known
  ChosenPolicy run;           ///< the same
  /// The reference, or a policy with a better median, varies by more than 10 %: all are ranked by their tenth
  /// percentile, else by their median.
  bool by_p10 = false;
  std::vector<BreakEvenSurface> surfaces;  ///< of the unknown ones
  SourcedNumber spares;                    ///< the fewest with 99.9 % of the best goodput, of the reference
  std::string choice;                      ///< a sentence
};

/// At most so many traces (the study's runs, if fewer; fewer where runs have many failures, at least 10), so that a
/// plan stays quick.
inline constexpr std::int64_t kPlanTraces = 100;
/// The fault presets' failures and planned stops, the study's maintenance, slow nodes and faults. Throws Error{usage}
/// for events that the cluster does not describe.
PolicyTable compare_policies(const PlanInputs& inputs, const Layout& layout, const RunSchedule& schedule,
                             std::int64_t traces = kPlanTraces);

}  // namespace wt
