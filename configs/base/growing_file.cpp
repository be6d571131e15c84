#include "configs/base/growing_file.hpp"

#include <sys/stat.h>

#include <array>

#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr std::size_t kTail = 64, kMostOfLine = std::size_t{64} << 20;

}  // namespace

void GrowingFile::open() {
  std::error_code none;  // a pipe without a writer would be waited for
  const bool regular = std::filesystem::is_regular_file(file_, none);
  if (regular) in_ = std::ifstream(file_, std::ios::binary);
  if (!regular || !in_) throw_usage("{}: cannot be read; needs {}", file_.string(), needs_);
  struct stat now {};
  number_ = stat(file_.c_str(), &now) == 0 ? now.st_ino : 0;
  read_ = 0, tail_.clear();
}

/// Whether the bytes before the place read up to are other ones than before.
bool GrowingFile::was_rewritten() {
  std::string now(tail_.size(), '\0');
  in_.clear(), in_.seekg(read_ - std::ssize(tail_));
  in_.read(now.data(), std::ssize(now));
  return !in_ || now != tail_;
}

bool GrowingFile::look(const std::function<void(const std::string&)>& line, const std::function<void(Anew)>& anew) {
  struct stat now {};
  const bool there = stat(file_.c_str(), &now) == 0;
  if (!in_.is_open()) {
    open();
    anew(Anew::opened);
  } else if (there && now.st_ino != number_) {
    try {
      read(line);
    } catch (...) {  // what cannot be read of the old file keeps nobody from the new one
      open();
      anew(Anew::replaced);
      throw;
    }
    open();
    anew(Anew::replaced);
  } else if (now.st_size < read_ || was_rewritten()) {
    if (there) open();
    if (there) anew(Anew::truncated);
  }
  read(line);
  return there;
}

void GrowingFile::read(const std::function<void(const std::string&)>& line) {
  in_.clear(), in_.seekg(read_);
  std::array<char, 1 << 16> block{};
  std::string text;
  for (std::size_t searched = 0; in_.read(block.data(), block.size()), in_.gcount() > 0; searched = text.size()) {
    text.append(block.data(), static_cast<std::size_t>(in_.gcount()));
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', std::max(begin, searched))) != std::string::npos; begin = end + 1) {
      const std::string whole = text.substr(begin, end - begin);
      line(whole);
      read_ += std::ssize(whole) + 1;
      tail_ += whole + '\n';
      tail_.erase(0, tail_.size() - std::min(tail_.size(), kTail));
    }
    text.erase(0, begin);
    if (text.size() > kMostOfLine)
      throw_usage("{}: found a line of more than 64 MiB; needs {}", file_.string(), needs_);
  }
}

}  // namespace wt
