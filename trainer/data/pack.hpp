// Converts text to an MDS data set: documents become tokens, by bytes or by a Hugging Face tokenizer, and tokens become
// samples. The result does not depend on the number of tokenizer processes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trainer/data/mds_writer.hpp"

namespace wt {

/// The byte tokenizer, which needs no vocabulary file: token 0..255 is the byte, 256 ends each document.
inline constexpr std::uint16_t kEndOfText = 256;
inline constexpr std::int64_t kByteVocabulary = 257;

enum class SampleKind {
  overlapping,  ///< seq_len + 1 tokens of the concatenated documents; neighbouring samples share one token
  concat,       ///< seq_len tokens of them, like LLM Foundry's --concat_tokens
  document,     ///< all tokens of one document
  text,         ///< the text of one document in the column `text`, like LLM Foundry without --concat_tokens
  finetune,     ///< the turns of one finetuning example in the column `turns`, like LLM Foundry's tokenized data sets
};
/// Throws Error{usage} with the known words.
SampleKind sample_kind_from_string(const std::string& word);

struct PackOptions {
  std::int64_t seq_len = 1024;  ///< tokens; an overlapping sample holds one more
  SampleKind samples = SampleKind::overlapping;
  std::string tokenizer;           ///< tokenizer.json of Hugging Face or its folder; empty = bytes
  std::string bos_text, eos_text;  ///< tokenized around each document, in addition to the tokenizer's special tokens
  bool wrap = true;                ///< false: when a sample is full, the rest of its document is dropped
  int processes = 0;               ///< tokenizer processes; 0 = one per core
  MdsWriterOptions writer;
  /// Called regularly with (stored bytes read, stored bytes in all), for a progress bar.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

struct PackResult {
  std::int64_t files = 0;
  std::int64_t empty_files = 0;  ///< found in directories and skipped
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;    ///< skipped
  std::int64_t dropped_documents = 0;  ///< finetuning examples without tokens in the loss
  std::uint64_t bytes = 0;             ///< of text, uncompressed
  std::int64_t tokens = 0;             ///< including those at the ends of documents
  std::int64_t dropped_tokens = 0;     ///< in no sample; for overlapping samples: never predicted
  std::int64_t samples = 0;
  std::int64_t shards = 0;
  std::int64_t vocabulary = 0;  ///< ids are below it; 0 without tokens
};

/// Inputs are listed by list_pack_inputs and read by DocumentReader. Overlapping: sample i has tokens [i*seq_len,
/// (i+1)*seq_len] of all tokens, inclusive, so that every token but the first is predicted exactly once. Ids are stored
/// as uint16 if the vocabulary fits, otherwise as int32. `out` as in MdsWriter. Throws Error{usage}: as these do, bytes
/// that are not UTF-8 where a tokenizer or the column `text` needs it, a tokenizer that puts nothing between documents,
/// text for less than one sample, seq_len below 1. Error{runtime}: the disk is full, a tokenizer process ended. On an
/// error nothing is left at `out`.
PackResult pack_text(const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& out,
                     const PackOptions& options = {});

}  // namespace wt
