#include "sim/cost/memory/reserved_memory.hpp"

#include <fmt/core.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "configs/spec/support/error.hpp"
#include "sim/cost/fit/evenly.hpp"
#include "sim/cost/fit/least_squares.hpp"
#include "sim/cost/memory/run_program.hpp"

namespace wt {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kWorkspacePrior_bytes = 0.1 * kGiB;  // cuBLAS keeps 32 MiB a stream on Hopper and Blackwell
constexpr double kFragmentationPrior = 0.15;
constexpr double kPriorSpread = 1;         // of the constants' logarithms
constexpr double kAllocatedScale = 0.005;  // tensors are known exactly, the allocator's blocks are not

bool formula(MemoryOf kind) { return kind == MemoryOf::states || kind == MemoryOf::activations; }

/// Of a source that measured one model alone.
std::string layout_group(const RunRow& run) { return fmt::format("{} | tp {} pp {}", run.group, run.tp, run.pp); }

double log_error(double measured, double predicted) { return std::log(measured / predicted); }

}  // namespace

MemoryConstants fit_memory(const std::vector<const MemorySample*>& samples, MemoryOf kind) {
  if (formula(kind)) return {};
  const bool fragmented = kind == MemoryOf::peak_reserved;
  const auto constants_of = [&](const Eigen::VectorXd& p) {
    return MemoryConstants{kWorkspacePrior_bytes * std::exp(std::clamp(p[0], -20.0, 20.0)),
                           fragmented ? 1 + kFragmentationPrior * std::exp(std::clamp(p[1], -20.0, 20.0)) : 1};
  };
  const auto rows = static_cast<Eigen::Index>(samples.size());
  const Eigen::Index count = fragmented ? 2 : 1;
  const double scale = fragmented ? kResidualScale : kAllocatedScale;
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    const MemoryConstants c = constants_of(p);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const MemorySample& s = *samples[static_cast<std::size_t>(i)];
      out[i] = robust(log_error(s.measured, c.bytes(s.live)) / scale);
    }
    out.tail(count) = p / kPriorSpread;
  };
  return constants_of(least_squares(residuals, rows + count, Eigen::VectorXd::Zero(count)));
}

MemoryForecast as_live(const LiveMemory& live) {
  return {live.peak(), live.peak(), live.peak(), only(Evidence::derived)};
}

MemoryModel::MemoryModel(std::vector<MemorySample> samples) {
  for (MemorySample& sample : samples)
    if (said(sample.of)) known_.push_back({std::move(sample)});
  std::map<std::pair<MemoryOf, std::string>, MemoryConstants> without;
  for (const Known& k : known_)
    if (const auto key = std::pair{k.sample.of, k.sample.group}; !without.count(key))
      without[key] = fit(k.sample.of, k.sample.group).constants;
  for (Known& k : known_) {
    const MemoryConstants& c = without.at({k.sample.of, k.sample.group});
    k.log_error = log_error(k.sample.measured, c.bytes(k.sample.live));
    if (k.sample.taken_for_fsdp) k.log_error_for_fsdp = log_error(k.sample.measured, c.bytes(*k.sample.taken_for_fsdp));
  }
  allocated_ = fit(MemoryOf::peak_allocated, "");
  reserved_ = fit(MemoryOf::peak_reserved, "");
}

std::string MemoryModel::group_of(const RunRow& run) const {
  const std::string layout = layout_group(run);
  const bool alone =
      std::any_of(known_.begin(), known_.end(), [&](const Known& k) { return k.sample.group == layout; });
  return alone ? layout : run.group;
}

MemoryModel MemoryModel::without(const std::string& group) const {
  MemoryModel out;
  for (const Known& k : known_)
    if (k.sample.group != group) out.known_.push_back(k);
  if (out.known_.size() == known_.size()) return *this;
  out.allocated_ = out.fit(MemoryOf::peak_allocated, "");
  out.reserved_ = out.fit(MemoryOf::peak_reserved, "");
  return out;
}

MemoryModel::Fitted MemoryModel::fit(MemoryOf kind, const std::string& without) const {
  std::vector<const MemorySample*> samples;
  for (const Known& k : known_)
    if (k.sample.of == kind && k.sample.group != without) samples.push_back(&k.sample);
  return {fit_memory(samples, kind), !samples.empty()};
}

std::vector<LogError> MemoryModel::errors(MemoryOf kind, bool described) const {
  std::vector<LogError> own, all;
  for (const Known& k : known_) {
    if (!described) {
      if (k.log_error_for_fsdp) all.push_back({k.sample.stack, *k.log_error_for_fsdp});
      continue;
    }
    all.push_back({k.sample.group, k.log_error});
    if (k.sample.of == kind) own.push_back(all.back());
  }
  return own.size() < kFewestErrors ? all : own;
}

MemoryForecast MemoryModel::of(MemoryOf kind, const LiveMemory& live, bool described) const {
  if (kind == MemoryOf::peak) {
    const MemoryForecast least = of(MemoryOf::peak_allocated, live, described),
                         most = of(MemoryOf::peak_reserved, live, described);
    return {std::sqrt(least.bytes * most.bytes), std::min(least.low, most.low), std::max(least.high, most.high),
            most.evidence};
  }
  MemoryForecast out;
  double low = 0, high = 0;
  if (formula(kind)) {
    out.bytes = kind == MemoryOf::states ? live.kept : live.dynamic;
    out.evidence = only(Evidence::derived);
  } else {
    const Fitted& f = kind == MemoryOf::peak_reserved ? reserved_ : allocated_;
    out.bytes = f.constants.bytes(live);
    const double by_shape = std::min(1.0, live.peak() / out.bytes);
    out.evidence = only(described ? Evidence::derived : Evidence::assumed, by_shape);
    out.evidence[static_cast<std::size_t>(f.measured ? Evidence::published : Evidence::assumed)] += 1 - by_shape;
    std::tie(low, high) = log_interval(errors(kind, described));
  }
  out.low = out.bytes * std::min(1 - kShapeDoubt, std::exp(low));
  out.high = out.bytes * std::max(1 + kShapeDoubt, std::exp(high));
  return out;
}

std::vector<MemorySample> memory_samples(const std::vector<RunRow>& rows, const std::vector<StackSpec>& stacks) {
  std::vector<MemorySample> samples;
  std::vector<const RunRow*> runs;
  std::map<std::string, std::vector<std::size_t>> of_stack;
  for (const RunRow& row : rows) {
    if (!row.unusable.empty() || row.memory_of == MemoryOf::nothing || formula(row.memory_of)) continue;
    const StackSpec stack = stack_of(row.framework, stacks);
    if (stack.frameworks.empty()) continue;  // which parts there are is not known
    try {
      samples.push_back(
          {row.group, stack.name, row.memory_of, live_memory(run_program(row, stack), stack.memory), row.memory_bytes});
    } catch (const Error& error) {
      if (error.code() != Code::usage) throw;
      continue;  // no layout of ours
    }
    runs.push_back(&row);
    of_stack[stack.name].push_back(samples.size() - 1);
  }
  for (const auto& [name, members] : of_stack)
    for (const std::size_t i : evenly(members, MemoryModel::kOfStack)) {
      const StackSpec unknown;
      samples[i].taken_for_fsdp = live_memory(run_program(*runs[i], unknown), unknown.memory);
    }
  std::map<std::string, std::set<std::string>> models;  // by source
  for (const RunRow* run : runs) models[run->source].insert(run->group);
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (models[runs[i]->source].size() == 1) samples[i].group = layout_group(*runs[i]);
  return samples;
}

}  // namespace wt
