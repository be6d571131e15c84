#include "sim/program/compose/pipeline_schedule.hpp"

#include <algorithm>
#include <array>
#include <deque>

namespace wt {
namespace {

/// Chunk 0 is on the path to the last stage, chunk 1 on the path back.
class DualPipeV {
  using Pass = StageWork::Pass;

 public:
  DualPipeV(int stages, int stage, int microbatches, bool overlap)
      : behind_(stages - stage - 1), ahead_(stage + 1), pairs_(microbatches - 2 * stages + ahead_), overlap_(overlap) {}

  std::vector<StageWork> take() {
    fill();
    for (int i = 0; i < pairs_; ++i) {
      pair(0, 1, overlap_ && (i > 0 || behind_ > 0));  // the last stage does not overlap its first pair, for which the
                                                       // other stages wait
      pair(1, 0, overlap_);
    }
    for (int i = 0; i < behind_; ++i) {
      add(Pass::backward, 1);
      pair(1, 0, overlap_);
    }
    drain();
    return std::move(out_);
  }

 private:
  void fill() {
    for (int i = 0; i < 2 * behind_; ++i) add(Pass::forward, 0);
    for (int i = 0; i < ahead_; ++i) add(Pass::forward, 0), add(Pass::forward, 1);
    for (int i = 0; i < behind_; ++i) {
      add(Pass::inputs, 1);
      add_weights();
      add(Pass::forward, 1);
    }
  }
  /// No forward passes remain. The later half of the passes sends input gradients before computing weight gradients.
  void drain() {
    for (int i = 0; i < 2 * ahead_; ++i) add(i < ahead_ ? Pass::backward : Pass::inputs, i % 2 == 0 ? 1 : 0);
    for (int i = 0; i < behind_; ++i) {
      add_weights();
      add(Pass::inputs, 0);
    }
    while (!waiting_.empty()) add_weights();
  }
  void pair(int forward, int backward, bool overlapped) {
    add(Pass::forward, forward);
    out_.back().overlapped = overlapped;
    add(Pass::backward, backward);
  }
  void add(Pass pass, int chunk) {
    int& next = (pass == Pass::forward ? forward_ : backward_).at(static_cast<std::size_t>(chunk));
    out_.push_back({pass, next++, false, chunk});
    if (pass == Pass::inputs) waiting_.push_back(out_.back());
  }
  void add_weights() {
    out_.push_back(waiting_.front());
    out_.back().pass = Pass::weights;
    waiting_.pop_front();
  }

  int behind_, ahead_, pairs_;  ///< stages after this one; stages up to this one; rounds of both chunks each way
  bool overlap_;
  std::array<int, 2> forward_{}, backward_{};  ///< the next microbatch of each chunk
  std::deque<StageWork> waiting_;              ///< passes whose weight gradients are still to be computed
  std::vector<StageWork> out_;
};

}  // namespace

std::vector<StageWork> stage_schedule(const Layout& layout, std::int64_t stage, std::int64_t microbatches) {
  const int p = static_cast<int>(layout.pipeline), v = static_cast<int>(layout.virtual_stages),
            s = static_cast<int>(stage);
  if (layout.schedule == Schedule::dualpipe_v)
    return DualPipeV(p, s, static_cast<int>(microbatches), layout.exchange_overlap).take();
  const int passes = static_cast<int>(microbatches) * v;
  const bool split = layout.schedule == Schedule::zero_bubble;
  const int warm_up = std::min(passes, (p - s - 1) * (v > 1 ? 2 : 1) + (v - 1) * p + (layout.exchange_overlap ? 1 : 0));
  using Pass = StageWork::Pass;
  std::vector<StageWork> out;
  const auto add = [&](Pass pass,
                       int k) {  // p microbatches through each chunk in turn; with one chunk, k is the microbatch
    const int chunk = k % (p * v) / p;
    out.push_back({pass, v == 1 ? k : k / (p * v) * p + k % p, false,
                   v == 1                  ? 0
                   : pass == Pass::forward ? chunk
                                           : v - 1 - chunk});
  };
  for (int k = 0; k < warm_up; ++k) add(Pass::forward, k);
  for (int k = 0; k < passes; ++k) {
    if (warm_up + k < passes) {
      add(Pass::forward, warm_up + k);
      out.back().overlapped = layout.exchange_overlap;
    }
    add(split ? Pass::inputs : Pass::backward, k);
    if (split && k >= s) add(Pass::weights, k - s);
  }
  if (split)
    for (int k = std::max(0, passes - s); k < passes; ++k) add(Pass::weights, k);
  return out;
}

}  // namespace wt
