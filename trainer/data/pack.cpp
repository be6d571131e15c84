#include "trainer/data/pack.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "configs/spec/support/error.hpp"

namespace wt {
namespace fs = std::filesystem;
namespace {

struct Input {
  fs::path file;
  std::uint64_t stored_bytes = 0;
};

[[noreturn]] void unreadable(const fs::path& file, const std::string& why) {
  throw_error(
      Code::usage,
      "{}: cannot be read: {}; allowed are readable text files, plain or gzip, and directories of them; check path and "
      "permissions",
      file.string(), why);
}

/// Regular files below a directory, sorted, without the empty ones, which it counts.
std::vector<Input> walk(const fs::path& directory, std::int64_t& empty_files) {
  std::vector<Input> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (!fs::is_regular_file(entry->symlink_status())) continue;
    const std::uint64_t size = entry->file_size();
    if (size == 0) {
      ++empty_files;
    } else {
      found.push_back({entry->path(), size});
    }
  }
  if (error) unreadable(directory, error.message());
  std::sort(found.begin(), found.end(), [](const Input& a, const Input& b) { return a.file < b.file; });
  if (found.empty()) unreadable(directory, "the directory holds no file with text");
  return found;
}

std::vector<Input> list_inputs(const std::vector<fs::path>& paths, std::int64_t& empty_files) {
  if (paths.empty()) {
    throw_error(Code::usage,
                "pack: found no input, allowed is at least one text file or directory; name one with --text");
  }
  std::vector<Input> inputs;
  for (const fs::path& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) {
      const std::vector<Input> found = walk(path, empty_files);
      inputs.insert(inputs.end(), found.begin(), found.end());
      continue;
    }
    if (!fs::is_regular_file(status)) unreadable(path, error ? error.message() : "it is no regular file");
    const std::uint64_t size = fs::file_size(path, error);
    if (error) unreadable(path, error.message());
    if (size == 0) unreadable(path, "it is empty");
    inputs.push_back({path, size});
  }
  return inputs;
}

/// Reads plain and gzip files alike.
class TextFile {
 public:
  explicit TextFile(const fs::path& path) : path_(path), file_(::gzopen(path.c_str(), "rbe"), ::gzclose_r) {
    if (!file_) unreadable(path_, std::generic_category().message(errno));
    ::gzbuffer(file_.get(), 1 << 17);
    if (path.extension() == ".gz" && ::gzdirect(file_.get()) != 0) unreadable(path_, "it is named .gz and is not gzip");
  }

  /// Fills the buffer as far as it can; 0 at the end.
  std::size_t read(std::span<unsigned char> buffer) {
    const int count = ::gzread(file_.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    int code = Z_OK;
    const char* const message = ::gzerror(file_.get(), &code);
    // A gzip stream that stops early reads as Z_BUF_ERROR after its last whole block.
    if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      unreadable(path_, code == Z_ERRNO ? std::generic_category().message(errno) : message);
    }
    return static_cast<std::size_t>(count);
  }
  /// Stored (compressed) bytes consumed so far.
  std::uint64_t position() const {
    const auto offset = ::gzoffset(file_.get());
    return offset < 0 ? 0 : static_cast<std::uint64_t>(offset);
  }

 private:
  fs::path path_;
  std::unique_ptr<gzFile_s, decltype(&::gzclose_r)> file_;
};

/// Cuts a stream of tokens into samples of seq_len + 1 that overlap by one.
class SampleCutter {
 public:
  SampleCutter(MdsWriter& writer, std::int64_t seq_len)
      : writer_(writer), sample_size_(static_cast<std::size_t>(seq_len) + 1) {}

  void push(std::uint16_t token) {
    sample_.push_back(token);
    ++tokens_;
    if (sample_.size() < sample_size_) return;
    writer_.write_tokens(sample_);
    ++samples_;
    sample_.assign(1, token);
  }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t samples() const { return samples_; }

 private:
  MdsWriter& writer_;
  std::size_t sample_size_;
  std::vector<std::uint16_t> sample_;
  std::int64_t tokens_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace

PackResult pack_text(const std::vector<fs::path>& paths, const fs::path& out, const PackOptions& options) {
  constexpr std::int64_t kMostTokens = 1 << 30;  // 2 GiB a sample, well inside a shard
  if (options.seq_len < 1 || options.seq_len > kMostTokens) {
    throw_error(Code::usage, "--seq-len: found {}, allowed are 1 to {} tokens; choose the model's sequence length",
                options.seq_len, kMostTokens);
  }
  PackResult result;
  const std::vector<Input> inputs = list_inputs(paths, result.empty_files);
  std::uint64_t stored = 0;
  for (const Input& input : inputs) stored += input.stored_bytes;

  MdsWriter writer(out, {{kTokensColumn, "ndarray:uint16"}}, options.writer);
  SampleCutter cutter(writer, options.seq_len);
  std::vector<unsigned char> buffer(1 << 18);
  std::uint64_t done = 0;
  for (const Input& input : inputs) {
    TextFile text(input.file);
    while (const std::size_t count = text.read(buffer)) {
      for (std::size_t i = 0; i < count; ++i) cutter.push(buffer[i]);
      result.bytes += count;
      if (options.progress) options.progress(done + text.position(), stored);
    }
    cutter.push(kEndOfText);
    done += input.stored_bytes;
    ++result.files;
  }
  if (options.progress) options.progress(done, stored);
  result.tokens = cutter.tokens();
  result.samples = cutter.samples();
  if (result.samples == 0) {
    throw_error(Code::usage,
                "{}: found {} tokens of text, allowed are at least seq_len + 1 = {}; give more text or lower --seq-len",
                paths.front().string(), result.tokens, options.seq_len + 1);
  }
  result.dropped_tokens = result.tokens - 1 - result.samples * options.seq_len;
  result.shards = writer.finish().shards;
  return result;
}

}  // namespace wt
