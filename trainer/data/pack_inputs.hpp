// The input files of `windtunnel data pack`, and reading them, plain or gzip.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

struct gzFile_s;

namespace wt {

struct PackInput {
  std::filesystem::path file;
  std::uint64_t stored_bytes = 0;
};

/// Whether the name is .json, .jsonl or .ndjson, with or without .gz.
bool is_json_input(const std::filesystem::path& file);

/// Files and, for each directory, its regular files at any depth, sorted by path; links inside it are not followed.
/// Empty files of directories are counted and skipped. Throws Error{usage}: no paths, a file that is missing or empty,
/// a directory without text.
std::vector<PackInput> list_pack_inputs(const std::vector<std::filesystem::path>& paths, std::int64_t& empty_files);

/// Reads plain and gzip files alike.
class PackFile {
 public:
  /// Throws Error{usage} for a file that cannot be read, or is named .gz and is not gzip.
  explicit PackFile(const std::filesystem::path& path);
  /// Fills the buffer as far as possible; 0 at the end. Throws Error{usage} for damaged and truncated files.
  std::size_t read(std::span<char> buffer);
  /// Stored (compressed) bytes consumed so far.
  std::uint64_t position() const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file_;
};

}  // namespace wt
