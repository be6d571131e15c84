#include "trainer/data/tokenizer_files.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/text.hpp"
#include "trainer/data/pack.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kEndOfTextWord = "<|endoftext|>";
constexpr std::int64_t kMostOfBytes = 512;       // 257, rounded up to a size that suits matrix products
constexpr std::uintmax_t kLargest = 256u << 20;  // today's largest tokenizers have 40 MB

/// Files of a tokenizer; none contains code.
constexpr const char* kFiles[] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt",     "tokenizer.model",       "chat_template.jinja"};

std::string utf8(int code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

/// GPT-2's alphabet of bytes: a printable byte is itself, the others are 256 and up, in order (encoder.py,
/// bytes_to_unicode).
std::vector<std::string> byte_letters() {
  std::vector<std::string> out;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool seen = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    out.push_back(utf8(seen ? byte : next++));
  }
  return out;
}

json byte_tokenizer() {
  json vocabulary = json::object();
  const std::vector<std::string> letters = byte_letters();
  for (std::size_t byte = 0; byte < letters.size(); ++byte) vocabulary[letters[byte]] = byte;
  vocabulary[kEndOfTextWord] = kEndOfText;
  const json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", json::array({{{"id", kEndOfText},
                                         {"content", kEndOfTextWord},
                                         {"single_word", false},
                                         {"lstrip", false},
                                         {"rstrip", false},
                                         {"normalized", false},
                                         {"special", true}}})},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", json::array()}}}};
}

/// Whether samples have 16-bit ids according to index.json, as the byte tokenizer writes them.
bool holds_short_ids(const fs::path& data_set) {
  const fs::path index = data_set / "index.json";
  if (!fs::exists(index)) return false;
  try {
    const json document = read_json(index);
    const json& encodings = document.at("shards").at(0).at("column_encodings");
    return encodings.size() == 1 && encodings.at(0).get<std::string>().starts_with("ndarray:uint16");
  } catch (const std::exception&) {  // the data reader reports errors in an index
    return false;
  }
}

/// The tokenizer files in a folder, by name; empty = none.
std::vector<std::string> files_of(const fs::path& folder) {
  std::vector<std::string> out;
  if (!fs::exists(folder / kFiles[0])) return out;
  for (const char* name : kFiles)
    if (fs::is_regular_file(folder / name) && fs::file_size(folder / name) <= kLargest) out.emplace_back(name);
  return out;
}

}  // namespace

void write_byte_tokenizer(const fs::path& folder) {
  write_file_atomically(folder / "tokenizer.json", byte_tokenizer().dump(1) + "\n");
  const json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                    {"bos_token", nullptr},
                    {"eos_token", kEndOfTextWord},
                    {"pad_token", kEndOfTextWord},
                    {"clean_up_tokenization_spaces", false},
                    {"model_max_length", 1000000000000000019}};  // no limit, as transformers writes it
  write_file_atomically(folder / "tokenizer_config.json", config.dump(2) + "\n");
}

std::string export_tokenizer(const std::vector<fs::path>& data_sets, std::int64_t vocabulary, const fs::path& weights) {
  std::optional<fs::path> first;
  for (const fs::path& data_set : data_sets) {
    const fs::path own = data_set / kTokenizerFolder;
    if (files_of(own).empty()) continue;
    if (first && read_file(*first / kFiles[0], "a tokenizer") != read_file(own / kFiles[0], "a tokenizer"))
      return fmt::format("no tokenizer is written: those of {} and {} differ", first->string(), own.string());
    first = first.value_or(own);
  }
  if (first) {
    for (const std::string& name : files_of(*first))
      write_file_atomically(weights / name, read_file(*first / name, "a tokenizer"));
    return fmt::format("wrote the tokenizer of {}", first->string());
  }
  for (const fs::path& data_set : data_sets)
    if (!holds_short_ids(data_set) || vocabulary < kByteVocabulary || vocabulary > kMostOfBytes)
      return fmt::format(
          "no tokenizer is written: {} keeps none (a folder {} with tokenizer.json), and its tokens are no bytes; copy "
          "the tokenizer's files to {} before you evaluate",
          data_set.string(), kTokenizerFolder, weights.string());
  if (data_sets.empty()) return "no tokenizer is written: there is no data set";
  write_byte_tokenizer(weights);
  return "wrote the byte tokenizer";
}

}  // namespace wt
