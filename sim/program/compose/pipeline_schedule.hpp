// The order in which a pipeline stage processes its microbatches.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/layout.hpp"

namespace wt {

/// One pass of one microbatch through one chunk of a stage's layers.
struct StageWork {
  enum class Pass { forward, backward, inputs, weights };  ///< backward: gradients of inputs and weights together
  Pass pass = Pass::forward;
  int microbatch = 0;
  bool overlapped = false;  ///< a forward pass interleaved with the backward pass that follows it, and vice versa
  int chunk = 0;            ///< 0 .. virtual_stages - 1, among the stage's chunks (Layout::stage_of)
};

/// 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2): stage s of p starts with p - s - 1 forward passes, then
/// alternates one forward and one backward. With v chunks a stage takes p microbatches through chunk after chunk and
/// starts with 2 (p - s - 1) + (v - 1) p forward passes, as Megatron-LM does.
///
/// ZB-H1 (Qi et al. 2023, arXiv 2401.10241): 1F1B in which stage s computes the gradients of weights s microbatches
/// after those of inputs. This fills the bubbles and keeps p microbatches on every stage.
///
/// Idle time for equal stages, free communication and a chunk's times f, b, w: (p - 1) (f + b + w) for 1F1B, the same
/// with a chunk's shorter times for v chunks, and (p - 1) (f + b - w) for ZB-H1 with at least p microbatches. Where
/// exchanges overlap another microbatch's computation, a stage of 1F1B is one forward pass further ahead, as in
/// Megatron-Core.
///
/// DualPipe's V (DeepSeek-V3, arXiv 2412.19437, table 2, with its PP = 2 p chunks): in the steady state, every forward
/// pass of one chunk is paired with a backward pass of the other. The gradients of weights are separated only where the
/// pipeline fills and empties. Idle time with f = b = w: (p - 1) (F&B + B - 3 w) if a pair, F&B, overlaps, with B = b +
/// w; (p - 1) f if its passes run one after the other. Stages keep 2 p + 1 chunks, and a step needs at least 2 p
/// microbatches.
std::vector<StageWork> stage_schedule(const Layout& layout, std::int64_t stage, std::int64_t microbatches);

}  // namespace wt
