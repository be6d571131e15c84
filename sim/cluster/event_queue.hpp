// What happens when, earliest first. Thousands of ranks that do the same end it at the same time: events of one time
// stand in one bucket, and only buckets are sorted. An event costs an append then, where a heap of events would move it
// past all others.
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
  /// An event's number means something to its owner alone. Seconds; not a NaN.
  void add(double time_s, std::int64_t event);
  bool empty() const { return order_.empty(); }
  /// Of the earliest event; infinity without events.
  double next_s() const;
  /// Takes out events of the earliest time, those that were added first: all, or the rest is of the next call.
  void take(std::vector<std::int64_t>& events);

 private:
  struct Bucket {
    double time_s;
    std::vector<std::int64_t> events;
  };
  using Place = std::pair<double, std::pair<std::int64_t, std::size_t>>;  ///< time, order of opening, bucket

  std::size_t open(double time_s);

  static constexpr std::size_t kRecent = 1024;  // times that ranks end ops at, far more than are ahead at once
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> free_;
  std::array<std::size_t, kRecent> recent_{};  ///< by the time's hash: a bucket that may be of this time
  std::priority_queue<Place, std::vector<Place>, std::greater<>> order_;
  std::int64_t opened_ = 0;
};

}  // namespace wt
