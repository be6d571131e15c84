// Weights as Hugging Face keeps them: model.safetensors, or several files and their index.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trainer/safetensors/safetensors.hpp"

namespace wt {

/// Tensors of one file, or of all files that the index names; headers are read, values when asked for. Throws
/// Error{usage}: neither is there, or a name of the index leads out of the folder.
std::map<std::string, StoredTensor> pretrained_tensors(const std::filesystem::path& folder);

/// `count` values of F32, F16 or BF16 as fp32.
void widen_values(const std::string& type, const char* from, std::int64_t count, float* to);
/// All values of a tensor of F32, F16 or BF16 as fp32. Throws Error{usage} "ORIGIN: found type ..." for another type.
std::vector<float> widened_values(const StoredTensor& tensor, const std::string& origin);

}  // namespace wt
