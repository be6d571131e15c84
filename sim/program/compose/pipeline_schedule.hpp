// In which order a pipeline stage works on its microbatches.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/layout.hpp"

namespace wt {

/// One pass of one microbatch through one chunk of a stage's layers.
struct StageWork {
  enum class Pass { forward, backward, inputs, weights };  ///< backward: gradients of inputs and weights in one
  Pass pass = Pass::forward;
  int microbatch = 0;
  bool overlapped = false;  ///< a forward pass whose rows travel beside the backward pass behind it, and the other way
  int chunk = 0;            ///< 0 .. virtual_stages - 1, of those that Layout::stage_of gives the stage
};

/// 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2): stage s of p starts with p - s - 1 forward passes, then
/// one forward, one backward. With v chunks a stage takes p microbatches through chunk after chunk and starts with 2 (p
/// - s - 1) + (v - 1) p, as Megatron-LM does. ZB-H1 (Qi et al. 2023, arXiv 2401.10241): 1F1B with the gradients of
/// weights s microbatches behind those of inputs on stage s, which fills the bubbles and keeps p microbatches on every
/// stage. Their idle time for stages alike, free communication and a chunk's times f, b, w: (p - 1) (f + b + w) for
/// 1F1B, as much over v microbatches' chunks, and for ZB-H1 with at least p microbatches (p - 1) (f + b - w). Where
/// exchanges overlap another microbatch's computation, a stage of 1F1B is one forward pass further ahead, as in
/// Megatron-Core. DualPipe's V (DeepSeek-V3, arXiv 2412.19437, table 2, with its PP = 2 p chunks): once both chunks are
/// under way every forward pass of one has a backward pass of the other beside it, and the gradients of weights are cut
/// off only where the pipeline fills and empties. Idle, with f = b = w: (p - 1) (F&B + B - 3 w) where passes side by
/// side, F&B, end as one, with B = b + w; (p - 1) f where they follow each other. Stages keep 2 p + 1 chunks, and a
/// step needs 2 p microbatches at least.
std::vector<StageWork> stage_schedule(const Layout& layout, std::int64_t stage, std::int64_t microbatches);

}  // namespace wt
