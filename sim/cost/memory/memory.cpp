#include "sim/cost/memory/memory.hpp"

#include <algorithm>
#include <tuple>

#include "configs/spec/support/error.hpp"

namespace wt {
namespace {

class Replayer {
 public:
  Replayer(const Program& program, const RowsBound& rows) : program_(program), rows_(rows), ops_(unroll(program)) {}

  MemoryReplay run() {
    for (const Buffer& buffer : program_.resident) {
      out_.resident_bytes += buffer.bytes.at(0);
      by_name_[buffer.name] += buffer.bytes.at(0);
    }
    live_ = out_.resident_bytes;
    out_.peak_bytes = live_;
    out_.at_peak = by_name_;
    running_.assign(ops_.size(), false);
    for (std::size_t i = 0; i < ops_.size(); ++i) issue(static_cast<int>(i));
    for (std::size_t i = 0; i < ops_.size(); ++i) done(static_cast<int>(i));
    return std::move(out_);
  }

 private:
  using Key = std::tuple<std::string, int, int>;  ///< name, microbatch, layer

  double bound(const Amount& amount, const OpInstance& instance) const {
    const bool inside = instance.microbatch >= 0 && instance.layer >= 0;
    return amount.at(amount.per_row != 0 && inside ? rows_(instance.microbatch, instance.layer) : 0);
  }

  double transient_of(const OpInstance& instance) const {
    double highest = 0;
    for (const Amount& moment : instance.op->transient) highest = std::max(highest, bound(moment, instance));
    return highest;
  }

  void issue(int i) {
    const OpInstance& instance = ops_[static_cast<std::size_t>(i)];
    const Op& op = *instance.op;
    for (int wait : instance.waits) done(wait);
    for (const Buffer& buffer : op.allocates) {
      const double bytes = bound(buffer.bytes, instance);
      const Key key{buffer.name, instance.microbatch, instance.layer};
      if (!buffers_.try_emplace(key, bytes).second)
        throw_error(Code::usage, "step program: {} allocates {}, which is still live; free it first", instance.id(),
                    buffer.name);
      live_ += bytes;
      by_name_[buffer.name] += bytes;
    }
    const double transient = transient_of(instance);
    live_ += transient;
    by_name_["transient"] += transient;
    running_[static_cast<std::size_t>(i)] = true;
    out_.peak_bytes_of.push_back(live_);
    if (live_ > out_.peak_bytes) {
      out_.peak_bytes = live_;
      out_.peak_op = i;
      out_.peak_id = instance.id();
      out_.at_peak = by_name_;
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
    by_name_["transient"] -= transient;
    for (const Ref& ref : instance.op->frees) free(instance, ref);
  }

  void free(const OpInstance& instance, const Ref& ref) {
    const int loop_layer = instance.layer < 0 ? -1 : instance.layer - instance.op->layer_delta;
    const int target = ref.layer >= 0 ? ref.layer : loop_layer < 0 ? -1 : loop_layer + ref.layer_delta;
    for (const int microbatch : {instance.microbatch < 0 ? program_.microbatches - 1 : instance.microbatch, -1})
      for (const int layer : {target, -1}) {
        const auto it = buffers_.find({ref.name, microbatch, layer});
        if (it == buffers_.end()) continue;
        live_ -= it->second;
        by_name_[ref.name] -= it->second;
        buffers_.erase(it);
        return;
      }
  }

  const Program& program_;
  const RowsBound& rows_;
  std::vector<OpInstance> ops_;
  std::map<Key, double> buffers_;  ///< bytes live
  std::map<std::string, double> by_name_;
  std::vector<bool> running_;  ///< issued and not known to be done
  double live_ = 0;
  MemoryReplay out_;
};

}  // namespace

MemoryReplay replay_memory(const Program& program, const RowsBound& rows) {
  MemoryReplay out = Replayer(program, rows).run();
  std::erase_if(out.at_peak, [](const auto& entry) { return entry.second <= 0; });
  return out;
}

}  // namespace wt
