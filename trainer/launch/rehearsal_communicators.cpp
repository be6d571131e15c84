#include "trainer/launch/rehearsal_communicators.hpp"

#include <algorithm>
#include <numeric>

#include "configs/base/error.hpp"
#include "sim/program/compose/expert_copies.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

/// Done when issued. The transport's scratch lives until someone waits, as in the memory replay.
class Faked : public PendingWork {
 public:
  explicit Faked(Tensor scratch = {}) : scratch_(std::move(scratch)) {}
  void wait() override { scratch_.reset(); }
  bool done() override { return true; }

 private:
  Tensor scratch_;
};

/// The store of a single rank: a missing key stays missing, because no other rank writes.
class OwnStore : public SharedStore {
 public:
  void set(const std::string& key, const std::string& value) override { (*values_)[key] = value; }
  std::string get(const std::string& key) override {
    if (!has(key)) throw_runtime("rehearsal: key '{}' is asked of another rank; a rehearsal has none", key);
    return values_->at(key);
  }
  bool has(const std::string& key) override { return values_->contains(key); }
  std::unique_ptr<SharedStore> reconnect() override { return std::make_unique<OwnStore>(*this); }

 private:
  std::shared_ptr<std::map<std::string, std::string>> values_ = std::make_shared<std::map<std::string, std::string>>();
};

/// Fills `to` with `from`, repeated along dim 0; with zeros if `from` is empty.
void copy_cyclically(Tensor to, const Tensor& from) {
  const at::NoGradGuard no_grad;
  if (from.size(0) == 0)
    to.zero_();
  else
    for (std::int64_t at = 0; at < to.size(0); at += from.size(0)) {
      const std::int64_t n = std::min(from.size(0), to.size(0) - at);
      to.narrow(0, at, n).copy_(from.narrow(0, 0, n));
    }
}

void check_rows(const OpInstance& op, const char* what, const Tensor& rows, const std::vector<std::int64_t>& split) {
  if (const std::int64_t sum = std::accumulate(split.begin(), split.end(), std::int64_t{0}); sum != rows.size(0))
    throw_runtime("rehearsal: op {}: {} {} rows are split into {}; fix the executor's counts", op.id(), rows.size(0),
                  what, sum);
}

}  // namespace

RehearsalCommunicators::RehearsalCommunicators(const RunSpec& run, const RoutingSource& routing)
    : run_(run),
      routing_(routing),
      mesh_(run.layout),
      rank_(run.rehearsal.rank),
      transport_scratch_(program_options(run).transport_scratch),
      weights_(run.seed),
      store_(std::make_unique<OwnStore>()) {
  ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  program_ = std::move(set.programs[static_cast<std::size_t>(set.class_of_rank[static_cast<std::size_t>(rank_)])]);
  for (OpInstance& op : unroll(program_))
    if (op.op->asynchronous()) collectives_.push_back(std::move(op));
}

void RehearsalCommunicators::begin_step(std::int64_t step) {
  step_ = step;
  issued_ = 0;
}

void RehearsalCommunicators::end_step() const {
  if (issued_ != collectives_.size())
    throw_runtime("rehearsal: step {} issued {} collectives, its program has {}; {} is missing", step_, issued_,
                  collectives_.size(), collectives_[issued_].id());
}

const OpInstance& RehearsalCommunicators::next(OpKind kind, Axis axis, const Tensor& tensor) {
  last_ = {kind, axis, static_cast<std::int64_t>(tensor.nbytes())};
  if (issued_ == collectives_.size())
    throw_runtime("rehearsal: step {} issued {} over axis {} after the last collective of its program, {}", step_,
                  to_string(kind), to_string(axis), collectives_.empty() ? "which has none" : collectives_.back().id());
  const OpInstance& op = collectives_[issued_++];
  const Amount& bytes = op.op->collective.bytes;  // bytes that depend on rows are checked by the executor
  if (op.op->kind != kind || op.op->collective.axis != axis ||
      (bytes.per_row == 0 && bytes.fixed != static_cast<double>(last_.bytes)))
    throw_runtime(
        "rehearsal: issued {} of {} bytes over axis {}, the step program has {} there: {} of {} bytes over axis {}",
        to_string(kind), last_.bytes, to_string(axis), op.id(), to_string(op.op->kind), bytes.fixed,
        to_string(op.op->collective.axis));
  return op;
}

Pending RehearsalCommunicators::done(const Tensor& full) const {
  return std::make_unique<Faked>(transport_scratch_ ? at::empty_like(full) : Tensor());
}

Pending RehearsalCommunicators::all_gather(Axis axis, Tensor full, Tensor part) {
  const OpInstance& op = next(OpKind::all_gather, axis, full);
  Pending work = done(full);
  const std::int64_t n = part.size(0), own = mesh_.coordinate(axis, rank_);
  Tensor place = full.narrow(0, own * n, n);
  if (place.data_ptr() != part.data_ptr()) place.copy_(part);
  if (op.op->action == Action::unshard) {
    weights_.fill(full, group_layout(run_.model, run_.layout, op.op->group, op.layer, rank_));
  } else {
    for (std::int64_t other = 0; other < mesh_.size(axis); ++other)
      if (other != own) full.narrow(0, other * n, n).copy_(part);
  }
  return work;
}

Pending RehearsalCommunicators::reduce_scatter(Axis axis, Tensor part, Tensor full) {
  next(OpKind::reduce_scatter, axis, full);
  Pending work = done(full);
  const std::int64_t n = part.size(0);
  part.copy_(full.narrow(0, mesh_.coordinate(axis, rank_) * n, n)).mul_(mesh_.size(axis));
  return work;
}

Pending RehearsalCommunicators::all_reduce(Axis axis, Tensor tensor) {
  next(OpKind::all_reduce, axis, tensor);
  tensor.mul_(mesh_.size(axis));
  return std::make_unique<Faked>();
}

void RehearsalCommunicators::fill_counts(Tensor& received, const OpInstance& op) const {
  const std::int64_t local = received.size(1), first = mesh_.coordinate(Axis::expert, rank_) * local;
  const auto sources = mesh_.members(Axis::expert, mesh_.group_index(Axis::expert, rank_));
  Tensor counts = at::empty({static_cast<std::int64_t>(sources.size()), local}, at::kLong);
  std::int64_t* at = counts.data_ptr<std::int64_t>();
  for (const std::int64_t source : sources) {
    const auto rows =
        whole_rows(routing_.counts(step_, op.microbatch, op.layer, source), run_.tokens().of(op.microbatch));
    const auto slots = rows_per_slot(run_.layout, op.layer, {rows.begin(), rows.end()});
    for (std::int64_t slot = 0; slot < local; ++slot)
      *at++ = static_cast<std::int64_t>(slots.at(static_cast<std::size_t>(first + slot)));
  }
  received.copy_(counts);
}

Pending RehearsalCommunicators::all_to_all(Axis axis, Tensor received, Tensor sent,
                                           std::vector<std::int64_t> received_rows,
                                           std::vector<std::int64_t> sent_rows) {
  const OpInstance& op = next(OpKind::all_to_all, axis, sent);
  if (op.op->action == Action::exchange_counts) {
    fill_counts(received, op);
  } else {
    check_rows(op, "sent", sent, sent_rows);
    check_rows(op, "received", received, received_rows);
    copy_cyclically(received, sent);
  }
  return std::make_unique<Faked>();
}

Pending RehearsalCommunicators::broadcast(Axis, Tensor) { return std::make_unique<Faked>(); }

}  // namespace wt
