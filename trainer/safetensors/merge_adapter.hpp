// Adds an adapter to its base weights.
#pragma once
#include <cstdint>
#include <filesystem>

namespace wt {

struct MergedAdapter {
  std::int64_t tensors = 0;  ///< written
  std::int64_t modules = 0;  ///< tensors to which factors were added
  double parameters = 0;     ///< in all tensors
};

/// Writes `weights` (a folder with config.json) with the adapter added, W + (alpha / r) B A, as fp32 to the new folder
/// `to`: model.safetensors, the tokenizer's files, and config.json last. Holds the weights in memory. On an error `to`
/// is removed. Throws Error{usage}: `to` exists, no weights or no config.json, an adapter with other modules or shapes,
/// weights that are not F32, F16 or BF16; Error{runtime}.
MergedAdapter merge_adapter(const std::filesystem::path& weights, const std::filesystem::path& adapter,
                            const std::filesystem::path& to);

}  // namespace wt
