#include "sim/validate/routing.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "configs/spec/error.hpp"
#include "sim/machine/fit.hpp"
#include "sim/validate/routed_step.hpp"

namespace wt {
namespace {

/// What was wrong with the tables beside: the first of it.
std::string also(const std::vector<std::string>& refused) {
  if (refused.empty()) return "";
  return fmt::format("; {} lines beside were not taken, the first: {}", refused.size(), refused.front());
}

struct Loads {
  const FullestShares* shares = nullptr;  ///< none: `reason` says why
  std::string regime, reason;
  bool recorded = false;  ///< on this model, data set and loss
};

Loads loads_of(const PlacedStep& row, const RoutedSetup& setup, const RoutedContext& context) {
  const auto own = context.loads.find({row.model, row.method});
  if (own != context.loads.end()) {
    const bool same = row.dataset == setup.loads_dataset && row.aux_loss == setup.loads_aux_loss;
    return {&own->second, same ? "loads recorded" : "loads assumed: recorded on another data set or loss", "", same};
  }
  for (const auto& [key, shares] : context.loads) {
    const auto& [model, method] = key;
    const auto other = context.setups.find(model);
    if (method == row.method && other != context.setups.end() &&
        other->second.run.model.experts == setup.run.model.experts &&
        other->second.run.model.top_k == setup.run.model.top_k && other->second.run.ep == setup.run.ep)
      return {&shares, "loads assumed: recorded on another model", "", false};
  }
  std::set<std::string> methods;
  for (const auto& [key, shares] : context.loads) methods.insert(key.second);
  return {nullptr, "no loads",
          fmt::format("no rank loads of method '{}' for {} experts, top {}; recorded are {}", row.method,
                      setup.run.model.experts, setup.run.model.top_k, fmt::join(methods, ", ")) +
              also(context.refused),
          false};
}

struct Sample {
  const PlacedStep* row = nullptr;
  std::string group;
  Loads loads;
  RoutedStep::Seconds work, balanced;  ///< without the stack's part
};

class Pricer {
 public:
  Pricer(const RoutedContext& context, const GpuTimes& gpus, const RunFabric& fabric)
      : context_(context), gpus_(gpus), fabric_(fabric) {}

  Sample sample(const PlacedStep& row, RoutingLeftOut left_out) {
    Sample s;
    s.row = &row;
    s.group = left_out == RoutingLeftOut::model ? row.model : row.model + ", " + row.dataset;
    const auto setup = context_.setups.find(row.model);
    if (!row.unusable.empty()) {
      s.loads.regime = "unusable rows";
      s.loads.reason = row.unusable;
    } else if (setup == context_.setups.end()) {
      s.loads.regime = "no shape";
      s.loads.reason = fmt::format("no shape and layout of model '{}'; columns as in routing_setups.csv", row.model) +
                       also(context_.refused);
    } else if (!data_sheet(setup->second.run.gpu)) {
      s.loads.regime = "no data sheet";
      s.loads.reason = fmt::format("no data sheet of '{}'", setup->second.run.gpu);
    } else {
      s.loads = loads_of(row, setup->second, context_);
    }
    if (!s.loads.shares) return s;
    try {
      auto& step = steps_[row.model];
      if (!step) step = std::make_unique<RoutedStep>(setup->second.run, gpus_, fabric_);
      const auto known = seconds_.find({row.model, s.loads.shares});
      if (known == seconds_.end()) {
        std::tie(s.work, s.balanced) = seconds_[{row.model, s.loads.shares}] = {step->seconds(*s.loads.shares),
                                                                                step->balanced()};
      } else {
        std::tie(s.work, s.balanced) = known->second;
      }
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;
      s.loads = {nullptr, "no price", e.what(), false};
    }
    return s;
  }

 private:
  using Both = std::pair<RoutedStep::Seconds, RoutedStep::Seconds>;
  const RoutedContext& context_;
  const GpuTimes& gpus_;
  const RunFabric& fabric_;
  std::map<std::string, std::unique_ptr<RoutedStep>> steps_;              ///< by model
  std::map<std::pair<std::string, const FullestShares*>, Both> seconds_;  ///< by model and loads
};

/// Median of measured over priced outside a group; nothing without such rows.
std::optional<double> stack_constant(const std::vector<Sample>& samples, const std::string& group,
                                     RoutedStep::Seconds Sample::*which) {
  std::vector<double> factors;
  for (const Sample& s : samples)
    if (s.loads.shares && s.group != group) factors.push_back(s.row->seconds / (s.*which).all);
  if (factors.empty()) return std::nullopt;
  return quantile(factors, 0.5);
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
  j.regime = s.loads.regime;
  j.measured = s.row->seconds;
  j.forecast.reason = s.loads.reason;
  const auto stack = stack_constant(samples, s.group, &Sample::work);
  const auto even = stack_constant(samples, s.group, &Sample::balanced);
  if (s.loads.shares && !stack) j.forecast.reason = "no other group to find the stack's constant on";
  if (j.forecast.reason.empty()) {
    j.forecast.value = *stack * s.work.all;
    j.baseline.value = *even * s.balanced.all;
    j.baseline.evidence = only(Evidence::assumed);
    const double assumed = s.loads.recorded ? 0 : s.work.routed / s.work.all;
    j.forecast.evidence[static_cast<std::size_t>(Evidence::published)] = 1 - assumed;
    j.forecast.evidence[static_cast<std::size_t>(Evidence::assumed)] = assumed;
  }
  j.baseline.reason = j.forecast.reason;
  return j;
}

}  // namespace

std::vector<Judged> judge_routing(const std::vector<PlacedStep>& rows, const std::vector<PlacedStep>& reference,
                                  const RoutedContext& context, const GpuTimes& gpus, const RunFabric& fabric,
                                  RoutingLeftOut left_out) {
  Pricer pricer(context, gpus, fabric);
  const std::vector<Sample> samples = samples_of(rows, reference, pricer, left_out);
  std::vector<Judged> out;
  for (const Sample& s : samples) out.push_back(judged(s, samples));
  add_intervals(out, &Judged::forecast);  // which know the errors on the reference, too
  add_intervals(out, &Judged::baseline);
  out.resize(rows.size());
  return out;
}

}  // namespace wt
