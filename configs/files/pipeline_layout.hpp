// Which chunk of a pipeline has what, as Megatron-Core's pipeline_model_parallel_layout says it
// (megatron/core/transformer/pipeline_parallel_layer_layout.py): "Et*3|(tt|)*29,m|L". E is the embedding, t a layer, m
// a module of multi-token prediction, L output projection and loss; | ends a chunk, x*n and (..)*n repeat, commas and
// spaces mean nothing. Whose a chunk is says Layout::stage_of.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wt {

struct PipelineLayout {
  std::vector<std::int64_t> layers = {};  ///< of each chunk, in the model's order; empty = nothing is said
  std::int64_t modules = 0;               ///< of multi-token prediction
  /// The modules are in the chunk before the last one, which has the output projection; else they are with it.
  bool modules_before_head = false;

  bool operator==(const PipelineLayout&) const = default;
};

/// Throws Error{usage} naming `where`: what is none of these letters or not closed, an embedding that is not first, a
/// loss that is not last, layers behind modules, modules in several chunks or before the last two, a chunk without
/// anything.
PipelineLayout pipeline_layout_from_string(const std::string& text, const std::string& where);
/// The shortest text that reads back the same: runs of chunks that are alike are counted.
std::string to_string(const PipelineLayout& layout);

}  // namespace wt
