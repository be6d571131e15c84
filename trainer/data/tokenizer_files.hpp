// The tokenizer of a data set, as Hugging Face keeps it, so that weights trained on it can be evaluated and served.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace wt {

/// Where a data set keeps its tokenizer: a folder in the data set's own.
inline constexpr const char* kTokenizerFolder = "tokenizer";

/// tokenizer.json and tokenizer_config.json of the byte tokenizer (pack.hpp): token 0..255 is the byte, 256 is
/// <|endoftext|>. Text that contains these 13 letters gets that token there. Throws Error{runtime}.
void write_byte_tokenizer(const std::filesystem::path& folder);

/// Writes the tokenizer of data sets beside weights: that of their folders `tokenizer`, or that of bytes where they
/// hold ids of 16 bits and the vocabulary of the model is one of bytes (257 to 512). Of a tokenizer, files with data
/// are copied, and none with code. What was written, or why nothing was, as a sentence: weights are worth keeping
/// without it. Throws Error{runtime} where the disk does not take it.
std::string export_tokenizer(const std::vector<std::filesystem::path>& data_sets, std::int64_t vocabulary,
                             const std::filesystem::path& weights);

}  // namespace wt
