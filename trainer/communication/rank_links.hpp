// Connections of single pairs of ranks, beside the groups of the step program: what travels here holds up no collective
// of the step. Each costs two sockets at both ends, whatever the size of the world.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/communication/communicator.hpp"

namespace wt {

/// Ranks of the world.
struct Link {
  std::int64_t from = 0, to = 0;
  friend auto operator<=>(const Link&, const Link&) = default;
};

class RankLinks {
 public:
  /// Both outlive this.
  RankLinks(const RankEnvironment& environment, RankWatch& watch) : environment_(environment), watch_(watch) {}
  /// Connects what of `links` ends at this rank and is not connected yet. Every rank gives the same links.
  void connect(std::vector<Link> links);
  /// By both ends: the values of from's tensor, in host memory, go to to's, which is as large.
  /// One thread at a time moves values over a link, and it need not be the main one.
  Pending move(const Link& link, const at::Tensor& values) { return links_.at(link)->broadcast(Axis::world, values); }
  /// By the main thread: waits for what another thread does with links, under the watch. `over` may sleep for a while.
  void wait_for(const std::string& what, const std::function<bool()>& over);

 private:
  const RankEnvironment& environment_;
  RankWatch& watch_;
  std::map<Link, std::unique_ptr<Communicators>> links_;
};

}  // namespace wt
