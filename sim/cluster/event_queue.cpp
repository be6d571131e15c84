#include "sim/cluster/event_queue.hpp"

#include <bit>
#include <limits>

#include "configs/base/hash.hpp"

namespace wt {

double EventQueue::next_s() const {
  return order_.empty() ? std::numeric_limits<double>::infinity() : order_.top().first;
}

void EventQueue::add(double time_s, std::int64_t event) {
  std::size_t& recent = recent_[splitmix64(std::bit_cast<std::uint64_t>(time_s)) % kRecent];
  if (recent >= buckets_.size() || buckets_[recent].time_s != time_s) recent = open(time_s);
  buckets_[recent].events.push_back(event);
}

std::size_t EventQueue::open(double time_s) {
  std::size_t bucket = buckets_.size();
  if (free_.empty()) {
    buckets_.emplace_back();
  } else {
    bucket = free_.back();
    free_.pop_back();
  }
  buckets_[bucket].time_s = time_s;
  order_.push({time_s, {opened_++, bucket}});
  return bucket;
}

void EventQueue::take(std::vector<std::int64_t>& events) {
  events.clear();
  if (order_.empty()) return;
  const std::size_t bucket = order_.top().second.second;
  order_.pop();
  std::swap(events, buckets_[bucket].events);
  buckets_[bucket].time_s = std::numeric_limits<double>::quiet_NaN();  // equals no time: add() skips this bucket
  free_.push_back(bucket);
}

}  // namespace wt
