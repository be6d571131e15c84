// Constants for the difference between a training framework's step and benchmarks of kernels and collectives. There are
// eighteen, each with a meaning, the same for every run. A stack differs from the typical one by factors on some
// constants, a chip by a factor on products. All are fitted together on published steps (sim/fit/step_fit.hpp). Priors
// keep factors near 1, so that a stack or GPU without measurements gets the typical constants.
#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/stack.hpp"
#include "sim/cost/host/host_time.hpp"
#include "sim/cost/kernels/item_times.hpp"

namespace wt {

enum class StepConstant : std::size_t {
  products,            ///< matrix products, over the wave model
  attention,           ///< attention kernels, over benchmarks of the library
  memory,              ///< other kernels, over benchmarks of such kernels
  fp8,                 ///< products over the wave model at their rate, for each halving from 16 bits
  item_s,              ///< host, to launch one work item
  call_s,              ///< host, to launch one collective of a tensor group
  host_power,          ///< HostConstants::power - 1
  gather_power,        ///< power - 1 with which gathers overlap
  network,             ///< collectives, over their benchmarks
  tensor,              ///< exposed part of tensor groups' collectives
  exchange,            ///< exposed part of all-to-alls of rows, and of exchanges of keys and values
  once_exchange,       ///< the same for exchanges that send a token once to each place (DeepEP, HybridEP)
  routing_s,           ///< host, to route the rows of a layer once (HostConstants)
  without_wait,        ///< share of routing_s if the host does not wait for the number of rows
  replicas,            ///< exposed part of communication that runs once a step
  optimizer,           ///< optimizer update, over the time of its bytes
  step_s,              ///< once a step: loss, logging, data
  pipelined_tensor_s,  ///< tensor collective, per rank, while waiting for stages on other nodes (nanotron)
  count
};
constexpr std::size_t kStepConstants = static_cast<std::size_t>(StepConstant::count);
const char* name_of(StepConstant constant);

/// Values of all constants for one stack and GPU.
struct StepConstants {
  std::array<double, kStepConstants> values{};
  double operator[](StepConstant c) const { return values[static_cast<std::size_t>(c)]; }
  HostConstants host() const;
  /// Seconds of products, from their times by the wave model.
  double seconds(const ProductTime& products) const {
    const double halved = (*this)[StepConstant::fp8];
    return (*this)[StepConstant::products] * (products.wide_s + halved * (products.fp8_s + halved * products.fp4_s));
  }
};

/// Traits of the stack and the GPU that run a step.
struct StepTraits {
  std::string stack, chip;
  bool balanced_stages = false;  ///< stages with embedding or output projection have fewer layers
  AttentionKernels attention = AttentionKernels::unnamed;
  std::string grouped_products = {};           ///< StackSpec::grouped_products
  std::map<std::string, double> factors = {};  ///< StackSpec::step
  bool separate_reduce_group = false;          ///< used by the replay only
  SyncPoints sync_points = SyncPoints::experts;
  bool fused_routing = false;
  bool by_data_sheet = false;  ///< a GPU that only a cluster file describes
};

/// Traits of a stack on a GPU. `gpu`: its name in a table or cluster file.
StepTraits traits_of(const StackSpec& stack, const std::string& gpu);

/// The constants of every stack and chip. sim/fit makes them; configs/constants/steps.json keeps them.
class StepModel {
 public:
  using Logs = std::array<double, kStepConstants>;
  StepModel() = default;
  /// `base`: logarithms of the typical stack's constants; `stacks`: of each stack's factors on them; `chips`: of each
  /// chip's factor on products.
  StepModel(const Logs& base, std::map<std::string, Logs> stacks, std::map<std::string, double> chips)
      : base_(base), stacks_(std::move(stacks)), chips_(std::move(chips)) {}

  StepConstants constants(const StepTraits& traits) const;
  bool knows_stack(const std::string& stack) const { return stacks_.count(stack) > 0; }
  bool knows_chip(const std::string& chip) const { return chips_.count(chip) > 0; }
  /// A stack's fitted factors on the typical constants, by name of kStackFactors; 1 for a stack without measurements.
  std::map<std::string, double> factors(const std::string& stack) const;
  std::vector<std::string> stacks() const;  ///< with measured steps

 private:
  friend void to_json(nlohmann::json& json, const StepModel& model);
  friend void from_json(const nlohmann::json& json, StepModel& model);

  Logs base_{};
  std::map<std::string, Logs> stacks_;
  std::map<std::string, double> chips_;
};
void to_json(nlohmann::json& json, const StepModel& model);
void from_json(const nlohmann::json& json, StepModel& model);

}  // namespace wt
