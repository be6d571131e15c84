#include "trainer/executor/executor.hpp"

#include <algorithm>

#include "trainer/device/clocks.hpp"
#include "trainer/device/device.hpp"
#include "trainer/device/memory_counter.hpp"
#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

Executor::Executor(const RunSpec& run, const RankWork& work, Communicators& communicators, StepClock& clock,
                   std::vector<ShardedGroup> groups)
    : run_(run),
      communicators_(communicators),
      clock_(clock),
      device_(clock.device()),
      rank_(communicators.rank()),
      sequences_(work.sequences),
      type_(run.precision == Precision::fp32 ? at::kFloat : at::kBFloat16),
      buffers_(run, device_, type_, rank_, std::move(groups)),
      segments_(run.model, run.layout, run.seq, run.global_batch, type_,
                Mesh(run.layout).coordinate(Axis::context, rank_), device_, work.last_target_missing,
                run.loss_chunks.value_or(1)),
      exchange_(run, communicators, segments_),
      copies_(run, communicators, device_, Mesh(run.layout).coordinate(Axis::expert, rank_)),
      host_activations_(device_),
      routed_(run, device_, buffers_.has_router_biases()),
      marks_(clock) {
  ProgramSet set = build_program_set(run.model, run.layout, program_options(run, work.sequences));
  program_ = std::move(set.programs[static_cast<std::size_t>(set.class_of_rank[static_cast<std::size_t>(rank_)])]);
  ops_ = unroll(program_);
  const at::TensorOptions on_device(device_);
  norm_ = at::zeros({1}, on_device.dtype(at::kFloat));
  losses_ = at::zeros({kStepTerms + run.model.mtp_layers}, on_device.dtype(at::kFloat));
  cross_entropy_ = at::zeros({1 + run.model.mtp_layers}, on_device.dtype(at::kDouble));
  give_tensors_to_faults([this](const FaultEffect& what, const auto& change) { give_tensor(what, change); });
}

Executor::~Executor() { give_tensors_to_faults({}); }

void Executor::give_tensor(const FaultEffect& what, const std::function<void(HostNumbers)>& change) {
  const std::size_t layer = static_cast<std::size_t>(what.layer), dense = 2 + 2 * layer;
  std::vector<ShardedGroup>& groups = buffers_.groups();
  const bool reduced =
      action_ == Action::gradient_norm || action_ == Action::reduce_norm || action_ == Action::optimizer;
  const Tensor tensor = what.tensor == TensorKind::gradient
                            ? (reduced ? groups[dense].state_gradient() : buffers_.dense_gradient(layer).flat)
                        : what.tensor == TensorKind::weight ? groups[dense].master
                        : what.tensor == TensorKind::moment ? groups[dense].exp_avg
                                                            : activation_;
  if (!tensor.defined() || tensor.numel() == 0)
    throw_usage("rank {}: no {} of layer {} is there to be corrupted; name another op", rank_, to_string(what.tensor),
                what.layer);
  const at::NoGradGuard no_grad;
  Tensor host = tensor.detach().cpu().contiguous();  // on the CPU the tensor itself
  change({host.data_ptr(), host.numel(), static_cast<int>(host.element_size())});
  tensor.detach().copy_(host);
}

std::string Executor::attention_backend() const {
  return wt::attention_backend(run_.model, segments_.positions(), run_.layout.microbatch, type_);
}

void Executor::check_issued(const OpInstance& instance, double rows) const {
  const Op& op = *instance.op;
  if (static_cast<bool>(issued_) != op.asynchronous())
    throw_runtime("rank {}: op {} {} a collective, the step program says otherwise", rank_, instance.id(),
                  issued_ ? "issued" : "did not issue");
  if (!issued_ || !op.collective_kind()) return;
  const IssuedCollective& issued = communicators_.last_issued();
  const double bytes = op.collective.bytes.at(rows), found = static_cast<double>(issued.bytes);
  const bool fewer = op.collective.kept_row_bytes > 0 && found < bytes;  // some rows were dropped
  if (issued.kind != op.kind || issued.axis != op.collective.axis || (found != bytes && !fewer))
    throw_runtime(
        "rank {}: op {} issued {} of {} bytes over axis {}, the step program says {} of {} bytes over axis {}", rank_,
        instance.id(), to_string(issued.kind), issued.bytes, to_string(issued.axis), to_string(op.kind), bytes,
        to_string(op.collective.axis));
}

StepResult Executor::run_step(std::int64_t step, double learning_rate, const std::function<Microbatch(int)>& load) {
  step_ = step;
  pass_fault_point(FaultTime::Place::begin, step);
  learning_rate_ = learning_rate;
  load_ = &load;
  for (;;) try {
      return attempt_step();
    } catch (const RepeatStep&) {
      wait_for_all();
    }
}

void Executor::begin_pass() {
  result_ = {};
  result_.timeline.step = step_;
  result_.timeline.rank = rank_;
  result_.timeline.ops.reserve(ops_.size());
  result_.routing.assign(static_cast<std::size_t>(program_.microbatches),
                         std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(program_.layers)));
  layers_.assign(static_cast<std::size_t>(program_.layers), {});
  routed_.begin();
  host_activations_.begin();
  marks_.begin(ops_.size());
  router_loss_ = {};
  cross_entropy_.zero_();
  clock_.begin();
  clock_.mark();
}

void Executor::wait_for_all() {
  for (std::size_t i = 0; i < ops_.size(); ++i) wait_for(i);
}

void Executor::run_op(std::size_t index) {
  const OpInstance& instance = ops_[index];
  const std::string id = instance.id();
  communicators_.at(step_, id);
  action_ = instance.op->action;
  for (const int wait : instance.waits) wait_for(static_cast<std::size_t>(wait));
  if (!evaluates_) pass_fault_point(step_, id, FaultTime::Phase::before);
  reset_peak_tensor_bytes(device_);
  const Clocks start = Clocks::now();
  const StepClock::Mark issued = clock_.mark();
  issued_.reset();
  execute(instance);
  if (!evaluates_) {
    if (issued_)
      pass_fault_point(step_, id, FaultTime::Phase::issued);
    else
      pass_computation(Clocks::now().worked_since(start));
  }
  const StepClock::Mark done = clock_.mark();
  const Clocks end = Clocks::now();
  OpRecord record;
  record.id = id;
  record.lane = instance.op->lane;
  record.thread_cpu_s = end.thread_cpu_s - start.thread_cpu_s;
  record.process_cpu_s = end.process_cpu_s - start.process_cpu_s;
  if (instance.layer >= 0) {
    const LayerState& s = layers_[static_cast<std::size_t>(instance.layer)];
    record.rows = static_cast<double>(run_.layout.expert == 1       ? 0
                                      : s.to_expert_major.defined() ? s.to_expert_major.numel()
                                                                    : 0);
  }
  check_issued(instance, record.rows);
  record.live_bytes = static_cast<double>(live_tensor_bytes(device_));
  record.peak_bytes = static_cast<double>(peak_tensor_bytes(device_));
  result_.timeline.peak_bytes = std::max(result_.timeline.peak_bytes, record.peak_bytes);
  result_.timeline.ops.push_back(std::move(record));
  marks_.add(index, issued, done, std::move(issued_));
}

/// Until the collective of that op is over, if one is under way.
void Executor::wait_for(std::size_t index) {
  marks_.wait_for(index, [&] {
    if (!evaluates_) pass_fault_point(step_, ops_[index].id(), FaultTime::Phase::waiting);
  });
}

StepResult Executor::attempt_step() {
  begin_pass();
  for (std::size_t i = 0; i < ops_.size(); ++i) run_op(i);
  wait_for_all();
  const StepClock::Mark end = clock_.mark();
  communicators_.before_host_read();
  const Tensor losses = losses_.cpu();
  wait_for_device(device_);
  marks_.read(end, result_.timeline);
  routed_.read(result_.routing);
  const float* values = losses.data_ptr<float>();
  result_.loss = values[0], result_.aux_loss = values[1], result_.z_loss = values[2];
  result_.after = values[3] >= kAsksToEnd ? AfterStep::end : values[3] > 0 ? AfterStep::regroup : AfterStep::go_on;
  result_.mtp_losses.assign(values + kStepTerms, values + losses.numel());
  return std::move(result_);
}

double Executor::evaluate(std::int64_t step, std::int64_t microbatches, const std::function<Microbatch(int)>& load) {
  const auto head = std::ranges::find_if(ops_, [](const OpInstance& i) { return i.op->action == Action::head_loss; });
  const auto end = static_cast<std::size_t>(head - ops_.begin()) + 1;  // the first microbatch's forward pass ends there
  step_ = step;
  evaluates_ = true;
  double sum = 0;
  for (int m = 0; m < microbatches; ++m) {
    const std::function<Microbatch(int)> one = [&](int) { return load(m); };
    load_ = &one;
    begin_pass();
    for (std::size_t i = 0; i < end; ++i) run_op(i);
    wait_for_all();
    buffers_.clear_head_gradient();  // the head's op is its backward, too
    activation_gradient_.reset();
    communicators_.before_host_read();
    sum += cross_entropy_.select(0, 0).item<double>();
  }
  layers_.assign(static_cast<std::size_t>(program_.layers), {});
  evaluates_ = false;
  return sum;
}

std::vector<Tensor> Executor::staying(int layer) const {
  // RoutedRows reads the counts at the end of the step.
  std::vector<Tensor> out{activation_, layers_[static_cast<std::size_t>(layer)].choice.expert_counts};
  segments_.positions().add_to(out);
  buffers_.add_slots(layer, out);
  return out;
}

void Executor::execute(const OpInstance& instance) {
  const Op& op = *instance.op;
  const bool backward = op.direction == Direction::backward;
  LayerState* s = instance.layer >= 0 ? &layers_[static_cast<std::size_t>(instance.layer)] : nullptr;
  std::optional<HostActivations::Saving> saving;
  if (s && run_.layout.offload_activations && op.direction == Direction::forward && op.kind == OpKind::segment &&
      instance.layer + 1 < run_.model.layers)  // the last layer's activations stay
    saving.emplace(host_activations_, instance.layer);
  switch (op.action) {
    case Action::load_batch:
      return load_batch(instance.microbatch);
    case Action::unshard:
      if (op.kind != OpKind::host) unshard(instance);
      if (backward && !buffers_.frozen()) buffers_.slot_of(instance).accumulate_into(buffers_.gradient_of(instance));
      return;
    case Action::refresh:
      return refresh(instance);
    case Action::embed:
      return embed(backward);
    case Action::project:
      return project(instance, *s);
    case Action::gather_kv:
      issued_ = backward ? exchange_.reduce_kv(*s) : exchange_.gather_kv(*s);
      return;
    case Action::reduce_balance:
      issued_ = communicators_.all_reduce(Axis::context, s->choice.sequence_counts);
      return;
    case Action::attention:
      return attention(instance, *s);
    case Action::ffn:
      return ffn(instance, *s);
    case Action::exchange_counts:
      issued_ = exchange_.counts(*s);
      return;
    case Action::dispatch:
      issued_ = exchange_.dispatch(*s, backward);
      return;
    case Action::experts:
      return experts(instance, *s);
    case Action::collect:
      issued_ = exchange_.collect(*s, backward);
      return;
    case Action::combine:
      return combine(instance, *s);
    case Action::head_loss:
      return head_loss();
    case Action::reduce_gradients:
      return reduce_gradients(instance);
    case Action::accumulate:
      return accumulate(instance);
    case Action::exchange_copies:
      issued_ = copies_.exchange(instance.layer, buffers_.gradient_of(instance));
      return;
    case Action::add_copies:
      return copies_.add(instance.layer, buffers_.gradient_of(instance));
    case Action::reduce_replicas:
      return reduce_replicas(instance);
    case Action::gradient_norm:
      return gradient_norm();
    case Action::reduce_norm:
      issued_ = communicators_.all_reduce(Axis::state, norm_);
      return;
    case Action::optimizer:
      return optimizer_step();
    case Action::reduce_loads:
      issued_ = communicators_.all_reduce(Axis::world, routed_.loads());
      return;
    case Action::update_bias:
      return update_bias();
    case Action::offload_kept:
      issued_ = backward ? host_activations_.kept_from_host(instance.layer)
                         : host_activations_.kept_to_host(instance.layer, *s, staying(instance.layer));
      return;
    case Action::offload_input:
      issued_ = backward ? host_activations_.input_from_host(instance.layer)
                         : host_activations_.input_to_host(instance.layer, (s + 1)->input);
      return;
    case Action::reduce_loss:
      issued_ = communicators_.all_reduce(Axis::world, losses_);
      return;
    case Action::orthogonalize:
    case Action::offload:
    case Action::share_tensor:
    case Action::exchange_stages:  // only in simulated runs, which check_model refuses
    case Action::restore:
      return;  // not part of a step
  }
}

}  // namespace wt
