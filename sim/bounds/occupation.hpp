// Of a GPU whose computation is slowed while collectives of its rank are in flight: a lower bound on its step that the
// longest lane and the critical path do not give. With C seconds of computation at full rate, S of standstill and F in
// flight, of which no more than S falls into the standstill: step >= C + S + slowdown (F - S).
#pragma once
#include <array>
#include <compare>
#include <vector>

#include "sim/replay/replay_executor.hpp"

namespace wt {

using LaneSeconds = std::array<double, kLanes>;

/// Seconds of the fullest lane in which a rank's collectives follow each other.
double fullest_transfers(const LaneSeconds& lane_s);

/// The bound above; it grows with each of its arguments.
double slowed_step_s(double compute_s, double still_s, double in_flight_s, double slowdown);

/// Collects the three from the ops of a rank, given in issue order with the seconds each takes at least:
///   C  the compute lane's ops;
///   S  collectives on the compute lane, and the time between two of its ops for which the second waits for what needs
///      the first;
///   F  the fullest lane's collectives, or the fullest link's bytes at its full rate.
/// Costs nothing where nothing is slowed.
class Occupation {
 public:
  /// The program must outlive it.
  Occupation(const RankProgram& program, double slowdown);
  void add(int op, double seconds);
  /// After the last op; 0 where nothing is slowed.
  double bound_s(const StepTasks& step, const RankTasks& rank) const;

 private:
  /// The latest op of the compute lane that an op needs, and when it is done at the earliest, counted from that one's
  /// end.
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
