// A progress bar on standard error, for people only: nothing is written unless the stream is a terminal, nothing in the
// first two seconds, and never more than ten times a second.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace wt {

class Progress {
 public:
  /// `total` = 0: a status line without a bar, where the amount of work is unknown.
  explicit Progress(std::string title, std::int64_t total = 0, std::FILE* stream = stderr);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::int64_t done, const std::string& note = "");
  /// Takes the line away again; called by the destructor.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string title_;
  std::int64_t total_;
  std::FILE* stream_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point started_ = Clock::now(), last_ = started_;
};

/// The line itself, at most `width` code points: title, bar, done/total, time left from the mean rate so far, note.
std::string progress_line(const std::string& title, std::int64_t done, std::int64_t total, double elapsed_s,
                          const std::string& note, std::size_t width);

}  // namespace wt
