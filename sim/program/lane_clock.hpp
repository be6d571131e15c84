// When the ops of a rank start and end, if the seconds of each are known. Ops come in issue order. An op waits for the
// previous op of its lane and for the ops that it names. The replay does not use this clock, because there ops also
// wait for other ranks and share links.
#pragma once
#include <algorithm>
#include <array>

#include "sim/program/program.hpp"

namespace wt {

class LaneClock {
 public:
  /// `synchronous_host` (MachineTraits::synchronous_host): the host waits before it issues an op, and itself runs the
  /// ops that are not asynchronous. Otherwise the host runs ahead, and ops wait on their lanes.
  explicit LaneClock(bool synchronous_host = false) : synchronous_host_(synchronous_host) {}

  /// When the next op starts. `ready_s`: when all ops that it waits for are done. `free_s`: when its communicator's
  /// last op is done; the op waits for this, the host does not.
  double start_s(Lane lane, double ready_s, double free_s = 0) {
    if (synchronous_host_) ready_s = host_s_ = std::max(host_s_, ready_s);
    return std::max({ready_s, free_s, lane_s(lane)});
  }
  /// Records the op's end. `on_host`: the op is not asynchronous.
  void end(Lane lane, double done_s, bool on_host = true) {
    double& last = lane_s_[static_cast<std::size_t>(lane)];
    last = std::max(last, done_s);
    if (synchronous_host_ && on_host) host_s_ = done_s;
    end_s_ = std::max(end_s_, done_s);
  }

  /// When the lane's last op is done.
  double lane_s(Lane lane) const { return lane_s_[static_cast<std::size_t>(lane)]; }
  /// When all ops are done.
  double end_s() const { return end_s_; }

 private:
  bool synchronous_host_;
  std::array<double, kLanes> lane_s_{};
  double host_s_ = 0, end_s_ = 0;
};

}  // namespace wt
