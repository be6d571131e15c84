// What a demo's predictions are held to. Other programs on the machine take cores from its measurements: step times and
// exposed communication that they disturbed are named and not judged. Memory is judged always.
#pragma once
#include <string>
#include <vector>

#include "configs/files/profile.hpp"
#include "planner/experiments/comparison.hpp"

namespace wt {

/// Of the machine's cores: others that take more may move a step by more than a fifth of its limit.
inline constexpr double kDisturbedShare = 0.05;

struct DemoJudgement {
  std::vector<std::string> broken;  ///< a line for every limit that a judged figure breaks
  std::vector<std::string>
      disturbed;  ///< a line for every run whose times are not judged: why, and how far off they are
};

/// Of the cores, those that other programs and the hypervisor took while the profile was measured; 0 = it does not say.
double cores_taken(const Profile& suites);

/// A prediction rests on the measurements that were calibrated on, `suites` and the run among the comparisons: where
/// these were disturbed, all times are.
DemoJudgement judge_demo(const std::vector<RunComparison>& comparisons, const Profile& suites, double cores);

}  // namespace wt
