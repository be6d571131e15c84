// What to measure before a plan is carried out: how often knowing a price would change the layout, what that saves, and
// how long the measurement takes. From the simulations of RobustChoice; nothing is simulated again.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/bench_shapes.hpp"

namespace wt {

struct Plan;

/// One class of prices, or the loads of the experts.
struct Worth {
  std::string what;    ///< PriceClass::name, "expert loads"
  double changes = 0;  ///< how often knowing it would change the layout
  double saves = 0;    ///< expected, by choosing after it is known; in MeasureNext::unit
  /// Of days saved; none where energy is preferred. Money where the study has prices.
  std::optional<double> saves_gpu_hours = {}, saves_money = {};
  double width = 0;  ///< by which the finish date or the energy moves from one end of its interval to the other
  std::optional<double> minutes = {};     ///< to measure it; none: not known
  bool joint = false;                     ///< several classes at once, each in a row of its own, too
  std::string how;                        ///< "windtunnel bench --for", "nccl-tests, windtunnel import"
  std::vector<MissingShape> shapes = {};  ///< that bench --for would measure
  bool measurable() const { return !how.starts_with("nothing"); }
};

/// The most saved a minute first, then those of unknown duration, then joint ones; where nothing is saved, the
/// most of the width a minute.
struct MeasureNext {
  std::string unit = "days";  ///< of what is preferred: or "kWh"
  std::vector<Worth> rows;
  std::string sentence;  ///< what to measure first, or that nothing would change the layout
};

/// "0.13 days", "1234 kWh".
std::string amount_text(double amount, const std::string& unit);

/// Of `samples` of every shape that the compared layouts need and the profiles lack.
MeasureNext measure_next(const PlanInputs& inputs, const Plan& plan, int samples = kBenchSamples);

/// What is measured of the rows in so many minutes of `bench --for`: the most saved a minute first. Of a class
/// that does not fit whole, as many shapes as do, spread evenly: a few correct the prices of the others.
struct WorthMinutes {
  struct Part {
    Worth row;
    std::vector<MissingShape> shapes;  ///< of row.shapes, those that are measured
  };
  std::vector<Part> taken;
  std::vector<Worth> left_out;  ///< rows with shapes, none of which is measured
  double seconds = 0;
};
WorthMinutes worth_minutes(const MeasureNext& next, double seconds, bool on_gpu, int samples = kBenchSamples);

}  // namespace wt
