#include "sim/bounds/schedule_seconds.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "sim/program/compose/pipeline_schedule.hpp"

namespace wt {
namespace {

class Passes {
 public:
  Passes(std::vector<ChunkSeconds> chunks, const Layout& layout, std::int64_t microbatches, double message_s)
      : chunks_(std::move(chunks)),
        stages_(static_cast<std::size_t>(layout.pipeline)),
        microbatches_(static_cast<std::size_t>(microbatches)),
        message_s_(layout.pipeline > 1 ? message_s : 0) {
    forward_.assign(chunks_.size() * microbatches_, kNotYet);
    backward_ = forward_;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      stages_[s].work = stage_schedule(layout, static_cast<std::int64_t>(s), microbatches);
  }

  double run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s)
        while (advance(s)) moved = true;
    }
    double end = 0;
    for (const Stage& stage : stages_) {
      if (stage.next < stage.work.size())
        throw_runtime("estimate: a pipeline of {} stages waits for itself", stages_.size());
      end = std::max(end, stage.free_s);
    }
    return end;
  }

 private:
  static constexpr double kNotYet = -1;
  struct Stage {
    std::vector<StageWork> work;
    std::size_t next = 0;
    double free_s = 0;
  };

  std::size_t chunk_of(std::size_t stage, const StageWork& work) const {
    return static_cast<std::size_t>(work.chunk) * stages_.size() + stage;
  }
  std::size_t at(std::size_t chunk, const StageWork& work) const {
    return chunk * microbatches_ + static_cast<std::size_t>(work.microbatch);
  }
  /// Earliest begin of a pass; kNotYet while the end of a pass that it waits for is unknown.
  double ready_s(std::size_t stage, const StageWork& work) const {
    const std::size_t chunk = chunk_of(stage, work);
    const bool forward = work.pass == StageWork::Pass::forward;
    const bool from_own = forward ? chunk == 0 : chunk + 1 == chunks_.size();
    if (forward && from_own) return 0;
    const double before = from_own  ? forward_[at(chunk, work)]
                          : forward ? forward_[at(chunk - 1, work)]
                                    : backward_[at(chunk + 1, work)];
    return before == kNotYet ? kNotYet : before + (from_own ? 0 : message_s_);
  }

  double end_of(std::size_t s, const StageWork& work, double ready_s) {
    const std::size_t chunk = chunk_of(s, work);
    const bool forward = work.pass == StageWork::Pass::forward;
    const PassSeconds& pass = forward ? chunks_[chunk].forward : chunks_[chunk].backward;
    const double end = std::max(stages_[s].free_s + pass.path, ready_s + pass.path - pass.again);
    (forward ? forward_ : backward_)[at(chunk, work)] = end;
    return end;
  }

  bool advance(std::size_t s) {
    Stage& stage = stages_[s];
    if (stage.next == stage.work.size()) return false;
    const StageWork& one = stage.work[stage.next];
    const double ready = ready_s(s, one);
    if (ready == kNotYet) return false;
    if (!one.overlapped) {
      stage.free_s = end_of(s, one, ready);
      ++stage.next;
      return true;
    }
    const StageWork& other = stage.work[stage.next + 1];
    const double other_ready = ready_s(s, other);
    if (other_ready == kNotYet) return start_alone(s, one, ready);
    const ChunkSeconds &a = chunks_[chunk_of(s, one)], &b = chunks_[chunk_of(s, other)];
    const double together_s =
        std::max(a.forward.compute + b.backward.compute, a.forward.exchange + b.backward.exchange);
    const double end = stage.free_s + together_s;
    stage.free_s = std::max({end, end_of(s, one, ready), end_of(s, other, other_ready)});
    stage.next += 2;
    return true;
  }

  /// In a pair, the backward pass may wait for passes that this forward pass starts elsewhere. So the forward pass's
  /// end is set alone.
  bool start_alone(std::size_t s, const StageWork& one, double ready) {
    double& end = forward_[at(chunk_of(s, one), one)];
    if (end != kNotYet) return false;
    end = std::max(stages_[s].free_s, ready) + chunks_[chunk_of(s, one)].forward.path;
    return true;
  }

  std::vector<ChunkSeconds> chunks_;
  std::vector<Stage> stages_;
  std::size_t microbatches_;
  double message_s_;
  std::vector<double> forward_, backward_;  ///< ends, by chunk and microbatch
};

}  // namespace

double scheduled_step_s(const LayerSeconds& seconds, const Layout& layout,
                        const std::vector<std::int64_t>& chunk_layers, std::int64_t microbatches, double message_s) {
  return Passes(chunk_seconds(seconds, layout, chunk_layers), layout, microbatches, message_s).run();
}

}  // namespace wt
