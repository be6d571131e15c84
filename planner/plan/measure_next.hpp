// What to measure before a plan is carried out: how often a known time would change the layout, the saving, and the
// time of the measurement. Uses the simulations of RobustChoice; simulates nothing.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/bench_shapes.hpp"

namespace wt {

struct Plan;

/// The value of knowing one class of times, or the experts' loads.
struct Worth {
  std::string what;    ///< TimeClass::name, "expert loads"
  double changes = 0;  ///< probability that the layout changes
  double saves = 0;    ///< expected, in MeasureNext::unit
  /// For the saved days; empty if energy is preferred. Money if the study has prices.
  std::optional<double> saves_gpu_hours = {}, saves_money = {};
  double width = 0;                       ///< difference of the finish date or energy between both ends of the interval
  std::optional<double> minutes = {};     ///< duration of the measurement; empty = unknown
  bool joint = false;                     ///< several classes at once, which also have rows of their own
  std::string how;                        ///< "windtunnel bench --for", "nccl-tests, windtunnel import"
  std::vector<MissingShape> shapes = {};  ///< measured by bench --for
  bool measurable() const { return !how.starts_with("nothing"); }
};

/// Ordered by saving per minute, then rows of unknown duration, then joint ones. Without savings: by width per minute.
struct MeasureNext {
  std::string unit = "days";  ///< of the objective; or "kWh"
  std::vector<Worth> rows;
  std::string sentence;  ///< what to measure first, or that nothing would change the layout
};

/// "0.13 days", "1234 kWh".
std::string amount_text(double amount, const std::string& unit);

/// `samples` of every shape that the compared layouts need and the profiles lack.
MeasureNext measure_next(const PlanInputs& inputs, const Plan& plan, int samples = kBenchSamples);

/// The rows to measure in a given time of `bench --for`, by saving per minute. If a class does not fit whole, as many
/// of its shapes as do, evenly spread: they also correct the times of the others.
struct WorthMinutes {
  struct Part {
    Worth row;
    std::vector<MissingShape> shapes;  ///< of row.shapes, those to measure
  };
  std::vector<Part> taken;
  std::vector<Worth> left_out;  ///< rows with shapes of which none is measured
  double seconds = 0;
};
WorthMinutes worth_minutes(const MeasureNext& next, double seconds, bool on_gpu, int samples = kBenchSamples);

}  // namespace wt
