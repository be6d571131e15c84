#include "sim/program/memory/memory_replay.hpp"

#include <algorithm>
#include <unordered_map>

#include "configs/base/error.hpp"
#include "sim/program/places.hpp"
#include "sim/program/walk.hpp"

namespace wt {
namespace {

/// Numbers of the buffers that an op names.
struct Numbered {
  std::vector<std::size_t> allocates, frees;
};

class Replayer {
 public:
  Replayer(const Program& program, const RowsBound& rows, bool with_events)
      : program_(program),
        rows_(rows),
        with_events_(with_events),
        ops_(unroll(program)),
        places_(program.microbatches, program.layers) {
    for (const OpInstance& instance : ops_) {
      places_.add_layer(instance.layer);
      const auto [entry, fresh] = numbered_.try_emplace(instance.op);
      numbered_of_.push_back(&entry->second);
      if (!fresh) continue;
      for (const Buffer& buffer : instance.op->allocates)
        entry->second.allocates.push_back(places_.number(buffer.name));
      for (const Ref& ref : instance.op->frees) entry->second.frees.push_back(places_.number(ref.name));
    }
    live_of_.assign(places_.size(), kNotLive);
  }

  MemoryReplay run() {
    std::size_t block = places_.size() + ops_.size();  // after the ops' buffers and what they need while they run
    for (const Buffer& buffer : program_.resident) {
      record(-1, buffer.name, block++, buffer.bytes.at(0));
      out_.resident_bytes += buffer.bytes.at(0);
    }
    live_ = out_.resident_bytes;
    out_.peak_bytes = live_;
    running_.assign(ops_.size(), false);
    out_.peak_bytes_of.reserve(ops_.size());
    out_.live_bytes.reserve(ops_.size());
    for (std::size_t i = 0; i < ops_.size(); ++i) issue(static_cast<int>(i));
    for (std::size_t i = 0; i < ops_.size(); ++i) done(static_cast<int>(i));
    if (out_.peak_op >= 0) out_.peak_id = ops_[static_cast<std::size_t>(out_.peak_op)].id();
    return std::move(out_);
  }

 private:
  static constexpr double kNotLive = -1;
  static constexpr const char* kTransientName = "transient";

  double bound(const Amount& amount, const OpInstance& instance) const {
    const bool inside = instance.microbatch >= 0 && instance.layer >= 0;
    return amount.at(amount.per_row != 0 && inside ? rows_(instance.microbatch, instance.layer) : 0);
  }

  void record(int op, const std::string& buffer, std::size_t block, double bytes) {
    if (with_events_ && bytes != 0) out_.events.push_back({op, buffer, block, bytes});
  }
  std::size_t block_of_run(int op) const { return places_.size() + static_cast<std::size_t>(op); }

  double transient_of(const OpInstance& instance) const {
    double highest = 0;
    for (const Amount& moment : instance.op->transient) highest = std::max(highest, bound(moment, instance));
    return highest;
  }

  void issue(int i) {
    const OpInstance& instance = ops_[static_cast<std::size_t>(i)];
    const Op& op = *instance.op;
    for (int wait : instance.waits) done(wait);
    for (std::size_t a = 0; a < op.allocates.size(); ++a) {
      const double bytes = bound(op.allocates[a].bytes, instance);
      const std::size_t name = numbered_of_[static_cast<std::size_t>(i)]->allocates[a];
      const std::size_t place = places_.at(name, instance.microbatch, instance.layer);
      double& live = live_of_[place];
      if (live != kNotLive)
        throw_usage("step program: {} allocates {}, which is still live; free it first", instance.id(),
                    op.allocates[a].name);
      live = bytes;
      live_ += bytes;
      record(i, op.allocates[a].name, place, bytes);
    }
    const double transient = transient_of(instance);
    record(i, kTransientName, block_of_run(i), transient);
    live_ += transient;
    running_[static_cast<std::size_t>(i)] = true;
    out_.peak_bytes_of.push_back(live_);
    if (with_events_) out_.events_until.push_back(out_.events.size());
    if (live_ > out_.peak_bytes) {
      out_.peak_bytes = live_;
      out_.peak_op = i;
    }
    if (!op.asynchronous()) done(i);
    out_.live_bytes.push_back(live_);
  }

  void done(int i) {
    if (!running_[static_cast<std::size_t>(i)]) return;
    running_[static_cast<std::size_t>(i)] = false;
    const OpInstance& instance = ops_[static_cast<std::size_t>(i)];
    const double transient = transient_of(instance);
    live_ -= transient;
    record(i, kTransientName, block_of_run(i), -transient);
    const std::vector<std::size_t>& frees = numbered_of_[static_cast<std::size_t>(i)]->frees;
    for (std::size_t f = 0; f < frees.size(); ++f) free(i, instance, instance.op->frees[f], frees[f]);
  }

  void free(int i, const OpInstance& instance, const Ref& ref, std::size_t name) {
    const int loop_layer = instance.layer < 0 ? -1 : instance.layer - instance.op->layer_delta;
    // A layer outside of the model also means the buffer without a layer.
    const int target = layer_of(ref, loop_layer, program_.layers).value_or(-1);
    const std::size_t place =
        places_.find(name, instance.microbatch, target, [this](std::size_t at) { return live_of_[at] != kNotLive; });
    if (place == Places::kNone) return;
    live_ -= live_of_[place];
    record(i, ref.name, place, -live_of_[place]);
    live_of_[place] = kNotLive;
  }

  const Program& program_;
  const RowsBound& rows_;
  const bool with_events_;
  std::vector<OpInstance> ops_;
  Places places_;
  std::unordered_map<const Op*, Numbered> numbered_;  ///< addresses of its values do not change
  std::vector<const Numbered*> numbered_of_;          ///< by instance
  std::vector<double> live_of_;                       ///< bytes by place
  std::vector<char> running_;                         ///< issued, but not known to be done
  double live_ = 0;
  MemoryReplay out_;
};

}  // namespace

MemoryReplay replay_memory(const Program& program, const RowsBound& rows, bool with_events) {
  return Replayer(program, rows, with_events).run();
}

}  // namespace wt
