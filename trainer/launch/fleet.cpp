#include "trainer/launch/fleet.hpp"

#include <algorithm>
#include <numeric>

#include "configs/spec/support/error.hpp"
#include "trainer/launch/remaining_layout.hpp"

namespace wt {

Fleet::Fleet(const RunSpec& run, const NodeShape& shape, std::int64_t min_replicas)
    : whole_(run), run_(run), shape_(shape), min_replicas_(min_replicas) {
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

bool Fleet::shrink(const Losses& lost) {
  const Losses before = lost_;
  lost_.insert(lost.begin(), lost.end());
  const std::int64_t ranks = std::min(static_cast<std::int64_t>(healthy().size()) * shape_.ranks, world() - 1);
  const auto layouts = remaining_layouts(whole_, ranks, shape_.ranks, min_replicas_);
  if (layouts.empty()) {
    lost_ = before;
    return false;
  }
  settle(layouts.front());
  return true;
}

void Fleet::settle(const RunSpec& run) {
  run_ = run;
  nodes_ = healthy();
  nodes_.resize(static_cast<std::size_t>(world() / shape_.ranks));
}

bool Fleet::take_back(double now) {
  return std::erase_if(lost_, [&](const auto& loss) { return loss.second && *loss.second <= now; }) > 0;
}

std::optional<RunSpec> Fleet::larger() const {
  const std::int64_t ranks = static_cast<std::int64_t>(healthy().size()) * shape_.ranks;
  if (full()) return std::nullopt;
  if (ranks >= whole_.layout.world()) return whole_;
  const auto layouts = remaining_layouts(whole_, ranks, shape_.ranks, min_replicas_);
  if (layouts.empty() || layouts.front().layout.world() <= world()) return std::nullopt;
  return layouts.front();
}

void Fleet::grow() { settle(*larger()); }

}  // namespace wt
