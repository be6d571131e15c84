#include "trainer/recovery/fleet.hpp"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "trainer/recovery/remaining_layout.hpp"

namespace wt {

Fleet::Fleet(const RunSpec& run, const NodeShape& shape, std::int64_t min_replicas)
    : whole_(run), run_(run), shape_(shape), min_replicas_(min_replicas) {
  const std::int64_t world = run.layout.world();
  if (world % shape.ranks != 0)
    throw_usage("nodes.ranks: found {}, the {} ranks of {} are no whole number of such nodes", shape.ranks, world,
                run.name);
  nodes_.resize(static_cast<std::size_t>(world / shape.ranks));
  std::iota(nodes_.begin(), nodes_.end(), 0);
  count_ = world / shape.ranks + shape.spares;
}

std::vector<std::int64_t> Fleet::excluded() const { return mapped(std::views::keys(lost_)); }

std::vector<std::int64_t> Fleet::healthy() const {
  std::vector<std::int64_t> out;
  for (std::int64_t node = 0; node < count_; ++node)
    if (!lost_.count(node)) out.push_back(node);
  return out;
}

std::vector<std::int64_t> Fleet::idle() const {
  std::vector<std::int64_t> out = healthy();
  std::erase_if(out, [&](std::int64_t node) { return std::ranges::count(nodes_, node) > 0; });
  return out;
}

bool Fleet::replace(const Losses& lost) {
  if (!can_replace(lost)) return false;
  const std::vector<std::int64_t> spares = idle();
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

std::vector<std::int64_t> Fleet::drop_replicas(const std::vector<std::int64_t>& ranks, const Losses& lost) {
  Layout& l = run_.layout;
  const std::int64_t of_replica = l.world() / l.replicate, nodes_of_replica = of_replica / shape_.ranks;
  std::set<std::int64_t> broken;
  for (const std::int64_t rank : ranks) broken.insert(rank / of_replica);
  const std::int64_t left = l.replicate - static_cast<std::int64_t>(broken.size());
  if (left < std::max<std::int64_t>(1, min_replicas_) || of_replica % shape_.ranks != 0 || l.optimizer_shard > 1)
    return {};
  std::vector<std::int64_t> ranks_left, nodes_left;
  for (std::int64_t rank = 0; rank < world(); ++rank)
    if (!broken.count(rank / of_replica)) ranks_left.push_back(rank);
  for (std::size_t place = 0; place < nodes_.size(); ++place)
    if (!broken.count(static_cast<std::int64_t>(place) / nodes_of_replica)) nodes_left.push_back(nodes_[place]);
  nodes_ = std::move(nodes_left);
  lost_.insert(lost.begin(), lost.end());
  missing_ += l.replicate - left;
  l.replicate = left;
  return ranks_left;
}

std::int64_t Fleet::add_replicas() {
  Layout& l = run_.layout;
  const std::vector<std::int64_t> standing_by = idle();
  const std::int64_t nodes_of_replica = l.world() / l.replicate / shape_.ranks;
  const std::int64_t added = std::min(missing_, static_cast<std::int64_t>(standing_by.size()) / nodes_of_replica);
  nodes_.insert(nodes_.end(), standing_by.begin(), standing_by.begin() + added * nodes_of_replica);
  missing_ -= added;
  l.replicate += added;
  return added;
}

void Fleet::undo_added(std::int64_t replicas, const Losses& lost) {
  lost_.insert(lost.begin(), lost.end());
  Layout& l = run_.layout;
  const std::int64_t of_replica = world() / l.replicate;
  l.replicate -= replicas;
  missing_ += replicas;
  nodes_.resize(static_cast<std::size_t>(l.replicate * of_replica / shape_.ranks));
}

bool Fleet::complete() {
  if (missing_ == 0) return true;
  const std::int64_t ranks = static_cast<std::int64_t>(healthy().size()) * shape_.ranks;
  if (ranks >= whole_.layout.world()) {
    settle(whole_);
    return true;
  }
  const auto layouts = remaining_layouts(whole_, ranks, shape_.ranks, min_replicas_);
  if (!layouts.empty()) settle(layouts.front());
  return !layouts.empty();
}

void Fleet::settle(const RunSpec& run) {
  run_ = run;
  missing_ = 0;
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
