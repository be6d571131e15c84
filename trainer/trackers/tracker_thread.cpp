#include "trainer/trackers/tracker_thread.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "configs/base/standard_error.hpp"

namespace wt {
namespace {

using SteadyClock = std::chrono::steady_clock;

SteadyClock::duration ticks(double seconds) {
  return std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

/// Shared with the thread; outlives the TrackerThread if a call hangs.
struct TrackerThread::Shared {
  std::unique_ptr<Tracker> tracker;
  std::string name;
  TrackedRun run;
  TrackerThreadOptions options;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<TrackedStep> waiting;
  TrackerCounts counts;
  std::optional<TrackedEnd> how;        ///< set when the end was requested
  SteadyClock::time_point last_call{};  ///< deadline after that
  bool calling = false;                 ///< a call is running, and may hang
  std::size_t in_call = 0;              ///< steps of the running call
  bool over = false;                    ///< the thread has ended
  std::string problem;                  ///< of the last failed call
  bool told = false, told_dropped = false, told_end = false;

  // Used only by the thread.
  bool begun = false;
  double pause_s = 0;

  void tell(const std::string& what) { print_error("{}: {}\n", name, what); }
  void work();
  enum class Outcome { done, later, refused };
  Outcome attempt(std::unique_lock<std::mutex>& lock, const std::function<void()>& call);
  void log_some(std::unique_lock<std::mutex>& lock);
};

/// Runs the call without the lock. Result `later`: it may be repeated after pause_s.
TrackerThread::Shared::Outcome TrackerThread::Shared::attempt(std::unique_lock<std::mutex>& lock,
                                                              const std::function<void()>& call) {
  calling = true;
  changed.notify_all();
  lock.unlock();
  std::string failed;
  bool refused = false;
  try {
    call();
  } catch (const TrackerRefused& e) {
    failed = e.what(), refused = true;
  } catch (const std::exception& e) {
    failed = e.what();
  }
  lock.lock();
  calling = false;
  if (failed.empty()) {
    if (pause_s > 0 && !how) tell("answers again");
    pause_s = 0, told = false;
    return Outcome::done;
  }
  ++counts.failures;
  problem = failed;
  if (refused) {
    if (!std::exchange(told_dropped, true)) tell("does not take what it is sent, which is left out: " + failed);
    return Outcome::refused;
  }
  if (!std::exchange(told, true)) tell(failed + "; tried again while the run goes on");
  pause_s = std::clamp(2 * pause_s, options.least_pause_s, options.most_pause_s);
  return Outcome::later;
}

void TrackerThread::Shared::log_some(std::unique_lock<std::mutex>& lock) {
  std::vector<TrackedStep> steps;
  const std::size_t n = std::min(options.batch, waiting.size());
  std::move(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(n), std::back_inserter(steps));
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(n));
  in_call = n;
  const Outcome outcome = attempt(lock, [&] { tracker->log(steps); });
  in_call = 0;
  if (outcome == Outcome::later)
    waiting.insert(waiting.begin(), std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
  else
    (outcome == Outcome::done ? counts.logged : counts.dropped) += static_cast<std::int64_t>(n);
}

void TrackerThread::Shared::work() {
  std::unique_lock lock(mutex);
  const auto late = [&] { return how && SteadyClock::now() >= last_call; };
  while (!late()) {
    if (!begun) {
      const Outcome outcome = attempt(lock, [&] { tracker->begin(run); });
      if (outcome == Outcome::refused) break;
      begun = outcome == Outcome::done;
    }
    // A failed call is repeated at the beginning of a later turn.
    for (bool first = true; begun && !waiting.empty() && (first || pause_s == 0) && !late(); first = false)
      log_some(lock);
    if (how && begun && waiting.empty() && attempt(lock, [&, asked = *how] { tracker->end(asked); }) != Outcome::later)
      break;
    // Wait for the next flush or attempt; at the end do not wait for the flush.
    const bool ending = how.has_value();
    auto until = SteadyClock::now() + ticks(pause_s > 0 ? pause_s : options.flush_s);
    if (ending) until = std::min(until, last_call);
    changed.wait_until(lock, until, [&] { return how.has_value() != ending; });
  }
  over = true;
  counts.dropped += static_cast<std::int64_t>(waiting.size());
  waiting.clear();
  changed.notify_all();
}

TrackerThread::TrackerThread(std::unique_ptr<Tracker> tracker, TrackedRun run, const TrackerThreadOptions& options)
    : shared_(std::make_shared<Shared>()) {
  shared_->tracker = std::move(tracker);
  shared_->name = shared_->tracker->name();
  shared_->run = std::move(run);
  shared_->options = options;
  // Signals must be delivered to the training threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([shared = shared_] { shared->work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TrackerThread::~TrackerThread() { end(TrackedEnd::asked_to_end, 0); }

void TrackerThread::step(TrackedStep step) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->how) return;
  if (shared_->over) {  // it refused the run
    ++shared_->counts.dropped;
    return;
  }
  if (shared_->waiting.size() >= shared_->options.capacity) {
    shared_->waiting.pop_front();
    ++shared_->counts.dropped;
    if (!std::exchange(shared_->told_dropped, true))
      shared_->tell("too many steps wait for it: the oldest are left out (metrics.jsonl has them)");
  }
  shared_->waiting.push_back(std::move(step));
}

void TrackerThread::ask_to_end(TrackedEnd how, double at_most_s) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->how) return;
  shared_->how = how;
  shared_->last_call = SteadyClock::now() + ticks(at_most_s);
  shared_->changed.notify_all();
}

void TrackerThread::end(TrackedEnd how, double at_most_s) {
  ask_to_end(how, at_most_s);
  std::unique_lock lock(shared_->mutex);
  if (std::exchange(shared_->told_end, true)) return;
  shared_->changed.wait_until(lock, shared_->last_call, [&] { return shared_->over; });
  shared_->changed.wait(lock, [&] { return shared_->over || shared_->calling; });  // between calls it ends by itself
  const auto missing = shared_->counts.dropped + static_cast<std::int64_t>(shared_->waiting.size() + shared_->in_call);
  if (missing > 0 || !shared_->over)
    shared_->tell(fmt::format("{} steps logged, {} not{}; metrics.jsonl has all of them", shared_->counts.logged,
                              missing, shared_->problem.empty() ? "" : ": " + shared_->problem));
  const bool over = shared_->over;
  lock.unlock();
  // A thread that still runs at process exit could use libraries that are already cleaned up, so join if possible.
  if (over)
    thread_.join();
  else
    thread_.detach();
}

TrackerCounts TrackerThread::counts() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->counts;
}

}  // namespace wt
