#include "trainer/executor/executor.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/device/device.hpp"
#include "trainer/device/memory_counter.hpp"
#include "trainer/faults/fault_point.hpp"
#include "trainer/parameters/adapter_group.hpp"
#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

/// A collective between issue and wait.
struct Executor::InFlight {
  Pending work;
  std::size_t record;
  bool timed = false;  ///< the time of its end is known
};

Executor::Executor(const RunSpec& run, Communicators& communicators, StepClock& clock, std::vector<ShardedGroup> groups)
    : run_(run),
      communicators_(communicators),
      clock_(clock),
      device_(clock.device()),
      mesh_(run.layout),
      rank_(communicators.rank()),
      type_(run.precision == Precision::fp32 ? at::kFloat : at::kBFloat16),
      groups_(std::move(groups)),
      segments_(run.model, run.layout, run.seq, run.global_batch, type_,
                mesh_.coordinate(Axis::context, communicators.rank()), clock.device(), run.last_target_missing) {
  const at::TensorOptions on_device(device_);
  ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  program_ = std::move(set.programs[static_cast<std::size_t>(set.class_of_rank[static_cast<std::size_t>(rank_)])]);
  ops_ = unroll(program_);
  if (groups_.empty()) groups_ = new_groups();
  const bool biased = groups_.back().layout.group == Group::router_bias;
  if (run.layout.optimizer_shard > 1)
    for (ShardedGroup& g : groups_) g.weights = at::zeros({g.layout.shard_elements}, on_device.dtype(type_));
  make_slots(Group::dense, weight_slots(run.model, run.layout), gradient_slots(run.model, run.layout), dense_slots_,
             dense_gradients_);
  make_slots(Group::expert, weight_slots(run.model, run.layout), gradient_slots(run.model, run.layout), expert_slots_,
             expert_gradients_);
  if (biased) router_loads_ = at::zeros({run.model.moe_layers(), run.model.experts}, on_device.dtype(at::kFloat));
  if (frozen()) make_adapter();
  if (!run.layout.reduce_every_microbatch && !frozen()) {
    embedding_gradient_ = GradientBuffer::make(groups_[0].layout, device_);
    head_gradient_ = GradientBuffer::make(groups_[1].layout, device_);
  }
  norm_ = at::zeros({1}, on_device.dtype(at::kFloat));
  losses_ = at::zeros({kStepTerms + run.model.mtp_layers}, on_device.dtype(at::kFloat));
  cross_entropy_ = at::zeros({1 + run.model.mtp_layers}, on_device.dtype(at::kDouble));
  give_tensors_to_faults([this](const FaultEffect& what, const auto& change) { give_tensor(what, change); });
}

std::vector<ShardedGroup> Executor::new_groups() const {
  std::vector<ShardedGroup> out;
  const Moments learned = run_.optimizer.one_moment() ? Moments::one : Moments::two;
  const auto add = [&](Group group, std::int64_t layer) {
    const bool moved = !frozen() || group == Group::router_bias;
    out.push_back(make_group(group_layout(run_.model, run_.layout, group, layer, rank_), run_.seed, device_,
                             moved ? learned : Moments::none));
  };
  add(Group::embedding, -1);
  add(Group::head, -1);
  for (std::int64_t layer = 0; layer < run_.model.blocks(); ++layer)
    add(Group::dense, layer), add(Group::expert, layer);
  if (run_.lora) out.push_back(make_group(adapter_layout(run_.model, *run_.lora), run_.seed, device_, learned));
  if (run_.model.moe_layers() > 0 && run_.model.router.bias_update_rate > 0) add(Group::router_bias, -1);
  return out;
}

Executor::~Executor() { give_tensors_to_faults({}); }

void Executor::give_tensor(const FaultEffect& what, const std::function<void(HostNumbers)>& change) {
  const std::size_t layer = static_cast<std::size_t>(what.layer), dense = 2 + 2 * layer;
  const bool reduced =
      action_ == Action::gradient_norm || action_ == Action::reduce_norm || action_ == Action::optimizer;
  const Tensor tensor = what.tensor == TensorKind::gradient
                            ? (reduced ? groups_[dense].state_gradient() : dense_gradients_[layer].flat)
                        : what.tensor == TensorKind::weight ? groups_[dense].master
                        : what.tensor == TensorKind::moment ? groups_[dense].exp_avg
                                                            : activation_;
  if (!tensor.defined() || tensor.numel() == 0)
    throw_error(Code::usage, "rank {}: no {} of layer {} is there to be corrupted; name another op", rank_,
                to_string(what.tensor), what.layer);
  const at::NoGradGuard no_grad;
  Tensor host = tensor.detach().cpu().contiguous();  // on the CPU the tensor itself
  change({host.data_ptr(), host.numel(), static_cast<int>(host.element_size())});
  tensor.detach().copy_(host);
}

void Executor::make_slots(Group group, std::int64_t weights, std::int64_t gradients, std::vector<Slot>& slots,
                          std::vector<GradientBuffer>& buffers) {
  const auto storages = [&](std::int64_t count, at::ScalarType type) {
    std::vector<Tensor> out;
    for (std::int64_t slot = 0; slot < count; ++slot)
      out.push_back(at::zeros({slot_elements(run_.model, run_.layout, group, slot, count)},
                              at::TensorOptions(device_).dtype(type)));
    return out;
  };
  const auto weight_storage = storages(weights, type_),
             gradient_storage = storages(frozen() ? 0 : gradients, at::kFloat);
  for (std::int64_t layer = 0; layer < run_.model.blocks(); ++layer) {
    const GroupLayout& layout = groups_[static_cast<std::size_t>((group == Group::dense ? 2 : 3) + 2 * layer)].layout;
    slots.push_back(Slot::make(layout, at::TensorOptions(device_).dtype(type_),
                               weight_storage[static_cast<std::size_t>(layer % weights)], !frozen()));
    buffers.push_back(frozen() ? GradientBuffer{}
                               : GradientBuffer::make(layout, device_,
                                                      gradient_storage[static_cast<std::size_t>(layer % gradients)]));
  }
}

void Executor::wait_for(int index) {
  InFlight* flight = in_flight_[static_cast<std::size_t>(index)].get();
  if (!flight) return;
  Waited waited{flight->record, clock_.mark(), 0};
  if (!evaluates_) pass_fault_point(step_, ops_[static_cast<std::size_t>(index)].id(), FaultTime::Phase::waiting);
  flight->work->wait();
  waited.end = clock_.mark();
  waits_.push_back(waited);
  if (!flight->timed) marks_[flight->record].done = waited.end;
  in_flight_[static_cast<std::size_t>(index)].reset();
}

void Executor::read_marks(StepClock::Mark end) {
  StepTimeline& t = result_.timeline;
  t.step_s = clock_.seconds(end);
  for (std::size_t i = 0; i < t.ops.size(); ++i)
    t.ops[i].issued_s = clock_.seconds(marks_[i].issued), t.ops[i].done_s = clock_.seconds(marks_[i].done);
  for (const Waited& waited : waits_) {
    const double seconds = clock_.seconds(waited.end) - clock_.seconds(waited.begin);
    t.ops[waited.record].waited_s += seconds;
    t.exposed_s += seconds;
  }
}

std::string Executor::attention_backend() const {
  return wt::attention_backend(run_.model, segments_.positions(), run_.layout.microbatch, type_);
}

void Executor::check_issued(const OpInstance& instance, double rows) const {
  const Op& op = *instance.op;
  if (static_cast<bool>(issued_) != op.asynchronous())
    throw_error(Code::runtime, "rank {}: op {} {} a collective, the step program says otherwise", rank_, instance.id(),
                issued_ ? "issued" : "did not issue");
  if (!issued_) return;
  const IssuedCollective& issued = communicators_.last_issued();
  const double bytes = op.collective.bytes.at(rows);
  if (issued.kind != op.kind || issued.axis != op.collective.axis || static_cast<double>(issued.bytes) != bytes)
    throw_error(Code::runtime,
                "rank {}: op {} issued {} of {} bytes over axis {}, the step program says {} of {} bytes over axis {}",
                rank_, instance.id(), to_string(issued.kind), issued.bytes, to_string(issued.axis), to_string(op.kind),
                bytes, to_string(op.collective.axis));
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
  if (router_loads_.defined()) router_loads_.zero_();
  in_flight_.clear();
  in_flight_.resize(ops_.size());
  router_loss_ = {};
  cross_entropy_.zero_();
  marks_.clear(), waits_.clear(), counted_.clear();
  clock_.begin();
  clock_.mark();
}

void Executor::wait_for_all() {
  for (std::size_t i = 0; i < ops_.size(); ++i) wait_for(static_cast<int>(i));
}

void Executor::run_op(std::size_t index) {
  const OpInstance& instance = ops_[index];
  const std::string id = instance.id();
  communicators_.at(step_, id);
  action_ = instance.op->action;
  for (int wait : instance.waits) wait_for(wait);
  if (!evaluates_) pass_fault_point(step_, id, FaultTime::Phase::before);
  reset_peak_tensor_bytes(device_);
  const Clocks start = Clocks::now();
  OpMarks marks{clock_.mark(), 0};
  issued_.reset();
  execute(instance);
  if (!evaluates_) {
    if (issued_)
      pass_fault_point(step_, id, FaultTime::Phase::issued);
    else
      pass_computation(Clocks::now().worked_since(start));
  }
  marks.done = clock_.mark();
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
  const auto on_lane = issued_ ? issued_->marks() : std::nullopt;
  if (on_lane) marks = {on_lane->begin, on_lane->end};
  marks_.push_back(marks);
  if (issued_)
    in_flight_[index] =
        std::make_unique<InFlight>(InFlight{std::move(issued_), marks_.size() - 1, on_lane.has_value()});
  for (auto& flight : in_flight_)  // records the end of collectives, as precisely as op boundaries allow
    if (flight && !flight->timed && flight->work->done()) {
      flight->timed = true;
      marks_[flight->record].done = clock_.mark();
    }
}

StepResult Executor::attempt_step() {
  begin_pass();
  for (std::size_t i = 0; i < ops_.size(); ++i) run_op(i);
  wait_for_all();
  const StepClock::Mark end = clock_.mark();
  communicators_.before_host_read();
  const Tensor losses = losses_.cpu();
  wait_for_device(device_);
  read_marks(end);
  read_counts();
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
    // The head's op includes its backward.
    if (run_.layout.reduce_every_microbatch)
      head_gradient_ = GradientBuffer{};
    else if (!frozen())
      head_gradient_.flat.zero_();
    activation_gradient_.reset();
    communicators_.before_host_read();
    sum += cross_entropy_.select(0, 0).item<double>();
  }
  layers_.assign(static_cast<std::size_t>(program_.layers), {});
  evaluates_ = false;
  return sum;
}

void Executor::execute(const OpInstance& instance) {
  const Op& op = *instance.op;
  const bool backward = op.direction == Direction::backward;
  LayerState* s = instance.layer >= 0 ? &layers_[static_cast<std::size_t>(instance.layer)] : nullptr;
  switch (op.action) {
    case Action::load_batch:
      return load_batch(instance.microbatch);
    case Action::unshard:
      if (op.kind != OpKind::host) unshard(instance);
      if (backward && !frozen()) slot_of(instance).accumulate_into(gradient_of(instance));
      return;
    case Action::refresh:
      return refresh(instance);
    case Action::embed:
      return embed(backward);
    case Action::project:
      return project(instance, *s);
    case Action::gather_kv:
      issued_ = backward ? reduce_kv(*s) : gather_kv(*s);
      return;
    case Action::reduce_balance:
      issued_ = communicators_.all_reduce(Axis::context, s->choice.sequence_counts);
      return;
    case Action::attention:
      return attention(instance, *s);
    case Action::ffn:
      return ffn(instance, *s);
    case Action::exchange_counts:
      issued_ = counts(*s);
      return;
    case Action::dispatch:
      issued_ = dispatch(*s, backward);
      return;
    case Action::experts:
      return experts(instance, *s);
    case Action::collect:
      issued_ = collect(*s, backward);
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
      return exchange_copies(instance);
    case Action::add_copies:
      return add_copies(instance);
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
      issued_ = communicators_.all_reduce(Axis::world, router_loads_);
      return;
    case Action::update_bias:
      return update_bias();
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
