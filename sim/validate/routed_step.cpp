#include "sim/validate/routed_step.hpp"

#include <algorithm>
#include <map>

#include "configs/spec/support/error.hpp"
#include "sim/cost/stacks/step_work.hpp"

namespace wt {
namespace {

DataSheet sheet_of(const RunRow& run) {
  if (const auto sheet = data_sheet(run.gpu)) return *sheet;
  throw_error(Code::usage, "no data sheet of '{}'", run.gpu);
}

ProgramOptions options_of(const RunRow& run) {
  ProgramOptions options;
  options.seq = run.seq;
  options.microbatches = run.accumulation;
  options.precision = Precision::bf16;
  return options;
}

bool moves_rows(const Op& op) { return op.action == Action::dispatch || op.action == Action::collect; }

}  // namespace

RoutedStep::RoutedStep(const RunRow& run, const ItemTimes& gpus, const CollectiveEstimator& fabric)
    : run_(run),
      gpus_(gpus),
      fabric_(fabric),
      machine_(machine_of(run)),
      sheet_(sheet_of(run)),
      set_(build_program_set(run.model, layout_of(run), options_of(run))),
      routed_(static_cast<std::size_t>(run.model.layers)) {
  std::map<const Op*, double> known;  // an op of a loop is the same in every layer and microbatch
  for (const OpInstance& instance : unroll(set_.programs.front())) {
    const Op& op = *instance.op;
    if (routed(op)) {
      const int layer = instance.layer + op.layer_delta;
      auto& ops = routed_.at(static_cast<std::size_t>(layer));
      const auto found = std::ranges::find(ops, &op, [](const auto& each) { return each.first; });
      if (found == ops.end())
        ops.emplace_back(&op, 1);
      else
        ++found->second;
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

double RoutedStep::item_s(const WorkItem& item, double rows) const {
  return gpus_.item(item, rows, {}, sheet_).sum_s();
}

double RoutedStep::op_s(const Op& op, double rows) const {
  if (moves_rows(op)) {
    const double bytes = rows * 2 * static_cast<double>(run_.model.d_model);
    return fabric_.seconds({op.kind, bytes, RankGroup::strided(run_.ep, 1, run_.gpus_per_node), machine_});
  }
  double seconds = 0;
  for (const WorkItem& item : op.work) seconds += item_s(item, rows);
  return seconds;
}

RoutedStep::Seconds RoutedStep::seconds(const FullestShares& fullest) const {
  const double mean_rows = static_cast<double>(run_.microbatch * run_.seq * run_.model.top_k);
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
