// Exchanges of activations: keys and values between ranks that share sequences, rows between ranks that hold different
// experts. Each is issued and not waited for.
#pragma once
#include "configs/files/run.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/model/segments.hpp"

namespace wt {

class ActivationExchange {
 public:
  /// All outlive this.
  ActivationExchange(const RunSpec& run, Communicators& communicators, Segments& segments)
      : run_(run), communicators_(communicators), segments_(segments) {}
  Pending gather_kv(LayerState& s);
  Pending reduce_kv(LayerState& s);
  Pending counts(LayerState& s);
  Pending dispatch(LayerState& s, bool backward);
  Pending collect(LayerState& s, bool backward);

 private:
  const RunSpec& run_;
  Communicators& communicators_;
  Segments& segments_;
};

}  // namespace wt
