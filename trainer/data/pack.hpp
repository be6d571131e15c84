// Text to the samples of an MDS dataset: documents are turned into tokens, byte by byte or by a Hugging Face tokenizer,
// and the tokens into samples. The dataset is the same for any number of tokenizer processes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/mds_writer.hpp"

namespace wt {

/// The byte tokenizer, which needs no vocabulary file: token 0..255 is the byte, 256 ends each document.
inline constexpr std::uint16_t kEndOfText = 256;
inline constexpr std::int64_t kByteVocabulary = 257;

enum class SampleKind {
  overlapping,  ///< seq_len + 1 tokens of the concatenated documents; neighbours share one
  concat,       ///< seq_len tokens of them, as LLM Foundry's --concat_tokens
  document,     ///< the tokens of one document, however many
  text,         ///< the text of one document, column `text`, as LLM Foundry without --concat_tokens
  finetune,     ///< the turns of one finetuning example, column `turns`, as LLM Foundry's tokenized ones
};
/// Throws Error{usage} naming the words there are.
SampleKind sample_kind_from_string(const std::string& word);

struct PackOptions {
  std::int64_t seq_len = 1024;  ///< tokens; an overlapping sample holds one more
  SampleKind samples = SampleKind::overlapping;
  std::string tokenizer;           ///< tokenizer.json of Hugging Face or its folder; empty = byte by byte
  std::string bos_text, eos_text;  ///< put before and behind each document's tokens, beside the tokenizer's own
  bool wrap = true;                ///< false: what is left of a document when a sample is full is dropped
  int processes = 0;               ///< of the tokenizer; 0 = one a core
  MdsWriterOptions writer;
  /// Called now and then with (stored bytes read, stored bytes in all), for a progress bar.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

struct PackResult {
  std::int64_t files = 0;
  std::int64_t empty_files = 0;  ///< found in directories and left out
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;    ///< left out
  std::int64_t dropped_documents = 0;  ///< finetuning examples without anything to learn
  std::uint64_t bytes = 0;             ///< of text, uncompressed
  std::int64_t tokens = 0;             ///< with those at the ends of documents
  std::int64_t dropped_tokens = 0;     ///< in no sample; of overlapping ones: predicted by none
  std::int64_t samples = 0;
  std::int64_t shards = 0;
  std::int64_t vocabulary = 0;  ///< ids are below it; 0 where there are no tokens
};

/// Files and folders are read as list_pack_inputs says, documents as DocumentReader does. Overlapping: sample i holds
/// tokens [i*seq_len, (i+1)*seq_len] of all, so that every token but the first is predicted exactly once. Ids are
/// stored as uint16 where the vocabulary fits, else as int32. `out` as in MdsWriter. Throws Error{usage}: as those do,
/// bytes that are no UTF-8 where a tokenizer or the column `text` wants it, a tokenizer that puts nothing between
/// documents, text for less than one sample, seq_len below 1. Error{runtime}: the disk is full, a tokenizer process
/// ended. Nothing is left behind at `out` then.
PackResult pack_text(const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& out,
                     const PackOptions& options = {});

}  // namespace wt
