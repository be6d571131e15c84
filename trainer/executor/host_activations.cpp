#include "trainer/executor/host_activations.hpp"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <algorithm>
#include <functional>

#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

namespace {

thread_local std::vector<c10::Storage>* saving = nullptr;

bool holds(const std::vector<c10::Storage>& storages, const c10::Storage& storage) {
  return std::ranges::any_of(
      storages, [&](const c10::Storage& s) { return s.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl(); });
}

void add_storage(std::vector<c10::Storage>& storages, const Tensor& tensor) {
  if (tensor.defined() && tensor.storage().nbytes() > 0 && !holds(storages, tensor.storage()))
    storages.push_back(tensor.storage());
}

/// Keeps a saved tensor as autograd would, and remembers its storage.
class RememberStorage final : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const Tensor& tensor) override {
    tensor_ = tensor;
    add_storage(*saving, tensor);
  }
  Tensor call_unpack_hook() override { return tensor_; }

 private:
  Tensor tensor_;
};

/// LibTorch asks its engine for hooks; C++ has no other place for them.
class EngineWithHooks final : public torch::autograd::Engine {
 public:
  static Engine& get() {
    static auto* const engine = new EngineWithHooks;  // its threads may outlive static objects
    return *engine;
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return saving != nullptr ? std::make_unique<RememberStorage>() : nullptr;
  }
};

Tensor bytes_of(const c10::Storage& storage, at::Device device) {
  return at::empty({0}, at::TensorOptions(device).dtype(at::kByte))
      .set_(storage, 0, {static_cast<std::int64_t>(storage.nbytes())}, {1});
}

/// On the CPU not by LibTorch's allocator, which counts a device's memory.
Tensor host_memory(std::int64_t bytes, at::Device device) {
  const at::TensorOptions options(at::kByte);
  if (!device.is_cpu()) return at::empty({bytes}, options.pinned_memory(true));
  auto* const memory = new char[static_cast<std::size_t>(bytes)];
  return at::from_blob(
      memory, {bytes}, [memory](void*) { delete[] memory; }, options);
}

void set_memory(const c10::Storage& storage, std::size_t bytes) {
  c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
  impl->set_data_ptr_noswap(impl->allocator()->allocate(bytes));
  impl->set_nbytes(bytes);
}

class CopyUnderWay final : public PendingWork {
 public:
  CopyUnderWay(std::optional<c10::Event> end, std::function<void()> done)
      : end_(std::move(end)), done_(std::move(done)) {}
  void wait() override {
    if (end_) end_->block(c10::impl::VirtualGuardImpl(end_->device_type()).getStream({end_->device_type(), -1}));
    done_();
  }
  bool done() override { return !end_ || end_->query(); }

 private:
  std::optional<c10::Event> end_;
  std::function<void()> done_;
};

}  // namespace

HostActivations::Saving::Saving(HostActivations& of, int layer) {
  torch::autograd::set_default_engine_stub(&EngineWithHooks::get);
  saving = &of.saved_[layer];
}

HostActivations::Saving::~Saving() { saving = nullptr; }

template <class Copy, class Done>
Pending HostActivations::issue(const Copy& copy, Done done) {
  if (device_.is_cpu()) {
    copy();
    return std::make_unique<CopyUnderWay>(std::nullopt, std::move(done));
  }
  const c10::impl::VirtualGuardImpl device(device_.type());
  if (!stream_) stream_ = device.getStreamFromGlobalPool(device_);
  c10::Event ready(device_.type()), end(device_.type());
  ready.record(device.getStream(device_));
  ready.block(*stream_);
  const c10::StreamGuard on_stream(*stream_);
  copy();
  end.record(*stream_);
  return std::make_unique<CopyUnderWay>(std::move(end), std::move(done));
}

Pending HostActivations::to_host(const std::vector<c10::Storage>& storages, std::vector<Copied>& copies) {
  for (const c10::Storage& storage : storages)
    copies.push_back({storage, host_memory(static_cast<std::int64_t>(storage.nbytes()), device_)});
  const at::NoGradGuard no_grad;
  return issue(
      [&] {
        for (const Copied& c : copies) c.host.copy_(bytes_of(c.storage, device_), /*non_blocking=*/true);
      },
      [storages] {
        for (const c10::Storage& storage : storages) set_memory(storage, 0);
      });
}

Pending HostActivations::from_host(std::vector<Copied> copies) {
  for (const Copied& c : copies) set_memory(c.storage, static_cast<std::size_t>(c.host.numel()));
  const at::NoGradGuard no_grad;
  return issue(
      [&] {
        for (const Copied& c : copies) bytes_of(c.storage, device_).copy_(c.host, /*non_blocking=*/true);
      },
      [copies] {});
}

Pending HostActivations::kept_to_host(int layer, const LayerState& s, const std::vector<Tensor>& stay) {
  std::vector<c10::Storage> storages = std::move(saved_[layer]), staying;
  for (const Tensor& tensor : {s.q, s.kv, s.k, s.v, s.residual_input, s.residual, s.ffn_input, s.weights, s.rows,
                               s.choice.index, s.choice.kept, s.choice.order, s.choice.inverse, s.received,
                               s.expert_input, s.outgoing, s.collected, s.to_expert_major, s.to_rank_major})
    add_storage(storages, tensor);
  add_storage(staying, s.input);
  for (const Tensor& tensor : stay) add_storage(staying, tensor);
  std::erase_if(storages, [&](const c10::Storage& storage) { return holds(staying, storage); });
  return to_host(storages, kept_[layer] = {});
}

Pending HostActivations::input_to_host(int layer, const Tensor& input) {
  return to_host({input.storage()}, inputs_[layer] = {});
}

Pending HostActivations::kept_from_host(int layer) { return from_host(std::move(kept_[layer])); }

Pending HostActivations::input_from_host(int layer) { return from_host(std::move(inputs_[layer])); }

}  // namespace wt
