// Progress of a command on standard error: a bar on a terminal, otherwise (logs, CI) a plain line every five seconds.
// Nothing is shown in the first two seconds. It draws only inside update(), so that it disturbs no measurement.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <string>

namespace wt {

class Progress {
 public:
  /// `total` = 0: a status line without a bar, for an unknown amount of work. Nothing is shown for the time `quiet`.
  explicit Progress(std::string title, std::int64_t total = 0, std::FILE* stream = stderr,
                    std::chrono::milliseconds quiet = std::chrono::seconds(2));
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::int64_t done, const std::string& note = "");
  /// The same for a part of the work. A new title restarts its time.
  void update(const std::string& title, std::int64_t done, std::int64_t total, const std::string& note = "");
  /// That as a function, for work that says what part it is at. The bar must outlive it.
  auto of_parts() {
    return [this](const std::string& title, std::int64_t done, std::int64_t total, const std::string& note) {
      update(title, done, total, note);
    };
  }
  /// Runs work that cannot report progress on its own thread, while the line here is updated; returns its result.
  template <typename Work>
  auto during(const Work& work) {
    auto result = std::async(std::launch::async, work);
    while (result.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) update(0);
    return result.get();
  }
  /// Removes the line from a terminal; called by the destructor.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string title_;
  std::int64_t total_;
  std::FILE* stream_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::milliseconds quiet_;
  Clock::time_point begun_ = Clock::now(), part_begun_ = begun_, last_ = begun_;
};

/// The bar, at most `width` code points: title, bar, done/total, time so far, note. A remaining time is not said: later
/// parts of a search are slower than its first, and an estimate would grow.
std::string progress_line(const std::string& title, std::int64_t done, std::int64_t total, double elapsed_s,
                          const std::string& note, std::size_t width);
/// The line for a log: "bounding layouts, 1200 of 8000, 12.0 s".
std::string progress_words(const std::string& title, std::int64_t done, std::int64_t total, double elapsed_s,
                           const std::string& note);

}  // namespace wt
