// Exchange between ranks that hold copies of the same experts: whole gradients of those experts, summed on every rank
// in the same order, so that all copies get the same bits.
#pragma once
#include <ATen/Tensor.h>

#include <cstdint>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

class ExpertCopiesExchange {
 public:
  /// `own`: place in the expert axis. All outlive this.
  ExpertCopiesExchange(const RunSpec& run, Communicators& communicators, at::Device device, std::int64_t own)
      : run_(run), communicators_(communicators), device_(device), own_(own) {}
  /// Issues the exchange of the gradients of the layer's experts.
  Pending exchange(std::int64_t layer, const GradientBuffer& gradient);
  /// Adds what came, when the exchange is over.
  void add(std::int64_t layer, const GradientBuffer& gradient);

 private:
  std::vector<std::int64_t> own_slots(std::int64_t layer, std::int64_t expert) const;
  void own_gradient(std::int64_t layer, const GradientBuffer& gradient, std::int64_t expert, at::Tensor out) const;

  const RunSpec& run_;
  Communicators& communicators_;
  at::Device device_;
  std::int64_t own_;
  at::Tensor received_;  ///< gradients of experts that other ranks hold, too
};

}  // namespace wt
