// What to measure before a plan is carried out: how often knowing a time would change the layout, what it would save,
// and how long the measurement takes. Uses the simulations of RobustChoice; simulates nothing.
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
  /// The saving in other units; empty if energy is preferred. Money only if the study has prices.
  std::optional<double> saves_gpu_hours = {}, saves_money = {};
  double width = 0;                       ///< difference of the finish date or energy between both ends of the interval
  std::optional<double> minutes = {};     ///< duration of the measurement; empty = unknown
  bool joint = false;                     ///< several classes at once; each also has a row of its own
  std::string how;                        ///< "windtunnel bench --for", "nccl-tests, windtunnel import"
  std::vector<MissingShape> shapes = {};  ///< measured by bench --for
  bool measurable() const { return !how.starts_with("nothing"); }
};

/// Rows are ordered by saving per minute, then come rows of unknown duration, then joint ones. Without savings: by
/// width per minute.
struct MeasureNext {
  std::string unit = "days";  ///< of the objective; or "kWh"
  std::vector<Worth> rows;
  std::string sentence;  ///< what to measure first, or that nothing would change the layout
};

/// "0.13 days", "1234 kWh".
std::string amount_text(double amount, const std::string& unit);

/// Lists every shape that the compared layouts need and the profiles lack. `samples`: of each shape.
MeasureNext measure_next(const PlanInputs& inputs, const Plan& plan, int samples = kBenchSamples);

/// The rows to measure in a given time of `bench --for`, by saving per minute. If the shapes of a class do not all fit,
/// as many as fit, evenly spread; they also correct the times of the other shapes.
struct WorthMinutes {
  struct Part {
    Worth row;
    std::vector<MissingShape> shapes;  ///< the shapes of row.shapes to measure
  };
  std::vector<Part> taken;
  std::vector<Worth> left_out;  ///< rows with shapes, none of them measured
  double seconds = 0;
};
WorthMinutes worth_minutes(const MeasureNext& next, double seconds, bool on_gpu, int samples = kBenchSamples);

}  // namespace wt
