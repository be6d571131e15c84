// A lower bound on the step of a GPU whose computation is slowed while collectives of its rank are in flight. Neither
// the fullest lane nor the critical path implies it. With C seconds of computation at full rate, S of standstill and F
// of collectives in flight, at most S of which coincide with the standstill: step >= C + S + slowdown (F - S).
#pragma once
#include <array>
#include <compare>
#include <vector>

#include "sim/replay/replay_executor.hpp"

namespace wt {

using LaneSeconds = std::array<double, kLanes>;

/// Seconds of the fullest lane on which a rank's collectives are serial.
double fullest_transfers(const LaneSeconds& lane_s);

/// The bound above. It is increasing in each argument.
double slowed_step_s(double compute_s, double still_s, double in_flight_s, double slowdown);

/// Collects the three from the ops of a rank. Ops come in issue order, with their least seconds.
///   C  ops of the compute lane;
///   S  collectives on the compute lane, and gaps between two of its ops where the second transitively waits for the
///     first;
///   F  collectives of the fullest lane, or the fullest link's bytes at its full rate.
/// Free if nothing is slowed.
class Occupation {
 public:
  /// The program must outlive it.
  Occupation(const RankProgram& program, double slowdown);
  void add(int op, double seconds);
  /// After the last op. 0 if nothing is slowed.
  double bound_s(const StepTasks& step, const RankTasks& rank) const;

 private:
  /// The last compute-lane op that an op depends on, and the op's earliest end after that one's end.
  struct Reach {
    int op = -1;
    double seconds = 0;
    auto operator<=>(const Reach&) const = default;
  };

  const RankProgram& program_;
  double slowdown_, still_s_ = 0;
  int last_ = -1;  ///< op of the compute lane
  LaneSeconds lane_s_{};
  std::vector<Reach> reach_;
};

}  // namespace wt
