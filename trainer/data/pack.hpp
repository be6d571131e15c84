// Text files to token samples, byte by byte: a tokenizer that needs no vocabulary file, so that a run on real text can
// be shown anywhere. Token 0..255 is the byte, 256 ends each file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "trainer/data/mds_writer.hpp"

namespace wt {

inline constexpr std::uint16_t kEndOfText = 256;
inline constexpr std::int64_t kByteVocabulary = 257;

struct PackOptions {
  std::int64_t seq_len = 1024;  ///< tokens that a sample predicts; it holds one more
  MdsWriterOptions writer;
  /// Called now and then with (stored bytes read, stored bytes in all), for a progress bar.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

struct PackResult {
  std::int64_t files = 0;
  std::int64_t empty_files = 0;     ///< found in directories and left out
  std::uint64_t bytes = 0;          ///< of text, uncompressed
  std::int64_t tokens = 0;          ///< bytes plus one end of text a file
  std::int64_t dropped_tokens = 0;  ///< at the end, predicted by no sample
  std::int64_t samples = 0;
  std::int64_t shards = 0;
};

/// Concatenates the files' tokens and cuts them: sample i holds tokens [i*seq_len, (i+1)*seq_len], so that neighbours
/// share one token and every token but the first is predicted exactly once. Gzip files (.gz) are decompressed. A
/// directory stands for its regular files, at any depth, sorted by path; links in it are not followed. `out` as in
/// MdsWriter. Throws Error{usage}: nothing given, a file that is missing, empty, unreadable or damaged, a directory
/// without text, fewer than seq_len + 1 tokens, seq_len below 1. Error{runtime}: the disk is full. Nothing is left
/// behind at `out` then.
PackResult pack_text(const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& out,
                     const PackOptions& options = {});

}  // namespace wt
