#include "sim/cost/stacks/step_constants.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/files/data_sheet.hpp"

namespace wt {
namespace {

constexpr std::array<const char*, kStepConstants> kNames = {
    "products",   "attention",    "memory",   "fp8",       "item_s",   "call_s",
    "host_power", "gather_power", "network",  "tensor",    "exchange", "once_exchange",
    "routing_s",  "without_wait", "replicas", "optimizer", "step_s",   "pipelined_tensor_s"};

/// Kernels of a GPU whose design nobody has measured reach less of its data sheet than those of the GPU that it is
/// like. Chosen so that `validate runs --as-data-sheet H100-SXM=A100` has no bias; B200 and GB200 had no part in it.
constexpr double kFirstKernels = 1.35;

/// GPUs of one design that differ only in their memory (H100, H200, GH200) compute alike.
std::string chip_of(const std::string& gpu) {
  const auto sheet = data_sheet(gpu);
  return sheet ? fmt::format("generation {}, {} processors, {:.0f} TFLOP/s", sheet->generation, sheet->processors,
                             sheet->flops * 1e-12)
               : gpu;
}

}  // namespace

const char* name_of(StepConstant constant) { return kNames[static_cast<std::size_t>(constant)]; }

StepTraits traits_of(const StackSpec& stack, const std::string& gpu) {
  return {.stack = stack.name,
          .chip = chip_of(gpu),
          .balanced_stages = stack.balanced_stages,
          .attention = stack.attention,
          .grouped_products = stack.grouped_products,
          .factors = stack.step,
          .separate_reduce_group = stack.separate_reduce_group,
          .sync_points = stack.sync_points,
          .fused_routing = stack.fused_routing,
          .by_data_sheet = data_sheet(gpu) && !built_in_data_sheet(gpu)};
}

HostConstants StepConstants::host() const {
  using C = StepConstant;
  return {(*this)[C::item_s], (*this)[C::call_s], (*this)[C::routing_s], (*this)[C::without_wait],
          1 + (*this)[C::host_power]};
}

std::map<std::string, double> StepModel::factors(const std::string& stack) const {
  const auto found = stacks_.find(stack);
  std::map<std::string, double> out;
  for (std::size_t i = 0; i < kStepConstants; ++i)
    if (std::ranges::count(kStackFactors, std::string(kNames[i])) > 0)
      out[kNames[i]] = found == stacks_.end() ? 1 : std::exp(found->second[i]);
  return out;
}

std::vector<std::string> StepModel::stacks() const {
  std::vector<std::string> out;
  for (const auto& [name, logs] : stacks_) out.push_back(name);
  return out;
}

StepConstants StepModel::constants(const StepTraits& traits) const {
  Logs logs = base_;
  const auto fitted = stacks_.find(traits.stack);
  for (std::size_t i = 0; i < kStepConstants; ++i) {
    if (const auto given = traits.factors.find(kNames[i]); given != traits.factors.end())
      logs[i] += std::log(given->second);
    else if (fitted != stacks_.end())
      logs[i] += fitted->second[i];
  }
  if (const auto gpu = chips_.find(traits.chip); gpu != chips_.end())
    logs[static_cast<std::size_t>(StepConstant::products)] += gpu->second;
  else if (traits.by_data_sheet)
    for (const StepConstant kernel : {StepConstant::products, StepConstant::attention, StepConstant::memory})
      logs[static_cast<std::size_t>(kernel)] += std::log(kFirstKernels);
  StepConstants out;
  for (std::size_t i = 0; i < kStepConstants; ++i) out.values[i] = std::exp(logs[i]);
  return out;
}

/// Constants by name, so that the file of another program version, with other constants, is refused.
void to_json(nlohmann::json& json, const StepModel& model) {
  const auto named = [](const StepModel::Logs& logs) {
    nlohmann::json out;
    for (std::size_t i = 0; i < kStepConstants; ++i) out[kNames[i]] = logs[i];
    return out;
  };
  json = {{"base", named(model.base_)}, {"stacks", nlohmann::json::object()}, {"chips", model.chips_}};
  for (const auto& [stack, logs] : model.stacks_) json["stacks"][stack] = named(logs);
}

void from_json(const nlohmann::json& json, StepModel& model) {
  const auto logs = [](const nlohmann::json& named) {
    StepModel::Logs out;
    for (std::size_t i = 0; i < kStepConstants; ++i) named.at(kNames[i]).get_to(out[i]);
    return out;
  };
  model.base_ = logs(json.at("base"));
  model.stacks_.clear();
  for (const auto& [stack, named] : json.at("stacks").items()) model.stacks_[stack] = logs(named);
  json.at("chips").get_to(model.chips_);
}

}  // namespace wt
