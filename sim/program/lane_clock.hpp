// When the ops of a rank start and end, asked in issue order, with the seconds of each known: lanes are chains, and an
// op waits for what it names. The simulator has no use for it: there ops wait for other ranks and share links, too.
#pragma once
#include <algorithm>
#include <array>

#include "sim/program/program.hpp"

namespace wt {

class LaneClock {
 public:
  /// `synchronous_host` (MachineTraits::synchronous_host): the host itself waits before it issues an op, and does those
  /// that are not asynchronous. Else it runs ahead, and ops wait on their lanes.
  explicit LaneClock(bool synchronous_host = false) : synchronous_host_(synchronous_host) {}

  /// When the next op starts. `ready_s`: what it waits for is done; `free_s`: so is what keeps it alone, not the host:
  /// its communicator's last op.
  double start_s(Lane lane, double ready_s, double free_s = 0) {
    if (synchronous_host_) ready_s = host_s_ = std::max(host_s_, ready_s);
    return std::max({ready_s, free_s, lane_s(lane)});
  }
  /// It is done. `on_host`: it is not asynchronous.
  void end(Lane lane, double done_s, bool on_host = true) {
    double& last = lane_s_[static_cast<std::size_t>(lane)];
    last = std::max(last, done_s);
    if (synchronous_host_ && on_host) host_s_ = done_s;
    end_s_ = std::max(end_s_, done_s);
  }

  /// The lane's last op is done.
  double lane_s(Lane lane) const { return lane_s_[static_cast<std::size_t>(lane)]; }
  /// All are.
  double end_s() const { return end_s_; }

 private:
  bool synchronous_host_;
  std::array<double, kLanes> lane_s_{};
  double host_s_ = 0, end_s_ = 0;
};

}  // namespace wt
