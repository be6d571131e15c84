// Connections between pairs of ranks, separate from the step program's groups, so that their traffic blocks no
// collective of the step. Each costs two sockets at both ends, for any world size.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/communication/communicator.hpp"

namespace wt {

/// A connection between two ranks of the world.
struct Link {
  std::int64_t from = 0, to = 0;
  friend auto operator<=>(const Link&, const Link&) = default;
};

class RankLinks {
 public:
  /// Both arguments must outlive this.
  RankLinks(const RankEnvironment& environment, RankWatch& watch) : environment_(environment), watch_(watch) {}
  /// Connects those of `links` that end at this rank and are not connected yet. All ranks must pass the same links.
  void connect(std::vector<Link> links);
  /// Called by both ends: copies the values of from's tensor, in host memory, to to's, of the same size. Only one
  /// thread at a time, main or other, may use a link.
  Pending move(const Link& link, const at::Tensor& values) { return links_.at(link)->broadcast(Axis::world, values); }
  /// Called by the main thread: waits, under the watch, for another thread's use of links. `over` may sleep for a
  /// while.
  void wait_for(const std::string& what, const std::function<bool()>& over);

 private:
  const RankEnvironment& environment_;
  RankWatch& watch_;
  std::map<Link, std::unique_ptr<Communicators>> links_;
};

}  // namespace wt
