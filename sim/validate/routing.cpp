#include "sim/validate/routing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "configs/spec/support/error.hpp"
#include "sim/cost/fit/fit.hpp"
#include "sim/validate/routed_case.hpp"
#include "sim/validate/routed_step.hpp"

namespace wt {
namespace {

struct Sample {
  const PlacedStep* row = nullptr;
  std::string group;
  RoutedCase given;
  RoutedStep::Seconds work, balanced;  ///< without the stack's part

  bool priced() const { return given.reason.empty(); }
  bool near() const { return given.basis <= RoutedBasis::other_model; }
  bool own_shape() const { return given.basis != RoutedBasis::other_shape; }
};

class Pricer {
 public:
  Pricer(const RoutedContext& context, const ItemTimes& gpus, const CollectiveEstimator& fabric)
      : context_(context), gpus_(gpus), fabric_(fabric) {}

  Sample sample(const PlacedStep& row, RoutingLeftOut left_out, Hidden hidden = Hidden::nothing) {
    Sample s;
    s.row = &row;
    s.given = routed_case(row, context_, hidden);
    s.group = left_out == RoutingLeftOut::model ? s.given.model : s.given.model + ", " + row.dataset;
    if (!s.priced()) return s;
    try {
      Priced& priced = priced_[{s.given.model, s.own_shape()}];
      if (!priced.step) {
        priced.run = s.given.setup.run;
        priced.step = std::make_unique<RoutedStep>(priced.run, gpus_, fabric_);
      }
      const auto [seconds, fresh] = priced.seconds.try_emplace(s.given.recording);
      if (fresh) seconds->second = {priced.step->seconds(s.given.shares), priced.step->balanced()};
      std::tie(s.work, s.balanced) = seconds->second;
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;
      s.given.unknown = "no price";
      s.given.reason = e.what();
    }
    return s;
  }

 private:
  struct Priced {
    RunRow run;
    std::unique_ptr<RoutedStep> step;
    std::map<std::pair<std::string, std::string>, std::pair<RoutedStep::Seconds, RoutedStep::Seconds>>
        seconds;  ///< by recording
  };
  const RoutedContext& context_;
  const ItemTimes& gpus_;
  const CollectiveEstimator& fabric_;
  std::map<std::pair<std::string, bool>, Priced> priced_;  ///< by model, and whether the shape is its own
};

/// Median of measured over priced outside the sample's group, of near rows; of a far one, over far rows of its kind
/// where other groups have some, as who ran them is unknown to the same degree. Nothing without such rows.
std::optional<double> stack_constant(const std::vector<Sample>& samples, const Sample& of,
                                     RoutedStep::Seconds Sample::*which) {
  std::vector<double> near, alike;
  for (const Sample& s : samples) {
    if (!s.priced() || s.group == of.group) continue;
    const double factor = s.row->seconds / (s.*which).all;
    if (s.near()) near.push_back(factor);
    if (!of.near() && s.given.basis == of.given.basis) alike.push_back(factor);
  }
  if (alike.empty()) alike = near;
  if (alike.empty()) return std::nullopt;
  return quantile(alike, 0.5);
}

/// Every measurement once: what stands in both counts as one.
std::vector<Sample> samples_of(const std::vector<PlacedStep>& rows, const std::vector<PlacedStep>& reference,
                               Pricer& pricer, RoutingLeftOut left_out) {
  std::vector<Sample> samples;
  std::set<std::tuple<std::string, std::string, std::string, double, double>> seen;
  for (const std::vector<PlacedStep>* from : {&rows, &reference})
    for (const PlacedStep& row : *from)
      if (seen.insert({row.dataset, row.method, row.model, row.aux_loss, row.seconds}).second || from == &rows)
        samples.push_back(pricer.sample(row, left_out));
  return samples;
}

Judged judged(const Sample& s, const std::vector<Sample>& samples) {
  Judged j;
  j.line = s.row->line;
  j.choice = fmt::format("{}, {}, balancing loss {}", s.row->model, s.row->dataset, s.row->aux_loss);
  j.alternative = s.row->method;
  j.name = j.choice + ", " + j.alternative;
  j.group = s.group;
  j.regime = s.priced() ? regime_of(s.given.basis) : s.given.unknown;
  j.measured = s.row->seconds;
  j.assumed = s.given.assumed;
  j.forecast.reason = s.given.reason;
  const auto stack = stack_constant(samples, s, &Sample::work);
  const auto even = stack_constant(samples, s, &Sample::balanced);
  if (s.priced() && !stack) j.forecast.reason = "no other group to find the stack's constant on";
  if (j.forecast.reason.empty()) {
    j.forecast.value = *stack * s.work.all;
    j.baseline.value = *even * s.balanced.all;
    j.baseline.evidence = only(Evidence::assumed);
    const double assumed = !s.own_shape() ? 1 : s.given.basis == RoutedBasis::recorded ? 0 : s.work.routed / s.work.all;
    j.forecast.evidence[static_cast<std::size_t>(Evidence::published)] = 1 - assumed;
    j.forecast.evidence[static_cast<std::size_t>(Evidence::assumed)] = assumed;
  }
  j.baseline.reason = j.forecast.reason;
  return j;
}

/// How far assumptions carry, from rows that need none: what they would be off by if of their model no loads, or no
/// shape, either, were known.
void add_unknown(const std::vector<Sample>& samples, Pricer& pricer, RoutingLeftOut left_out,
                 std::vector<Judged>& out) {
  std::vector<Sample> known;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(known),
               [](const Sample& s) { return s.priced() && s.given.basis <= RoutedBasis::other_setting; });
  for (const auto& [hidden, basis] :
       {std::pair{Hidden::loads, RoutedBasis::other_experts}, std::pair{Hidden::shape, RoutedBasis::other_shape}})
    for (const Sample& s : known)
      if (const Sample unknown = pricer.sample(*s.row, left_out, hidden); unknown.given.basis == basis)
        out.push_back(judged(unknown, known));
}

/// Rows of other experts or another shape are off by as much as the unknown ones of that regime, and say nothing of
/// those that are recorded; and no assumption makes an interval narrower than the widest of recorded rows.
void add_routing_intervals(std::vector<Judged>& rows, const std::vector<Judged>& unknown, Forecast Judged::*which) {
  const std::string recorded = regime_of(RoutedBasis::recorded), experts = regime_of(RoutedBasis::other_experts),
                    shape = regime_of(RoutedBasis::other_shape);
  const auto add_to = [&](const auto& wanted) {
    std::vector<Judged> pool;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(pool), wanted);
    std::copy_if(unknown.begin(), unknown.end(), std::back_inserter(pool), wanted);
    add_intervals(pool, which);
    auto from = pool.begin();
    for (Judged& row : rows)
      if (wanted(row)) row.*which = (*from++).*which;
  };
  add_to([&](const Judged& j) { return j.regime != experts && j.regime != shape; });
  add_to([&](const Judged& j) { return j.regime == experts; });
  add_to([&](const Judged& j) { return j.regime == shape; });
  double low = 1, high = 1;  // of a prediction
  for (const Judged& j : rows)
    if (const Forecast& f = j.*which; f.value && j.regime == recorded)
      low = std::min(low, f.low / *f.value), high = std::max(high, f.high / *f.value);
  for (Judged& j : rows)
    if (Forecast& f = j.*which; f.value && j.regime != recorded)
      f.low = std::min(f.low, low * *f.value), f.high = std::max(f.high, high * *f.value);
}

}  // namespace

std::vector<Judged> judge_routing(const std::vector<PlacedStep>& rows, const std::vector<PlacedStep>& reference,
                                  const RoutedContext& context, const ItemTimes& gpus,
                                  const CollectiveEstimator& fabric, RoutingLeftOut left_out) {
  Pricer pricer(context, gpus, fabric);
  const std::vector<Sample> samples = samples_of(rows, reference, pricer, left_out);
  std::vector<Judged> out;
  for (const Sample& s : samples) out.push_back(judged(s, samples));
  std::vector<Judged> unknown;
  add_unknown(samples, pricer, left_out, unknown);
  add_routing_intervals(out, unknown, &Judged::forecast);  // which know the errors on the reference, too
  add_routing_intervals(out, unknown, &Judged::baseline);
  out.resize(rows.size());
  return out;
}

}  // namespace wt
