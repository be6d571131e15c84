// Events in time order. Thousands of equal ranks end an op at the same time, so events of one time share a bucket and
// only buckets are sorted. Adding an event is then an append, not a heap insertion.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace wt {

class EventQueue {
 public:
  /// `event` is the owner's number. `time_s` must not be NaN.
  void add(double time_s, std::int64_t event);
  bool empty() const { return order_.empty(); }
  /// Time of the earliest event; infinity without events.
  double next_s() const;
  /// Removes events of the earliest time, in the order added. Later calls return the rest, if any.
  void take(std::vector<std::int64_t>& events);

 private:
  struct Bucket {
    double time_s;
    std::vector<std::int64_t> events;
  };
  using Place = std::pair<double, std::pair<std::int64_t, std::size_t>>;  ///< time, order of creation, bucket

  std::size_t open(double time_s);

  static constexpr std::size_t kRecent = 1024;  // far more than the distinct end times that are pending at once
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> free_;
  std::array<std::size_t, kRecent> recent_{};  ///< by hash of the time: a bucket that may have this time
  std::priority_queue<Place, std::vector<Place>, std::greater<>> order_;
  std::int64_t opened_ = 0;
};

}  // namespace wt
