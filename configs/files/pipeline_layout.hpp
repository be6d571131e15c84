// The content of each chunk of a pipeline in Megatron-Core's notation, pipeline_model_parallel_layout
// (megatron/core/transformer/pipeline_parallel_layer_layout.py): "Et*3|(tt|)*29,m|L". E is the embedding, t a layer, m
// a module of multi-token prediction, L output projection and loss. | ends a chunk, x*n and (..)*n repeat, commas and
// spaces are ignored. Layout::stage_of gives a chunk's stage.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wt {

struct PipelineLayout {
  std::vector<std::int64_t> layers = {};  ///< of each chunk, in the model's order; empty = not given
  std::int64_t modules = 0;               ///< of multi-token prediction
  /// The modules are in the chunk before the last one; otherwise in the last one, with the output projection.
  bool modules_before_head = false;

  bool operator==(const PipelineLayout&) const = default;
};

/// Throws Error{usage} with `where`: another letter, an open bracket, an embedding that is not first, a loss that is
/// not last, layers after modules, modules in several chunks or before the last two, an empty chunk.
PipelineLayout pipeline_layout_from_string(const std::string& text, const std::string& where);
/// The shortest text with this layout: equal consecutive chunks become a repeat.
std::string to_string(const PipelineLayout& layout);

}  // namespace wt
