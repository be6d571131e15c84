// Adapters added to the weights of a folder.
#pragma once
#include <filesystem>

namespace wt {

/// Writes `weights` with the adapter added to them, W + (alpha / r) B A, as fp32 into `to`, a folder that need not be
/// there: model.safetensors, config.json and the tokenizer's files. It holds the weights in memory. Throws
/// Error{usage}: an adapter of other modules or shapes, weights that are not F32, F16 or BF16; Error{runtime}.
void merge_adapter(const std::filesystem::path& weights, const std::filesystem::path& adapter,
                   const std::filesystem::path& to);

}  // namespace wt
