#include "sim/validate/memory.hpp"

#include <fmt/core.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "configs/spec/support/error.hpp"
#include "sim/cost/fit/evenly.hpp"
#include "sim/cost/fit/fit.hpp"
#include "sim/cost/fit/least_squares.hpp"

namespace wt {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kWorkspacePrior_bytes = 0.1 * kGiB;  // cuBLAS keeps 32 MiB a stream on Hopper and Blackwell
constexpr double kFragmentationPrior = 0.15;
constexpr double kPriorSpread = 1;  // of the constants' logarithms
constexpr double kResidualScale = 0.1;
// What one wrong fact about a run costs, however well its source's other runs agree: 16 instead of 8 key-value heads in
// a model called Llama-3.1-405B.
constexpr double kShapeDoubt = 0.01;
constexpr double kAllocatedScale = 0.005;  // tensors are known exactly, the allocator's blocks are not

constexpr const char* kUndescribed = "peak, stack not described";
constexpr std::size_t kMostOfStack = 24;  // samples by which it is judged how far typical facts carry

bool formula(MemoryOf of) { return of == MemoryOf::states || of == MemoryOf::activations; }

std::string regime_of(MemoryOf of) {
  switch (of) {
    case MemoryOf::peak_allocated:
      return "peak allocated";
    case MemoryOf::peak_reserved:
      return "peak reserved";
    case MemoryOf::peak:
      return "peak, of what is not said";
    case MemoryOf::states:
      return "weights and optimizer of the layers";
    case MemoryOf::activations:
      return "activations of the layers";
    case MemoryOf::nothing:
      break;
  }
  return "not usable";
}

bool described(const MemorySample& s) { return !s.stack.frameworks.empty(); }

double parameters_a_gpu(const RunRow& row) {
  return static_cast<double>(row.model.total_parameters()) / static_cast<double>(row.tp * row.pp);
}

std::vector<MemorySample> samples_of(const std::vector<RunRow>& rows, const std::vector<StackSpec>& stacks,
                                     const std::string& named) {
  std::optional<StackSpec> given;
  if (!named.empty()) given = read_stack(named);
  std::vector<MemorySample> samples;
  for (const RunRow& row : rows) {
    if (row.unusable.empty() && row.memory_of == MemoryOf::nothing) continue;
    MemorySample s{&row, {}, row.group, regime_of(row.memory_of), given ? *given : stack_of(row.framework, stacks)};
    if (row.unusable.empty()) {
      s.memory = formula(row.memory_of) ? layer_memory(row, s.stack) : run_memory(row, s.stack);
      if (!described(s) && !formula(row.memory_of)) s.regime = kUndescribed;
    }
    samples.push_back(std::move(s));
  }
  return samples;
}

/// Where a kind of figure was measured of one model alone, its layouts are the groups.
void split_groups(std::vector<MemorySample>& rows, std::vector<MemorySample>& reference) {
  std::map<std::string, std::set<std::string>> models;
  for (const auto* samples : {&rows, &reference})
    for (const MemorySample& s : *samples)
      if (s.row->unusable.empty()) models[s.regime].insert(s.group);
  for (auto* samples : {&rows, &reference})
    for (MemorySample& s : *samples)
      if (models[s.regime].size() == 1) s.group += fmt::format(" | tp {} pp {}", s.row->tp, s.row->pp);
}

/// What is known of a regime without one group.
struct Left {
  MemoryConstants constants;
  double bytes_a_parameter = 0;
  bool measured = false;  ///< anything at all
};

Left without_group(const std::vector<const MemorySample*>& all, const MemorySample& of) {
  std::vector<const MemorySample*> others;
  std::vector<double> rates, rates_of_peaks;  // of this regime, and of whatever peaks where it has no other rows
  for (const MemorySample* s : all) {
    if (!s->row->unusable.empty() || s->group == of.group || formula(s->row->memory_of) != formula(of.row->memory_of))
      continue;
    const double rate = s->row->memory_bytes / parameters_a_gpu(*s->row);
    rates_of_peaks.push_back(rate);
    if (s->row->memory_of != of.row->memory_of) continue;
    rates.push_back(rate);
    if (described(*s)) others.push_back(s);  // of another stack it is not known which parts there are
  }
  if (rates.empty()) rates = rates_of_peaks;
  return {fit_memory(others, of.row->memory_of), rates.empty() ? 0 : quantile(rates, 0.5), !others.empty()};
}

/// Peaks of described stacks, of each as many: the errors of one that measured hundreds say no more of the next.
std::vector<const MemorySample*> described_peaks(const std::vector<const MemorySample*>& samples) {
  std::map<std::string, std::vector<const MemorySample*>> stacks;
  for (const MemorySample* s : samples)
    if (s->row->unusable.empty() && described(*s) && !formula(s->row->memory_of)) stacks[s->stack.name].push_back(s);
  std::vector<const MemorySample*> out;
  for (const auto& [name, members] : stacks)
    for (const MemorySample* s : evenly(members, kMostOfStack)) out.push_back(s);
  return out;
}

/// As if nothing were known of its stack: shows how far PyTorch's FSDP stands for others.
Judged as_undescribed(const MemorySample& s, const MemoryConstants& constants) {
  Judged j;
  j.group = s.stack.name;
  j.regime = kUndescribed;
  j.measured = s.row->memory_bytes;
  MemorySample unknown = s;
  unknown.memory = run_memory(*s.row, StackSpec{});
  j.forecast.value = predicted_bytes(unknown, constants);
  return j;
}

}  // namespace

double predicted_bytes(const MemorySample& sample, const MemoryConstants& constants) {
  if (sample.row->memory_of == MemoryOf::states) return sample.memory.states;
  if (sample.row->memory_of == MemoryOf::activations) return sample.memory.activations;
  return sample.memory.states + constants.fragmentation * sample.memory.dynamic() + constants.workspace_bytes;
}

MemoryConstants fit_memory(const std::vector<const MemorySample*>& samples, MemoryOf memory_of) {
  if (formula(memory_of)) return {};
  const bool fragmented = memory_of == MemoryOf::peak_reserved;
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
      out[i] = robust(std::log(predicted_bytes(s, c) / s.row->memory_bytes) / scale);
    }
    out.tail(count) = p / kPriorSpread;
  };
  return constants_of(least_squares(residuals, rows + count, Eigen::VectorXd::Zero(count)));
}

std::vector<Judged> judge_memory(const std::vector<RunRow>& rows, const std::vector<RunRow>& reference,
                                 const std::vector<StackSpec>& stacks, const std::string& stack) {
  std::vector<MemorySample> samples = samples_of(rows, stacks, stack), others = samples_of(reference, stacks, "");
  if (samples.empty())
    throw_error(Code::usage,
                "validate memory: found no row with a memory, needs at least one (column mem_gb, or a metric in GiB)");
  split_groups(samples, others);
  std::vector<const MemorySample*> all;
  for (const auto* from : {&samples, &others})
    for (const MemorySample& s : *from) all.push_back(&s);

  std::map<std::pair<std::string, std::string>, Left> known;
  const auto left_of = [&](const MemorySample& s) -> const Left& {
    const auto key = std::make_pair(regime_of(s.row->memory_of), s.group);
    if (!known.count(key)) known[key] = without_group(all, s);
    return known.at(key);
  };
  std::vector<Judged> judged;
  for (const MemorySample& s : samples) {
    Judged j;
    j.line = s.row->line;
    j.name = s.row->name;
    j.group = s.group;
    j.regime = s.regime;
    j.measured = s.row->memory_bytes;
    j.assumed = s.row->assumed;
    if (s.row->model.experts > 0 && s.row->ep > 1) j.assumed.emplace_back("as many rows on every expert rank");
    j.forecast.reason = j.baseline.reason = s.row->unusable;
    if (s.row->unusable.empty()) {
      const Left& left = left_of(s);
      const double bytes = predicted_bytes(s, left.constants);
      const double by_shape = std::min(1.0, predicted_bytes(s, {}) / bytes);
      j.forecast.value = bytes;
      j.forecast.evidence = only(s.regime == kUndescribed ? Evidence::assumed : Evidence::derived, by_shape);
      j.forecast.evidence[static_cast<std::size_t>(left.measured ? Evidence::published : Evidence::assumed)] +=
          1 - by_shape;
      if (left.bytes_a_parameter > 0) j.baseline.value = left.bytes_a_parameter * parameters_a_gpu(*s.row);
    }
    judged.push_back(std::move(j));
  }
  const auto undescribed = [](const Judged& j) { return j.regime == kUndescribed; };
  if (std::any_of(judged.begin(), judged.end(), undescribed))
    for (const MemorySample* s : described_peaks(all)) judged.push_back(as_undescribed(*s, left_of(*s).constants));
  add_intervals(judged, &Judged::forecast);
  for (Judged& j : judged) {
    if (!j.forecast.value || !j.regime.starts_with("peak")) continue;
    j.forecast.low = std::min(j.forecast.low, *j.forecast.value * (1 - kShapeDoubt));
    j.forecast.high = std::max(j.forecast.high, *j.forecast.value * (1 + kShapeDoubt));
  }
  judged.resize(samples.size());
  return judged;
}

}  // namespace wt
