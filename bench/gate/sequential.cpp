#include "bench/gate/sequential.hpp"

#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <cmath>
#include <map>

#include "bench/gate/rank_tests.hpp"
#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

constexpr std::size_t kPairs = kBlockSide * kBlockSide;  // of one block

// 2, 3, 4, 6, 8, 12, ...: each look has a third to a half more blocks than the previous one.
bool is_look(std::size_t blocks) {
  while (blocks > 3 && blocks % 2 == 0) blocks /= 2;
  return blocks == 2 || blocks == 3;
}

// Share of `miss` spent at look k. Most is spent early, because half of all benchmarks are quiet and decided then.
double share_of_miss(std::size_t k) {
  constexpr double kPi = boost::math::constants::pi<double>();
  return 6 / (kPi * kPi * static_cast<double>(k * k));  // the sum over all k is 1
}

// P(U <= u), cached: every benchmark of a run needs the same ones.
const std::vector<double>& distribution(std::size_t blocks) {
  thread_local std::map<std::size_t, std::vector<double>> known;
  std::vector<double>& found = known[blocks];
  if (found.empty()) found = block_distribution(blocks);
  return found;
}

}  // namespace

std::vector<bool> block_order(std::mt19937_64& random) {
  std::vector<bool> order;
  for (std::size_t process : shuffled(2 * kBlockSide, random)) order.push_back(process >= kBlockSide);
  return order;
}

std::vector<double> block_distribution(std::size_t blocks) {
  const std::vector<double> one = rank_sum_distribution(kBlockSide, kBlockSide);
  std::vector<double> all = {1.0};
  for (std::size_t b = 0; b < blocks; ++b) {
    std::vector<double> sum(all.size() + kPairs, 0.0);
    for (std::size_t u = 0; u < all.size(); ++u)
      for (std::size_t v = 0; v < one.size(); ++v) sum[u + v] += all[u] * one[v];
    all = std::move(sum);
  }
  double below = 0;
  for (double& p : all) p = below += p;
  return all;
}

SequentialGate::SequentialGate(std::vector<GateRow> rows, const GateOptions& options, double miss)
    : rows_(std::move(rows)), states_(rows_.size()), options_(options), miss_(miss) {
  for (GateRow& row : rows_) {
    row.verdict = Verdict::inconclusive;
    row.reason = "not measured in two whole blocks";
    row.base_n = row.current_n = 0;
    row.samples_needed.reset();
  }
}

std::vector<std::size_t> SequentialGate::next() const {
  const std::vector<std::size_t> all = undecided();
  std::vector<std::size_t> likely;
  for (std::size_t i : all)
    if (states_[i].blocks < 4 || states_[i].may_be_slower) likely.push_back(i);
  return likely.empty() ? all : likely;
}

std::vector<std::size_t> SequentialGate::undecided() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (!states_[i].decided) out.push_back(i);
  return out;
}

void SequentialGate::add(std::size_t index, const std::vector<double>& base, const std::vector<double>& current) {
  GateRow& row = rows_.at(index);
  State& state = states_.at(index);
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  for (const std::vector<double>* side : {&base, &current})
    if (side->size() != kBlockSide || !std::ranges::all_of(*side, positive))
      throw_usage("gate: {}: found {} values of a block, allowed {} a side, all above 0; measure it again", row.name,
                  side->size(), kBlockSide);
  state.base.insert(state.base.end(), base.begin(), base.end());
  state.current.insert(state.current.end(), current.begin(), current.end());
  for (double a : base)
    for (double b : current) {
      state.ratios.push_back(b / a);
      state.larger_twice += b > a ? 2 : b == a ? 1 : 0;
    }
  ++state.blocks;
  if (is_look(state.blocks) && !state.decided) look(row, state);
}

void SequentialGate::look(GateRow& row, State& state) {
  const std::vector<double>& below = distribution(state.blocks);
  const double miss = miss_ * share_of_miss(++state.looks);
  const std::size_t pairs = state.ratios.size();
  row.base_n = row.current_n = state.base.size();
  row.base_median = median(state.base);
  row.current_median = median(state.current);
  row.delta = *row.current_median - *row.base_median;
  std::vector<double> sorted = state.ratios;
  std::ranges::sort(sorted);
  row.ratio = median(sorted);
  // Half a pair is rounded towards the middle: a tie never makes a finding likelier.
  const std::size_t fewer = std::min(pairs, (std::min(state.larger_twice, 2 * pairs - state.larger_twice) + 1) / 2);
  row.p = std::min(1.0, below[fewer]);
  row.p_adjusted = std::min(1.0, *row.p * static_cast<double>(rows_.size() * kLooks));
  const std::size_t left_out = static_cast<std::size_t>(std::ranges::upper_bound(below, miss / 2) - below.begin());
  row.ratio_low.reset(), row.ratio_high.reset();
  if (left_out > 0) row.ratio_low = sorted[left_out - 1], row.ratio_high = sorted[pairs - left_out];

  const bool worse = worsening(row, *row.ratio) > 1;
  state.may_be_slower = worse && *row.p < 0.2;
  const bool large = beyond_floors(row, *row.ratio, options_);
  const std::string after = fmt::format("adjusted p {:.2g} after {} blocks", *row.p_adjusted, state.blocks);
  state.decided = true;
  if (*row.p_adjusted < options_.alpha && large) {
    row.verdict = worse ? Verdict::slower : Verdict::faster;
    row.reason = after;
  } else if (row.ratio_low && !beyond_floors(row, *row.ratio_low, options_) &&
             !beyond_floors(row, *row.ratio_high, options_)) {
    const bool certain = *row.p_adjusted < options_.alpha && worse;
    row.verdict = certain ? Verdict::below_floor : Verdict::same;
    row.reason = certain ? "the interval lies within the floors: " + after
                         : fmt::format("the interval lies within the floors after {} blocks", state.blocks);
  } else {
    state.decided = state.looks == kLooks;
    row.reason = "not certain in the time given: " + after;
  }
}

GateResult judged_in_blocks(GateResult compared, const SequentialGate& gate) {
  compared.order = Order::in_blocks;
  std::map<std::string, const GateRow*> tested;
  for (const GateRow& row : gate.rows()) tested[row.name] = &row;
  for (GateRow& row : compared.rows) {
    const auto found = tested.find(row.name);
    const bool both = row.verdict != Verdict::incomparable && row.verdict != Verdict::failed &&
                      row.verdict != Verdict::missing && row.verdict != Verdict::fresh;
    if (both && found != tested.end()) row = *found->second;
  }
  sort_rows(compared.rows);
  return compared;
}

}  // namespace wt
