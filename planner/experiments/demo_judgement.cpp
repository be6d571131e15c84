#include "planner/experiments/demo_judgement.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace wt {
namespace {

std::string line_of(const RunComparison& c, const HeldToBar& figure) {
  return fmt::format("{} ({}): {} is off by {:+.1f} %, allowed are {:.0f} %: {:.1f} points too much", c.name, c.layout,
                     figure.what, 100 * figure.error, 100 * figure.bar, 100 * (std::abs(figure.error) - figure.bar));
}

}  // namespace

double cores_taken(const Profile& suites) {
  double out = 0;
  for (const char* key : {"run.other_busy_cores", "run.stolen_cores"})
    if (const auto fact = suites.fingerprint.find(key); fact != suites.fingerprint.end())
      out += std::strtod(fact->second.c_str(), nullptr);
  return out;
}

DemoJudgement judge_demo(const std::vector<RunComparison>& comparisons, const Profile& suites, double cores) {
  double calibrating = cores_taken(suites);
  for (const RunComparison& c : comparisons)
    if (c.calibrated_on) calibrating = std::max(calibrating, c.cores_used_by_others);
  const double most = kDisturbedShare * cores;
  DemoJudgement out;
  for (const RunComparison& c : comparisons) {
    if (c.calibrated_on) continue;
    const bool before = calibrating > most, disturbed = before || c.cores_used_by_others > most;
    for (const HeldToBar& figure : held_to_bars(c))
      if (figure.broken() && !(disturbed && figure.timed)) out.broken.push_back(line_of(c, figure));
    if (!disturbed) continue;
    out.disturbed.push_back(fmt::format(
        "{} ({}): step time ({:+.1f} %) and exposed communication ({:+.1f} % of the step) are not judged: other "
        "programs took {:.1f} of {:g} cores while {} was measured, allowed are {:.1f}",
        c.name, c.layout, 100 * c.step_error(), 100 * c.exposed_error(),
        std::max(before ? calibrating : 0.0, c.cores_used_by_others), cores,
        calibrating > c.cores_used_by_others ? "what the machine model was calibrated on" : "it", most));
  }
  return out;
}

}  // namespace wt
