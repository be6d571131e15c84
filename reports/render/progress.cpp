#include "reports/render/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "configs/base/quantity.hpp"
#include "reports/render/terminal.hpp"

namespace wt {
namespace {

constexpr int kBarCells = 24;

std::string truncated(const std::string& text, std::size_t width) {
  std::size_t points = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && points++ == width) return text.substr(0, i);
  return text;
}

double share_done(std::int64_t done, std::int64_t total) {
  return std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
}

/// A note without line breaks and control characters.
std::string in_line(const std::string& note) {
  std::string out;
  for (char c : note.empty() ? "" : ", " + note) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return out;
}

}  // namespace

std::string progress_line(const std::string& title, std::int64_t done, std::int64_t total, double elapsed_s,
                          const std::string& note, std::size_t width) {
  std::string line = title;
  if (total > 0) {
    const double share = share_done(done, total);
    const int full = static_cast<int>(share * kBarCells);
    line += " [";
    for (int i = 0; i < kBarCells; ++i) line += i < full ? "█" : " ";
    line += fmt::format("] {}/{}", done, total);
  }
  line += ", " + format_seconds(elapsed_s);
  return truncated(line + in_line(note), width);
}

std::string progress_words(const std::string& title, std::int64_t done, std::int64_t total, double elapsed_s,
                           const std::string& note) {
  const std::string how_far = total > 0 ? fmt::format(", {} of {}", done, total) : "";
  return title + how_far + ", " + format_seconds(elapsed_s) + in_line(note);
}

Progress::Progress(std::string title, std::int64_t total, std::FILE* stream, std::chrono::milliseconds quiet)
    : title_(std::move(title)), total_(total), stream_(stream), terminal_(isatty(fileno(stream)) == 1), quiet_(quiet) {}

void Progress::update(std::int64_t done, const std::string& note) {
  using namespace std::chrono_literals;
  const Clock::time_point now = Clock::now();
  if (now - begun_ < quiet_ || (drawn_ && now - last_ < (terminal_ ? 100ms : 5000ms))) return;
  last_ = now;
  drawn_ = true;
  const double elapsed_s = std::chrono::duration<double>(now - part_begun_).count();
  if (terminal_)
    fmt::print(stream_, "\r{}\x1b[K",
               progress_line(title_, done, total_, elapsed_s, note, terminal_width(fileno(stream_)) - 1));
  else
    fmt::print(stream_, "{}\n", progress_words(title_, done, total_, elapsed_s, note));
  std::fflush(stream_);
}

void Progress::update(const std::string& title, std::int64_t done, std::int64_t total, const std::string& note) {
  if (title != title_) part_begun_ = Clock::now();
  title_ = title;
  total_ = total;
  update(done, note);
}

void Progress::finish() {
  if (!drawn_ || !terminal_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  drawn_ = false;
}

}  // namespace wt
