// Nodes of a run on a trace: who trains, who stands by, who is in repair. Only for replay_trace.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/months/uptime.hpp"

namespace wt::detail {

class NodePool {
 public:
  /// Nodes 0 to training - 1 train, the next `spares` stand by.
  NodePool(std::int64_t training, std::int64_t spares)
      : training_(training),
        node_at_(index(training)),
        place_of_(index(training + spares)),
        repaired_(index(training + spares)),
        back_(index(training + spares)) {
    for (std::int64_t node = 0; node < training + spares; ++node) {
      place_of_[index(node)] = node < training ? node : kNowhere;
      if (node < training)
        node_at_[index(node)] = node;
      else
        stand_by(node, 0);
    }
  }

  /// kNowhere: it does not train, or is none of the run's.
  std::int64_t place_of(std::int64_t node) const {
    return index(node) < place_of_.size() ? place_of_[index(node)] : kNowhere;
  }
  bool trains(std::int64_t node) const { return place_of(node) != kNowhere; }
  /// It trains, and was not in repair since then.
  bool trains_since(std::int64_t node, std::int64_t time) const {
    return trains(node) && repaired_[index(node)] <= time;
  }

  /// A node is struck: it is away until `back`, unless it is in repair already.
  void lose(std::int64_t node, std::int64_t at, std::int64_t back) {
    if (index(node) >= place_of_.size()) return;
    if (trains(node)) {
      repaired_[index(node)] = back;
      node_at_[index(place_of(node))] = kNowhere;
      --training_;
      place_of_[index(node)] = kNowhere;
      stand_by(node, back);
      return;
    }
    if (back_[index(node)] <= at) back_[index(node)] = repaired_[index(node)] = back;
  }

  /// Nodes that train or are ready to at a time.
  std::int64_t there(std::int64_t time) const { return training_ + ready(time); }
  std::int64_t ready(std::int64_t time) const {
    return std::ranges::count_if(others_, [&](std::int64_t node) { return back_[index(node)] <= time; });
  }
  /// When as many are there as that at the earliest, from `time` on; kNever = so many are not.
  std::int64_t when_there(std::int64_t wanted, std::int64_t time) const {
    const std::int64_t missing = wanted - there(time);
    if (missing <= 0) return time;
    std::vector<std::int64_t> backs;
    for (const std::int64_t node : others_)
      if (back_[index(node)] > time) backs.push_back(back_[index(node)]);
    if (index(missing) > backs.size()) return kNever;
    std::ranges::sort(backs);
    return backs[index(missing - 1)];
  }

  /// The first `places` are filled, by those of later places, then by who has been ready longest; the rest stands by.
  void fill(std::int64_t places, std::int64_t time) {
    for (std::int64_t place = places; place < std::ssize(node_at_); ++place) {
      const std::int64_t node = std::exchange(node_at_[index(place)], kNowhere);
      if (node == kNowhere) continue;
      --training_;
      place_of_[index(node)] = kNowhere;
      stand_by(node, 0);
    }
    for (std::int64_t place = 0; place < places; ++place)
      if (node_at_[index(place)] == kNowhere) take(place, time);
  }
  /// Fills a place with who is ready first; returns when that is, at least `time`. kNever: there is none.
  std::int64_t take(std::int64_t place, std::int64_t time) {
    const auto first = std::ranges::min_element(others_, {}, [&](std::int64_t node) { return back_[index(node)]; });
    if (first == others_.end()) return kNever;
    const std::int64_t taken = *first;
    others_.erase(first);
    node_at_[index(place)] = taken;
    ++training_;
    place_of_[index(taken)] = place;
    return std::max(time, back_[index(taken)]);
  }
  bool vacant(std::int64_t place) const { return node_at_[index(place)] == kNowhere; }

 private:
  static constexpr std::int64_t kNowhere = -1;
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  void stand_by(std::int64_t node, std::int64_t back) {
    others_.push_back(node);
    back_[index(node)] = back;
  }
  std::int64_t training_ = 0;
  std::vector<std::int64_t> node_at_, place_of_;
  std::vector<std::int64_t> repaired_;  ///< of each node: when its last repair ends
  std::vector<std::int64_t> back_;      ///< of who does not train: ready from then on
  std::vector<std::int64_t> others_;    ///< who does not train
};

}  // namespace wt::detail
