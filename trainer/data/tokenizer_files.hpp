// A data set's Hugging Face tokenizer, which is exported with weights so that they can be evaluated and served.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace wt {

/// A data set's subfolder with its tokenizer.
inline constexpr const char* kTokenizerFolder = "tokenizer";

/// Writes tokenizer.json and tokenizer_config.json of the byte tokenizer (pack.hpp): token 0..255 is the byte, 256 is
/// <|endoftext|>. Text that contains these 13 letters becomes that token. Throws Error{runtime}.
void write_byte_tokenizer(const std::filesystem::path& folder);

/// Writes the data sets' tokenizer next to weights: the content of their folders `tokenizer`, or the byte tokenizer if
/// samples have 16-bit ids and the model's vocabulary is one of bytes (257 to 512). Only data files are copied, no
/// code. Returns what was written, or why nothing was, as a sentence, because weights are valuable without a tokenizer.
/// Throws Error{runtime} where writing fails.
std::string export_tokenizer(const std::vector<std::filesystem::path>& data_sets, std::int64_t vocabulary,
                             const std::filesystem::path& weights);

}  // namespace wt
