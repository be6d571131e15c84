// An adapter added to the weights that it was trained beside.
#pragma once
#include <cstdint>
#include <filesystem>

namespace wt {

struct MergedAdapter {
  std::int64_t tensors = 0;  ///< written
  std::int64_t modules = 0;  ///< of these, weights with factors added
  double parameters = 0;     ///< in all tensors
};

/// Writes `weights` (a folder with config.json) with the adapter added to them, W + (alpha / r) B A, as fp32 into `to`,
/// which must not be there: model.safetensors, the tokenizer's files, and config.json last. It holds the weights in
/// memory; where it fails `to` is removed. Throws Error{usage}: `to` is there, no weights or no config.json, an adapter
/// of other modules or shapes, weights that are not F32, F16 or BF16; Error{runtime}.
MergedAdapter merge_adapter(const std::filesystem::path& weights, const std::filesystem::path& adapter,
                            const std::filesystem::path& to);

}  // namespace wt
