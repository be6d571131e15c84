// Converts pieces of documents to the samples of a data set.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/mds_writer.hpp"
#include "trainer/data/packed_pieces.hpp"

namespace wt {

class SampleWriter {
 public:
  /// Throws as MdsWriter does. Ids must be below `vocabulary`.
  SampleWriter(const std::filesystem::path& out, const PackOptions& options, std::int64_t vocabulary);

  /// Throws Error{usage} with the place of a text that is not UTF-8, if samples are text.
  void add(PackedPiece piece);
  /// Throws Error{usage} without samples.
  MdsSummary finish() { return writer_.finish(); }

  std::int64_t tokens() const { return tokens_; }
  std::int64_t samples() const { return samples_; }
  std::int64_t dropped_documents() const { return dropped_documents_; }
  std::int64_t dropped_tokens() const;

 private:
  void cut(const PackedPiece& piece);
  void write_ids();
  void write_text(const std::string& text, const std::string& place);
  void write_turns(const PackedPiece& piece);

  SampleKind kind_;
  std::size_t sample_size_;  ///< tokens
  std::int64_t seq_len_;
  bool wrap_, wide_;
  MdsWriter writer_;
  std::vector<std::int32_t> sample_;  ///< the incomplete sample
  std::vector<std::uint16_t> narrow_;
  std::string text_;
  bool skipping_ = false;  ///< until the document's end
  std::int64_t tokens_ = 0, samples_ = 0, dropped_documents_ = 0, skipped_ = 0;
};

}  // namespace wt
