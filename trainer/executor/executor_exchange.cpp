// The executor's exchanges of activations: keys and values between ranks that share sequences, rows between ranks with
// different experts.
#include "trainer/executor/executor.hpp"
#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

Pending Executor::gather_kv(LayerState& s) {
  std::vector<std::int64_t> shape = s.kv.sizes().vec();
  shape.insert(shape.begin(), run_.layout.context);
  s.kv_gathered = at::empty(shape, s.kv.options());
  Pending work = communicators_.all_gather(Axis::context, s.kv_gathered.view({-1}), s.kv.view({-1}));
  s.kv.reset();  // c10d keeps it until the work is done
  return work;
}

Pending Executor::reduce_kv(LayerState& s) {
  s.kv_gradient = at::empty(s.kv_gathered_gradient.sizes().slice(1), s.kv_gathered_gradient.options());
  Pending work =
      communicators_.reduce_scatter(Axis::context, s.kv_gradient.view({-1}), s.kv_gathered_gradient.view({-1}));
  s.kv_gathered_gradient.reset();
  return work;
}

Pending Executor::counts(LayerState& s) {
  const std::int64_t ranks = run_.layout.expert, local = run_.layout.slots_per_rank(run_.model);
  const Tensor sent = s.choice.slot_counts.view({ranks, local});
  s.received_counts = at::empty_like(sent);
  return communicators_.all_to_all(Axis::expert, s.received_counts, sent, {}, {});
}

Pending Executor::dispatch(LayerState& s, bool backward) {
  const std::int64_t width = run_.model.d_model;
  if (backward) {
    s.rows_gradient = at::empty({s.choice.order.size(0), width}, s.expert_input_gradient.options());
    Pending work =
        communicators_.all_to_all(Axis::expert, s.rows_gradient, s.expert_input_gradient, s.sent_rows, s.received_rows);
    s.expert_input_gradient.reset();  // c10d keeps it until the work is done
    return work;
  }
  if (!s.to_expert_major.defined()) {
    communicators_.before_host_read();
    segments_.plan_rows(s);
  }
  s.received = at::empty({s.to_expert_major.size(0), width}, s.rows.options());
  Pending work = communicators_.all_to_all(Axis::expert, s.received, s.rows, s.received_rows, s.sent_rows);
  s.rows.reset();
  return work;
}

Pending Executor::collect(LayerState& s, bool backward) {
  const std::int64_t width = run_.model.d_model;
  if (backward) {
    s.incoming_gradient = at::empty({s.to_expert_major.size(0), width}, s.collected_gradient.options());
    Pending work = communicators_.all_to_all(Axis::expert, s.incoming_gradient, s.collected_gradient, s.received_rows,
                                             s.sent_rows);
    s.collected_gradient.reset();
    return work;
  }
  s.collected = at::empty({s.choice.order.size(0), width}, s.outgoing.options());
  Pending work = communicators_.all_to_all(Axis::expert, s.collected, s.outgoing, s.sent_rows, s.received_rows);
  s.outgoing.reset();
  return work;
}

}  // namespace wt
