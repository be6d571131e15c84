#include "sim/fit/memory_fit.hpp"

#include <fmt/core.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"
#include "sim/fit/row_program.hpp"
#include "sim/statistics/evenly.hpp"
#include "sim/statistics/least_squares.hpp"

namespace wt {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kWorkspacePrior_bytes = 0.1 * kGiB;  // cuBLAS keeps 32 MiB a stream on Hopper and Blackwell
constexpr double kFragmentationPrior = 0.15;
constexpr double kPriorSpread = 1;         // spread of the typical constants' logarithms
constexpr double kStackSpread = 0.1;       // spread of a stack's constants around the typical ones: a larger one
                                           // predicts left-out models worse
constexpr double kAllocatedScale = 0.005;  // relative error that counts as an outlier: tensors are known exactly, the
                                           // allocator's blocks are not

/// The group of a run whose source measured one model alone.
std::string layout_group(const RunRow& run) { return fmt::format("{} | tp {} pp {}", run.group, run.tp, run.pp); }

double log_error(double measured, double predicted) { return std::log(measured / predicted); }

}  // namespace

FittedMemory fit_memory(const std::vector<const MemorySample*>& samples, MemoryOf kind) {
  if (by_formula(kind)) return {};
  const bool fragmented = kind == MemoryOf::peak_reserved;
  std::map<std::string, Eigen::Index> first;  // index of a stack's parameters: log ratios to the typical constants
  const Eigen::Index each = fragmented ? 2 : 1;
  for (const MemorySample* s : samples) first.try_emplace(s->stack, 0);
  Eigen::Index count = each;
  for (auto& [stack, index] : first) index = std::exchange(count, count + each);
  const auto constants_of = [&](const Eigen::VectorXd& p, Eigen::Index stack) {
    const auto factor = [&](Eigen::Index i) {
      return std::exp(std::clamp(p[i] + (stack > 0 ? p[stack + i] : 0), -20.0, 20.0));
    };
    return MemoryConstants{kWorkspacePrior_bytes * factor(0), fragmented ? 1 + kFragmentationPrior * factor(1) : 1};
  };
  const auto rows = static_cast<Eigen::Index>(samples.size());
  const double scale = fragmented ? kResidualScale : kAllocatedScale;
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    std::map<std::string, MemoryConstants> by_stack;
    for (const auto& [stack, index] : first) by_stack[stack] = constants_of(p, index);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const MemorySample& s = *samples[static_cast<std::size_t>(i)];
      out[i] = robust(log_error(s.measured, by_stack.at(s.stack).bytes(s.live)) / scale);
    }
    out.segment(rows, each) = p.head(each) / kPriorSpread;
    out.tail(count - each) = p.tail(count - each) / kStackSpread;
  };
  const Eigen::VectorXd p = least_squares(residuals, rows + count, Eigen::VectorXd::Zero(count));
  FittedMemory out{constants_of(p, 0), {}};
  for (const auto& [stack, index] : first) out.by_stack[stack] = constants_of(p, index);
  return out;
}

MemoryModel::MemoryModel(std::vector<MemorySample> samples) {
  for (MemorySample& sample : samples)
    if (said(sample.of)) known_.push_back({std::move(sample)});
  std::map<std::tuple<MemoryOf, Without, std::string>, FittedMemory> fits;
  const auto fit_without = [&](MemoryOf kind, Without what, const std::string& name) {
    const auto key = std::tuple{kind, what, name};
    const auto found = fits.find(key);
    return found != fits.end() ? found->second : fits[key] = fit(kind, what, name);
  };
  for (Known& k : known_) {
    const MemorySample& s = k.sample;
    const MemoryConstants own = fit_without(s.of, Without::group, s.group).of(s.stack),
                          as_new = fit_without(s.of, Without::stack, s.stack).typical;
    k.log_error = log_error(s.measured, own.bytes(s.live));
    k.log_error_as_new = log_error(s.measured, as_new.bytes(s.live));
    if (s.taken_for_fsdp) k.log_error_taken_for_fsdp = log_error(s.measured, as_new.bytes(*s.taken_for_fsdp));
  }
  allocated_ = fit(MemoryOf::peak_allocated);
  reserved_ = fit(MemoryOf::peak_reserved);
}

std::string MemoryModel::group_of(const RunRow& run) const {
  const std::string layout = layout_group(run);
  const bool alone = std::ranges::any_of(known_, [&](const Known& k) { return k.sample.group == layout; });
  return alone ? layout : run.group;
}

MemoryModel MemoryModel::without(std::string MemorySample::*what, const std::string& name) const {
  std::vector<MemorySample> rest;
  for (const Known& k : known_)
    if (k.sample.*what != name) rest.push_back(k.sample);
  return rest.size() == known_.size() ? *this : MemoryModel(std::move(rest));
}

FittedMemory MemoryModel::fit(MemoryOf kind, Without what, const std::string& name) const {
  std::vector<const MemorySample*> samples;
  for (const Known& k : known_) {
    const bool out = what == Without::group   ? k.sample.group == name
                     : what == Without::stack ? k.sample.stack == name
                                              : false;
    if (k.sample.of == kind && !out) samples.push_back(&k.sample);
  }
  return fit_memory(samples, kind);
}

AllocatorConstants::Kind MemoryModel::kind_of(MemoryOf kind, const FittedMemory& fitted) const {
  std::map<std::string, std::vector<LogError>> own;
  std::vector<LogError> others, all, cells;  // cells: a stack's models, whose spread stacks with few models take
  for (const Known& k : known_) {
    const MemorySample& s = k.sample;
    all.push_back({s.stack, k.log_error_as_new});
    if (s.of != kind) continue;
    own[s.stack].push_back({s.group, k.log_error});
    cells.push_back({s.stack + "\n" + s.group, k.log_error});
    others.push_back({s.stack, k.log_error_as_new});
  }
  const bool one_stack =
      std::ranges::all_of(others, [&](const LogError& e) { return e.group == others.front().group; });
  AllocatorConstants::Kind out{fitted, {}, log_interval(one_stack || others.size() < kFewestErrors ? all : others)};
  for (const auto& [stack, errors] : own)
    if (errors.size() >= kFewestErrors) out.own[stack] = log_interval(errors, spreads_of(cells));
  return out;
}

AllocatorConstants MemoryModel::constants() const {
  std::vector<LogError> taken_for_fsdp;
  for (const Known& k : known_)
    if (k.log_error_taken_for_fsdp) taken_for_fsdp.push_back({k.sample.stack, *k.log_error_taken_for_fsdp});
  return {kind_of(MemoryOf::peak_allocated, allocated_), kind_of(MemoryOf::peak_reserved, reserved_),
          log_interval(taken_for_fsdp)};
}

std::vector<MemorySample> memory_samples(const std::vector<RunRow>& rows, const std::vector<StackSpec>& stacks) {
  std::vector<MemorySample> samples;
  std::vector<const RunRow*> runs;
  std::map<std::string, std::vector<std::size_t>> of_stack;
  for (const RunRow& row : rows) {
    if (!row.unusable.empty() || row.memory_of == MemoryOf::nothing || by_formula(row.memory_of)) continue;
    const StackSpec stack = stack_of(row.framework, stacks);
    if (stack.frameworks.empty()) continue;                                // the memory use of the stack is unknown
    if (row.ep > 1 && row.routing != RunRow::Routing::balanced) continue;  // the rows of a rank are unknown
    try {
      samples.push_back({row.group, stack.name, row.memory_of, live_memory(peak_program(row, stack), stack.memory),
                         row.memory_bytes});
    } catch (const Error& error) {
      if (error.code() != Code::usage) throw;
      continue;  // none of our layouts matches
    }
    samples.back().origin = row.origin;
    runs.push_back(&row);
    of_stack[stack.name].push_back(samples.size() - 1);
  }
  for (const auto& [name, members] : of_stack)
    for (const std::size_t i : evenly(members, MemoryModel::kOfStack)) {
      const StackSpec unknown;
      samples[i].taken_for_fsdp = live_memory(peak_program(*runs[i], unknown), unknown.memory);
    }
  std::map<std::string, std::set<std::string>> models;  // by source
  for (const RunRow* run : runs) models[run->source].insert(run->group);
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (models[runs[i]->source].size() == 1) samples[i].group = layout_group(*runs[i]);
  return samples;
}

OutsideMemory outside_memory(const std::vector<OutsideRow>& rows, const std::vector<StackSpec>& stacks) {
  std::map<std::tuple<std::string, std::string, bool>, std::vector<double>> by_origin;
  for (const OutsideRow& row : rows) {
    if (!row.unusable.empty()) continue;
    const StackSpec stack = stack_of(row.framework, stacks);
    by_origin[{row.origin, stack.name, row.alone()}].push_back(
        std::log(row.outside_bytes() / OutsideMemory::outside_relative(stack, row.gpus)));
  }
  std::vector<OutsideMemory::Known> known;
  known.reserve(by_origin.size());
  for (const auto& [key, logs] : by_origin)
    known.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), mean(logs)});
  return OutsideMemory(std::move(known));
}

StackMemories stack_memories(const PublishedTables& tables, const std::vector<StackSpec>& stacks,
                             const std::string& without) {
  std::vector<MemorySample> samples = memory_samples(tables.memory_runs, stacks);
  std::erase_if(samples, [&](const MemorySample& s) { return s.origin == without; });
  return {MemoryModel(std::move(samples)).constants(), outside_memory(tables.outside, stacks).without(without)};
}

}  // namespace wt
