#include "trainer/launch/fleet.hpp"

#include <algorithm>
#include <numeric>

#include "configs/spec/support/error.hpp"
#include "trainer/launch/remaining_layout.hpp"

namespace wt {

Fleet::Fleet(const RunSpec& run, const NodeShape& shape) : whole_(run), run_(run), shape_(shape) {
  const std::int64_t world = run.layout.world();
  if (world % shape.ranks != 0)
    throw_error(Code::usage, "nodes.ranks: found {}, the {} ranks of {} are no whole number of such nodes", shape.ranks,
                world, run.name);
  nodes_.resize(static_cast<std::size_t>(world / shape.ranks));
  std::iota(nodes_.begin(), nodes_.end(), 0);
  count_ = world / shape.ranks + shape.spares;
}

std::vector<std::int64_t> Fleet::excluded() const {
  std::vector<std::int64_t> out;
  for (const auto& [node, back] : lost_) out.push_back(node);
  return out;
}

std::vector<std::int64_t> Fleet::healthy() const {
  std::vector<std::int64_t> out;
  for (std::int64_t node = 0; node < count_; ++node)
    if (!lost_.count(node)) out.push_back(node);
  return out;
}

std::vector<std::int64_t> Fleet::idle() const {
  std::vector<std::int64_t> out = healthy();
  std::erase_if(out, [&](std::int64_t node) { return std::count(nodes_.begin(), nodes_.end(), node) > 0; });
  return out;
}

bool Fleet::replace(const Losses& lost) {
  std::vector<std::int64_t> spares = idle();
  if (spares.size() < lost.size()) return false;
  auto next = spares.begin();
  for (std::int64_t& node : nodes_)
    if (lost.count(node)) node = *next++;
  lost_.insert(lost.begin(), lost.end());
  return true;
}

bool Fleet::shrink(const Losses& lost, std::int64_t min_replicas) {
  const Losses before = lost_;
  lost_.insert(lost.begin(), lost.end());
  std::vector<std::int64_t> left = healthy();
  const std::int64_t ranks = std::min(static_cast<std::int64_t>(left.size()) * shape_.ranks, world() - 1);
  const auto layouts = remaining_layouts(whole_, ranks, shape_.ranks, min_replicas);
  if (layouts.empty()) {
    lost_ = before;
    return false;
  }
  run_ = layouts.front();
  left.resize(static_cast<std::size_t>(world() / shape_.ranks));
  nodes_ = left;
  return true;
}

void Fleet::take_back(double now) {
  std::erase_if(lost_, [&](const auto& loss) { return loss.second && *loss.second <= now; });
}

bool Fleet::grow() {
  std::vector<std::int64_t> there = healthy();
  const auto ranks = std::min(static_cast<std::int64_t>(there.size()) * shape_.ranks, whole_.layout.world());
  RunSpec larger = whole_;
  if (ranks < whole_.layout.world()) {
    const auto layouts = remaining_layouts(whole_, ranks, shape_.ranks);
    if (layouts.empty()) return false;
    larger = layouts.front();
  }
  if (larger.layout.world() <= world()) return false;
  run_ = larger;
  there.resize(static_cast<std::size_t>(world() / shape_.ranks));
  nodes_ = there;
  return true;
}

}  // namespace wt
