// What layers keep for their backward passes, in the host's memory meanwhile: Layout::offload_activations. A tensor
// that is copied stays what it is, in the layer's state and in autograd's graph, but its storage has no memory until it
// is copied back. CUDA copies on a stream of its own.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <map>
#include <optional>
#include <vector>

#include "trainer/communication/communicator.hpp"
#include "trainer/model/segments.hpp"

namespace wt {

class HostActivations {
 public:
  explicit HostActivations(at::Device device) : device_(device) {}

  /// Forgets the step before.
  void begin() { saved_.clear(), kept_.clear(), inputs_.clear(); }

  /// While it lives, what autograd saves on this thread is remembered as that layer's.
  class Saving {
   public:
    Saving(HostActivations& of, int layer);
    ~Saving();
    Saving(const Saving&) = delete;
    Saving& operator=(const Saving&) = delete;
  };

  /// Copies what autograd saved of the layer, and its state, but for the tensors that `stay`. When the result has been
  /// waited for, the device's memory is free.
  Pending kept_to_host(int layer, const LayerState& s, const std::vector<at::Tensor>& stay);
  Pending input_to_host(int layer, const at::Tensor& input);
  /// Gives them memory again, and copies them back.
  Pending kept_from_host(int layer);
  Pending input_from_host(int layer);

 private:
  struct Copied {
    c10::Storage storage;  ///< without memory
    at::Tensor host;       ///< (bytes,) uint8
  };
  Pending to_host(const std::vector<c10::Storage>& storages, std::vector<Copied>& copies);
  Pending from_host(std::vector<Copied> copies);
  /// Runs `copy` on the stream for copies, after what has been issued on the current one.
  template <class Copy, class Done>
  Pending issue(const Copy& copy, Done done);

  at::Device device_;
  std::optional<c10::Stream> stream_;  ///< none on the CPU, and before the first copy
  std::map<int, std::vector<c10::Storage>> saved_;
  std::map<int, std::vector<Copied>> kept_, inputs_;
};

}  // namespace wt
