// The nodes of a run on a trace: training, standby or in repair. Only for replay_trace.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/months/uptime.hpp"

namespace wt::detail {

class NodePool {
 public:
  /// Nodes 0 to training - 1 train. The next `spares` nodes are on standby.
  NodePool(std::int64_t training, std::int64_t spares)
      : training_(training),
        node_in_slot_(index(training)),
        slot_of_(index(training + spares)),
        repair_end_(index(training + spares)),
        ready_at_(index(training + spares)) {
    for (std::int64_t node = 0; node < training + spares; ++node) {
      slot_of_[index(node)] = node < training ? node : kNoSlot;
      if (node < training)
        node_in_slot_[index(node)] = node;
      else
        stand_by(node, 0);
    }
  }

  /// kNoSlot: the node does not train, or does not belong to the run.
  std::int64_t slot_of(std::int64_t node) const {
    return index(node) < slot_of_.size() ? slot_of_[index(node)] : kNoSlot;
  }
  bool trains(std::int64_t node) const { return slot_of(node) != kNoSlot; }
  /// The node trains, and its last repair ended by `time`.
  bool trains_since(std::int64_t node, std::int64_t time) const {
    return trains(node) && repair_end_[index(node)] <= time;
  }

  /// Sends a failed node to repair until `ready`, unless it is in repair already.
  void repair(std::int64_t node, std::int64_t at, std::int64_t ready) {
    if (index(node) >= slot_of_.size()) return;
    if (trains(node)) {
      repair_end_[index(node)] = ready;
      node_in_slot_[index(slot_of(node))] = kNoSlot;
      --training_;
      slot_of_[index(node)] = kNoSlot;
      stand_by(node, ready);
      return;
    }
    if (ready_at_[index(node)] <= at) ready_at_[index(node)] = repair_end_[index(node)] = ready;
  }

  /// Nodes that train, or could at `time`.
  std::int64_t available_nodes(std::int64_t time) const { return training_ + ready_standby(time); }
  std::int64_t ready_standby(std::int64_t time) const {
    return std::ranges::count_if(standby_, [&](std::int64_t node) { return ready_at_[index(node)] <= time; });
  }
  /// The earliest time, not before `time`, at which `wanted` nodes are available; kNever if the run has fewer.
  std::int64_t earliest_available(std::int64_t wanted, std::int64_t time) const {
    const std::int64_t missing = wanted - available_nodes(time);
    if (missing <= 0) return time;
    std::vector<std::int64_t> ready_times;
    for (const std::int64_t node : standby_)
      if (ready_at_[index(node)] > time) ready_times.push_back(ready_at_[index(node)]);
    if (index(missing) > ready_times.size()) return kNever;
    std::ranges::sort(ready_times);
    return ready_times[index(missing - 1)];
  }

  /// Fills the first `slots` slots: first with the nodes of later slots, then with the standby nodes ready longest. The
  /// other nodes go on standby.
  void fill(std::int64_t slots, std::int64_t time) {
    for (std::int64_t slot = slots; slot < std::ssize(node_in_slot_); ++slot) {
      const std::int64_t node = std::exchange(node_in_slot_[index(slot)], kNoSlot);
      if (node == kNoSlot) continue;
      --training_;
      slot_of_[index(node)] = kNoSlot;
      stand_by(node, 0);
    }
    for (std::int64_t slot = 0; slot < slots; ++slot)
      if (node_in_slot_[index(slot)] == kNoSlot) assign_standby(slot, time);
  }
  /// Fills a slot with the standby node that is ready first. Returns when the node can train, at least `time`; kNever =
  /// there is no standby node.
  std::int64_t assign_standby(std::int64_t slot, std::int64_t time) {
    const auto first =
        std::ranges::min_element(standby_, {}, [&](std::int64_t node) { return ready_at_[index(node)]; });
    if (first == standby_.end()) return kNever;
    const std::int64_t taken = *first;
    standby_.erase(first);
    node_in_slot_[index(slot)] = taken;
    ++training_;
    slot_of_[index(taken)] = slot;
    return std::max(time, ready_at_[index(taken)]);
  }
  bool vacant(std::int64_t slot) const { return node_in_slot_[index(slot)] == kNoSlot; }

 private:
  static constexpr std::int64_t kNoSlot = -1;
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  void stand_by(std::int64_t node, std::int64_t ready) {
    standby_.push_back(node);
    ready_at_[index(node)] = ready;
  }
  std::int64_t training_ = 0;
  std::vector<std::int64_t> node_in_slot_, slot_of_;
  std::vector<std::int64_t> repair_end_;  ///< of each node: end of its last repair
  std::vector<std::int64_t> ready_at_;    ///< of each standby node: when it can train
  std::vector<std::int64_t> standby_;     ///< nodes that do not train, in repair or ready
};

}  // namespace wt::detail
