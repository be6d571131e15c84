#include "sim/fit/step_fit.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "configs/base/error.hpp"
#include "sim/cost/ops/overlap.hpp"
#include "sim/statistics/evenly.hpp"
#include "sim/statistics/least_squares.hpp"

namespace wt {
namespace {

/// What is known in advance of one constant, in the order of StepConstant.
struct Known {
  double start;         ///< where a fit begins
  double spread;        ///< of the constant's logarithm around `start`
  double stack_spread;  ///< of the logarithm of a stack's factor; 0 = the same for all stacks
};
constexpr std::array<Known, kStepConstants> kKnown = {{
    {1.0, 0.1, 0.04},    // products
    {1.0, 0.02, 0.01},   // attention: within the errors of its kernels' published rates
    {0.85, 0.4, 0.15},   // memory
    {1.4, 0.3, 0},       // fp8
    {60e-6, 0.7, 0.25},  // item_s
    {60e-6, 0.7, 0.25},  // call_s
    {2.0, 0.7, 0},       // host_power
    {2.0, 0.7, 0},       // gather_power
    {1.0, 0.3, 0.1},     // network
    {1.0, 0.3, 0.15},    // tensor
    {1.2, 0.4, 0.15},    // exchange
    {1.2, 0.4, 0.15},    // once_exchange
    {2e-3, 0.7, 0.25},   // routing_s
    {0.4, 0.5, 0},       // without_wait
    {0.5, 0.6, 0.2},     // replicas
    {1.1, 0.4, 0.15},    // optimizer
    {5e-3, 1.0, 0.35},   // step_s
    {10e-6, 0.5, 2.5},   // pipelined_tensor_s
}};
constexpr double kChipSpread = 0.12;         // for products alone: clocks and power limits differ
constexpr double kStepResidualScale = 0.07;  // relative error beyond which a row counts as an outlier
constexpr double kGroupWeight = 12;          // rows of a group have similar errors: together they weigh as twelve
constexpr std::size_t kMostOfGroup = 48;     // rows; more only cost time

std::vector<TimedStep> thinned(const std::vector<TimedStep>& steps) {
  std::map<std::string, std::vector<const TimedStep*>> groups;
  for (const TimedStep& s : steps) groups[s.group].push_back(&s);
  std::vector<TimedStep> out;
  for (const auto& [name, members] : groups)
    for (const TimedStep* s : evenly(members, kMostOfGroup)) out.push_back(*s);
  return out;
}

}  // namespace

double step_seconds(const StepWork& work, const StepTraits& traits, const StepConstants& k) {
  using C = StepConstant;
  const HostConstants host = k.host();
  const auto computation = [&](const PhaseWork& p) {
    return k.seconds(p.products) + p.attention_s * k[C::attention] + p.memory_s * k[C::memory];
  };
  const auto layers = [&](const PhaseWork& p) {
    const double waiting = work.stages_over_nodes ? p.tensor_calls * work.tensor_ranks * k[C::pipelined_tensor_s] : 0;
    const double exchange = (p.exchange_s * k[C::exchange] + p.once_exchange_s * k[C::once_exchange]) * k[C::network];
    const double gathers = p.gather_s * k[C::network];
    const double blocking =
        p.tensor_s * k[C::tensor] * k[C::network] + (work.exchange_overlap ? 0 : exchange) + waiting;
    const double issued = issued_time_s(
        computation(p) + blocking,
        launch_time_s({p.launches, p.routings, p.routings_back, p.tensor_calls},
                      {waits_for_rows(traits.sync_points, work.expert, work.dispatcher, work.exchange_overlap),
                       traits.fused_routing},
                      work.graphs, host),
        host);
    const double beside = (work.gathers_overlap ? gathers : 0) + (work.exchange_overlap ? exchange : 0);
    return overlapped_s(issued, beside, 1 + k[C::gather_power]) + (work.gathers_overlap ? 0 : gathers);
  };
  const double stage = layers(work.forward) + layers(work.backward);
  const double ends = k.seconds(work.ends.products) + work.ends.memory_s * k[C::memory] +
                      work.ends.tensor_s * k[C::network] * k[C::tensor];
  // The first and last stage have embedding and output projection in addition to their layers, or in place of some.
  const double layer = stage / work.stage_layers, all = layer * work.layers + ends;
  const double fullest = traits.balanced_stages ? std::max(ends, layer * std::ceil(all / layer / work.stages - 1e-9))
                         : work.ends_as_layers  ? std::max({stage, ends, all / work.stages})
                                                : stage + ends;
  // Time that fills and drains the pipeline: that of one microbatch, divided by the chunks (Narayanan et al. 2021).
  const double fill = std::max(0.0, all - fullest) / work.chunks / work.microbatches;
  const double hops = 1 + (work.stages - 1) / work.chunks / work.microbatches;
  return fullest + fill + k[C::network] * (work.send_s * hops + work.replicas_s * k[C::replicas]) +
         work.optimizer_s * k[C::optimizer] + k[C::step_s];
}

StepModel fit_steps(const std::vector<TimedStep>& all) {
  if (all.empty()) throw_usage("fit of step times: found no measurement, allowed at least one");
  const std::vector<TimedStep> steps = thinned(all);
  // Parameters: logarithms of the base, of each stack's factors, and of each GPU's factor.
  std::vector<Eigen::Index> own;  // index among a stack's parameters; -1 = no parameter
  own.reserve(kStepConstants);
  Eigen::Index per_stack = 0;
  for (const Known& known : kKnown) own.push_back(known.stack_spread > 0 ? per_stack++ : -1);
  std::map<std::string, Eigen::Index> stack_at, chip_at;
  std::map<std::string, double> members;
  for (const TimedStep& s : steps)
    stack_at.emplace(s.traits.stack, 0), chip_at.emplace(s.traits.chip, 0), members[s.group] += 1;
  const auto base = static_cast<Eigen::Index>(kStepConstants);
  Eigen::Index next = base;
  for (auto& [name, at] : stack_at) at = next, next += per_stack;
  for (auto& [name, at] : chip_at) at = next++;

  struct Place {
    Eigen::Index stack, gpu;
    double weight;
  };
  std::vector<Place> places;
  places.reserve(steps.size());
  for (const TimedStep& s : steps)
    places.push_back({stack_at.at(s.traits.stack), chip_at.at(s.traits.chip),
                      std::min(1.0, std::sqrt(kGroupWeight / members.at(s.group)))});
  const auto constants_at = [&](const Eigen::VectorXd& p, const Place& place) {
    StepConstants c;
    for (std::size_t i = 0; i < kStepConstants; ++i) {
      double log = p[static_cast<Eigen::Index>(i)] + (own[i] >= 0 ? p[place.stack + own[i]] : 0);
      if (i == static_cast<std::size_t>(StepConstant::products)) log += p[place.gpu];
      c.values[i] = kKnown[i].start * std::exp(std::clamp(log, -20.0, 10.0));
    }
    return c;
  };
  const auto rows = static_cast<Eigen::Index>(steps.size());
  const auto row_residual = [&](const Eigen::VectorXd& p, Eigen::Index i) {
    const TimedStep& s = steps[static_cast<std::size_t>(i)];
    const Place& place = places[static_cast<std::size_t>(i)];
    return place.weight *
           robust(std::log(step_seconds(*s.work, s.traits, constants_at(p, place)) / s.seconds) / kStepResidualScale);
  };
  // To differentiate, the solver changes one parameter at a time. Only its stack's or GPU's rows are computed anew
  // then.
  std::map<Eigen::Index, std::vector<Eigen::Index>> rows_of;  // of a stack's or GPU's first parameter
  for (Eigen::Index i = 0; i < rows; ++i) {
    const Place& place = places[static_cast<std::size_t>(i)];
    rows_of[place.stack].push_back(i), rows_of[place.gpu].push_back(i);
  }
  Eigen::VectorXd around, around_rows;
  const auto compute_rows = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    const Eigen::Index changed = around.size() == 0 ? next : (p.array() != around.array()).count();
    Eigen::Index which = 0;
    if (changed == 1) (p.array() != around.array()).maxCoeff(&which);
    if (changed == 1 && which >= base) {
      out.head(rows) = around_rows;
      for (const Eigen::Index i : std::prev(rows_of.upper_bound(which))->second) out[i] = row_residual(p, i);
      return;
    }
    for (Eigen::Index i = 0; i < rows; ++i) out[i] = row_residual(p, i);
    if (changed > 1) around = p, around_rows = out.head(rows);
  };
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    compute_rows(p, out);
    for (Eigen::Index i = 0; i < base; ++i) out[rows + i] = p[i] / kKnown[static_cast<std::size_t>(i)].spread;
    for (const auto& [name, at] : stack_at)
      for (std::size_t i = 0; i < kStepConstants; ++i)
        if (own[i] >= 0) out[rows + at + own[i]] = p[at + own[i]] / kKnown[i].stack_spread;
    for (const auto& [name, at] : chip_at) out[rows + at] = p[at] / kChipSpread;
  };
  // Starts from the typical constants, not from a fit to more steps: data that is left out must not decide which
  // minimum is found.
  const Eigen::VectorXd p = least_squares(residuals, rows + next, Eigen::VectorXd::Zero(next));

  StepModel::Logs typical;
  for (std::size_t i = 0; i < kStepConstants; ++i)
    typical[i] = std::log(kKnown[i].start) + p[static_cast<Eigen::Index>(i)];
  std::map<std::string, StepModel::Logs> stacks;
  for (const auto& [name, at] : stack_at)
    for (std::size_t i = 0; i < kStepConstants; ++i) stacks[name][i] = own[i] >= 0 ? p[at + own[i]] : 0;
  std::map<std::string, double> chips;
  for (const auto& [name, at] : chip_at) chips[name] = p[at];
  return {typical, std::move(stacks), std::move(chips)};
}

}  // namespace wt
