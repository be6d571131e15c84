#include "sim/validate/routed_step.hpp"

#include <algorithm>

namespace wt {
namespace {

ProgramOptions options_of(const RoutedSetup& setup) {
  ProgramOptions options;
  options.seq = setup.seq;
  options.microbatches = setup.microbatches;
  options.precision = Precision::bf16;
  return options;
}

bool moves_rows(const Op& op) { return op.action == Action::dispatch || op.action == Action::collect; }

}  // namespace

RoutedStep::RoutedStep(const RoutedSetup& setup, const KernelPrices& prices)
    : setup_(setup),
      prices_(prices),
      set_(build_program_set(setup.model, setup.layout, options_of(setup))),
      routed_(static_cast<std::size_t>(setup.model.layers)) {
  std::map<const Op*, double> known;  // an op of a loop is the same in every layer and microbatch
  for (const OpInstance& instance : unroll(set_.programs.front())) {
    const Op& op = *instance.op;
    if (routed(op)) {
      ++routed_.at(static_cast<std::size_t>(instance.layer + op.layer_delta))[&op];
      continue;
    }
    const auto [price, fresh] = known.try_emplace(&op, 0.0);
    if (fresh) price->second = op_s(op, 0);
    fixed_s_ += price->second;
  }
}

bool RoutedStep::routed(const Op& op) const {
  return moves_rows(op) ||
         std::any_of(op.work.begin(), op.work.end(), [](const WorkItem& item) { return item.rows.per_row != 0; });
}

double RoutedStep::op_s(const Op& op, double rows) const {
  if (moves_rows(op))
    return prices_.exchange_s(setup_.gpu, rows * 2 * static_cast<double>(setup_.model.d_model), setup_.layout.expert);
  double seconds = 0;
  for (const WorkItem& item : op.work) seconds += prices_.item_s(setup_.gpu, item, rows);
  return seconds;
}

RoutedStep::Seconds RoutedStep::seconds(const FullestShares& fullest) const {
  const double mean_rows = static_cast<double>(setup_.layout.microbatch * setup_.seq * setup_.model.top_k);
  std::map<std::pair<const Op*, double>, double> known;
  Seconds out;
  for (std::size_t layer = 0; layer < routed_.size(); ++layer) {
    const std::vector<double>& shares = fullest[layer % fullest.size()];
    for (const auto& [op, times] : routed_[layer])
      for (const double share : shares) {
        const auto [price, fresh] = known.try_emplace({op, share}, 0.0);
        if (fresh) price->second = op_s(*op, share * mean_rows);
        out.routed += times * price->second / static_cast<double>(shares.size());
      }
  }
  out.all = fixed_s_ + out.routed;
  return out;
}

}  // namespace wt
