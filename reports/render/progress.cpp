#include "reports/render/progress.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "configs/spec/support/quantity.hpp"

namespace wt {
namespace {

constexpr int kBarCells = 24;

std::string truncated(const std::string& text, std::size_t width) {
  std::size_t points = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && points++ == width) return text.substr(0, i);
  return text;
}

std::size_t columns(std::FILE* stream) {
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

}  // namespace

std::string progress_line(const std::string& title, std::int64_t done, std::int64_t total, double elapsed_s,
                          const std::string& note, std::size_t width) {
  std::string line = title;
  if (total > 0) {
    const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
    const int full = static_cast<int>(share * kBarCells);
    line += " [";
    for (int i = 0; i < kBarCells; ++i) line += i < full ? "█" : " ";
    line += fmt::format("] {}/{}", done, total);
    if (share > 0 && share < 1) line += ", " + format_seconds(elapsed_s * (1 - share) / share) + " left";
  } else {
    line += ", " + format_seconds(elapsed_s);
  }
  for (char c : note.empty() ? "" : ", " + note) line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return truncated(line, width);
}

Progress::Progress(std::string title, std::int64_t total, std::FILE* stream)
    : title_(std::move(title)), total_(total), stream_(stream), terminal_(isatty(fileno(stream)) == 1) {}

void Progress::update(std::int64_t done, const std::string& note) {
  using namespace std::chrono_literals;
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now - started_ < 2s || (drawn_ && now - last_ < 100ms)) return;
  last_ = now;
  drawn_ = true;
  const double elapsed_s = std::chrono::duration<double>(now - started_).count();
  fmt::print(stream_, "\r{}\x1b[K", progress_line(title_, done, total_, elapsed_s, note, columns(stream_)));
  std::fflush(stream_);
}

void Progress::finish() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  drawn_ = false;
}

}  // namespace wt
