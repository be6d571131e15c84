#include "sim/program/routing/rank_totals.hpp"

#include <algorithm>

#include "configs/base/error.hpp"

namespace wt {
namespace {

class RankTotals : public RoutingSource {
 public:
  RankTotals(const ModelSpec& model, const Microbatches& tokens, std::int64_t expert_ranks, RankLoads loads)
      : experts_(model.experts),
        top_k_(model.top_k),
        expert_ranks_(expert_ranks),
        tokens_(tokens),
        loads_(std::move(loads)) {}

  std::vector<double> counts(std::int64_t step, std::int64_t microbatch, std::int64_t layer,
                             std::int64_t source_rank) const override {
    const auto& steps = loads_[static_cast<std::size_t>(layer) % loads_.size()];
    const std::vector<double>& ranks = steps[static_cast<std::size_t>(step) % steps.size()];
    const std::int64_t held = experts_ / expert_ranks_, first = source_rank / expert_ranks_ * expert_ranks_;
    const double even = static_cast<double>(tokens_.of(microbatch) * top_k_) / static_cast<double>(experts_);
    std::vector<double> out;
    for (std::int64_t e = 0; e < experts_; ++e)
      out.push_back(even * (expert_ranks_ == 1 ? 1 : ranks[static_cast<std::size_t>(first + e / held) % ranks.size()]));
    return out;
  }
  bool same_in_every_microbatch() const override { return true; }
  std::string description() const override { return "rows of ranks, spread evenly over their experts and sources"; }

 private:
  std::int64_t experts_, top_k_, expert_ranks_;
  Microbatches tokens_;
  RankLoads loads_;
};

}  // namespace

std::unique_ptr<RoutingSource> rank_total_routing(const ModelSpec& model, const Microbatches& tokens,
                                                  std::int64_t expert_ranks, RankLoads loads) {
  if (expert_ranks < 1 || model.experts < 1 || model.experts % expert_ranks != 0)
    throw_usage("rank totals: found {} experts over {} ranks, needs the same number on each", model.experts,
                expert_ranks);
  const bool some = !loads.empty() && std::ranges::all_of(loads, [](const auto& steps) {
    return !steps.empty() && std::ranges::none_of(steps, [](const auto& ranks) { return ranks.empty(); });
  });
  if (!some) throw_usage("rank totals: found a layer without loads, needs those of one rank or more");
  return std::make_unique<RankTotals>(model, tokens, expert_ranks, std::move(loads));
}

}  // namespace wt
