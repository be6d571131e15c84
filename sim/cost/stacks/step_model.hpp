// Step time of a training framework: what a StepWork takes when its stack runs it. Eighteen constants, each with a
// meaning, the same for every run; a stack differs from the typical one by factors on some of them, a chip by one on
// its products. Fitted together, with priors that keep factors near 1, so that a stack or GPU never measured gets the
// typical ones.
//
//   layers = computation + blocking collectives, as the host issues them (host_time.hpp), overlapped with the gathers
//            of weights (overlap.hpp)
//   step   = microbatches of the fullest pipeline stage + bubble + what happens once a step
#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/host/host_time.hpp"
#include "sim/cost/stacks/step_work.hpp"

namespace wt {

enum class StepConstant : std::size_t {
  products,            ///< matrix products over what the wave model says
  attention,           ///< attention kernels over what benchmarks of the library say
  memory,              ///< other kernels over what benchmarks of such kernels say
  fp8,                 ///< products over the wave model at their rate, for each halving of 16 bits
  item_s,              ///< host, to launch one work item
  call_s,              ///< host, to launch one collective of a tensor group
  host_power,          ///< HostConstants::power - 1
  gather_power,        ///< power - 1 with which gathers overlap
  network,             ///< collectives over what their benchmarks say
  tensor,              ///< exposed part of tensor groups' collectives
  exchange,            ///< exposed part of all-to-alls of rows, and of exchanges of keys and values
  once_exchange,       ///< the same of exchanges that send a token once to each place (DeepEP, HybridEP)
  routing_s,           ///< host, to route the rows of a layer once (HostConstants)
  without_wait,        ///< of routing_s where the host does not wait for how many rows come
  replicas,            ///< exposed part of what moves once a step
  optimizer,           ///< update over what its bytes take
  step_s,              ///< once a step: loss, logging, data
  pipelined_tensor_s,  ///< a tensor collective, for each rank, while stages on other nodes are waited for (nanotron)
  count
};
constexpr std::size_t kStepConstants = static_cast<std::size_t>(StepConstant::count);
const char* name_of(StepConstant constant);

/// Values of all constants for one stack and GPU.
struct StepConstants {
  std::array<double, kStepConstants> values{};
  double operator[](StepConstant c) const { return values[static_cast<std::size_t>(c)]; }
  HostConstants host() const;
  /// Of products, whose time is that of the wave model.
  double seconds(const ProductTime& products) const {
    const double halved = (*this)[StepConstant::fp8];
    return (*this)[StepConstant::products] * (products.wide_s + halved * (products.fp8_s + halved * products.fp4_s));
  }
};

/// Who ran it.
struct StepTraits {
  std::string stack, chip;
  bool balanced_stages = false;  ///< layers are dealt to stages so that embedding and output projection count
  AttentionKernels attention = AttentionKernels::flash2;
  std::map<std::string, double> factors = {};  ///< StackSpec::step
  bool separate_reduce_group = false;          ///< only the replay asks
  SyncPoints sync_points = SyncPoints::experts;
};

double step_seconds(const StepWork& work, const StepTraits& traits, const StepConstants& constants);

struct TimedStep {
  const StepWork* work = nullptr;
  StepTraits traits;
  std::string group;  ///< rows of one group count together as a dozen at most
  double seconds = 0;
};

class StepModel {
 public:
  /// Throws Error{usage} without steps.
  explicit StepModel(const std::vector<TimedStep>& steps);

  double seconds(const StepWork& work, const StepTraits& traits) const {
    return step_seconds(work, traits, constants(traits));
  }
  StepConstants constants(const StepTraits& traits) const;
  bool knows_stack(const std::string& stack) const { return stacks_.count(stack) > 0; }
  bool knows_chip(const std::string& chip) const { return chips_.count(chip) > 0; }
  /// A stack's fitted factors on the typical one's constants, by name of kStackFactors; 1 of a stack never measured.
  std::map<std::string, double> factors(const std::string& stack) const;
  std::vector<std::string> stacks() const;  ///< that were measured

 private:
  using Logs = std::array<double, kStepConstants>;
  Logs base_{};
  std::map<std::string, Logs> stacks_;   ///< logarithms of factors
  std::map<std::string, double> chips_;  ///< of the factor on products
};

}  // namespace wt
