// A text file that another program writes to, read as it grows.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace wt {

class GrowingFile {
 public:
  /// `needs`: what the file should be, for errors.
  GrowingFile(std::filesystem::path file, std::string needs) : file_(std::move(file)), needs_(std::move(needs)) {}

  /// Why reading begins at the start of a file again.
  enum class Anew { opened, truncated, replaced };
  /// Calls `line` for each whole line that is new, without its end; a last line without an end waits. `anew` is called
  /// before the first line of another file, or of the same file if it was truncated; the rest of a file that was
  /// renamed is read first. If `line` throws, that line is read again the next time. False: no file of that name exists
  /// now. Throws Error{usage} for anything that is no regular file, and for a line of more than 64 MiB.
  bool look(const std::function<void(const std::string& line)>& line, const std::function<void(Anew how)>& anew);

 private:
  void open();
  bool was_rewritten();
  void read(const std::function<void(const std::string& line)>& line);

  std::filesystem::path file_;
  std::string needs_;
  std::ifstream in_;          ///< kept open, so that no other file gets its inode number
  std::uint64_t number_ = 0;  ///< inode number of the open file
  std::int64_t read_ = 0;     ///< bytes of whole lines
  std::string tail_;          ///< the last of them, to notice that the file was rewritten
};

}  // namespace wt
