// Weights in Hugging Face's format: model.safetensors, or several files with an index.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trainer/safetensors/safetensors.hpp"

namespace wt {

/// Tensors of the single file, or of all files in the index. Only headers are read. Throws Error{usage}: neither
/// exists, or a name in the index leads outside the folder.
std::map<std::string, StoredTensor> pretrained_tensors(const std::filesystem::path& folder);

/// Converts `count` values of F32, F16 or BF16 to fp32.
void widen_values(const std::string& type, const char* from, std::int64_t count, float* to);
/// All values of a tensor of F32, F16 or BF16 as fp32. Throws Error{usage} "ORIGIN: found type ..." for another type.
std::vector<float> widened_values(const StoredTensor& tensor, const std::string& origin);

}  // namespace wt
