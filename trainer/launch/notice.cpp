#include "trainer/launch/notice.hpp"

#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "configs/base/standard_error.hpp"
#include "trainer/device/clocks.hpp"

namespace wt {
namespace {

constexpr std::int64_t kEcho_ns = 2'000'000'000;

volatile sig_atomic_t first_signal = 0, came_again = 0;
volatile std::int64_t first_at_ns = 0;

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void remember(int signal) {
  if (first_signal == 0) {
    first_at_ns = now_ns();
    first_signal = signal;
  } else if (now_ns() - first_at_ns > kEcho_ns) {
    came_again = 1;
  }
}

void remember_or_end(int signal) {
  remember(signal);
  if (came_again) _exit(128 + signal);
}

void handle(std::initializer_list<int> signals, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) sigaction(signal, &action, nullptr);
}

}  // namespace

void catch_stop_signals() { handle({SIGINT, SIGTERM, SIGUSR1}, remember); }

sigset_t notice_signals() {
  sigset_t out;
  sigemptyset(&out);
  for (const int signal : {SIGTERM, SIGUSR1}) sigaddset(&out, signal);
  return out;
}

void take_notice() {
  handle({SIGTERM, SIGUSR1}, remember_or_end);
  const sigset_t signals = notice_signals();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

int stop_requested() { return first_signal; }

bool GracePeriod::over(const std::map<pid_t, std::int64_t>& ranks, bool know) {
  if (first_signal == 0) return false;
  if (first_signal == SIGINT || came_again || seconds_ == 0) return true;
  const double now = Clocks::now().wall_s;
  if (told_at_s_ == 0) {
    told_at_s_ = now;
    if (!know)
      for (const auto& [pid, rank] : ranks) kill(pid, SIGTERM);
    print_error("signal {}: the ranks save and end; they are killed after {:g} s, or at a second signal\n",
                static_cast<int>(first_signal), seconds_);
  }
  return now - told_at_s_ > seconds_;
}

}  // namespace wt
