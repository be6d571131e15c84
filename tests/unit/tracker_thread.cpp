// The thread of a tracker: it never holds up who trains, it retries, and it ends.
#include "trainer/trackers/tracker_thread.hpp"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "configs/base/clock.hpp"

using namespace wt;

namespace {

/// What a tracker was told, and what it is to answer.
struct Script {
  std::function<void()> begin = [] {}, end = [] {};
  std::function<void(std::int64_t step)> log = [](std::int64_t) {};
  std::mutex mutex;
  std::vector<std::string> told;
  void tell(const std::string& what) {
    const std::lock_guard lock(mutex);
    told.push_back(what);
  }
  std::vector<std::string> so_far() {
    const std::lock_guard lock(mutex);
    return told;
  }
};

class ScriptedTracker : public Tracker {
 public:
  explicit ScriptedTracker(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  std::string name() const override { return "scripted"; }
  void begin(const TrackedRun& run) override {
    script_->begin();
    script_->tell("begin " + run.name);
  }
  void log(std::span<const TrackedStep> steps) override {
    for (const TrackedStep& step : steps) script_->log(step.step);  // all or none
    for (const TrackedStep& step : steps) script_->tell(std::to_string(step.step));
  }
  void end(TrackedEnd how) override {
    script_->end();
    script_->tell(how == TrackedEnd::finished ? "finished" : "failed");
  }

 private:
  std::shared_ptr<Script> script_;
};

const TrackerThreadOptions kFast{
    .capacity = 100, .batch = 1, .flush_s = 0.001, .least_pause_s = 0.001, .most_pause_s = 0.002};
constexpr double kLong_s = 60;

std::unique_ptr<TrackerThread> start(const std::shared_ptr<Script>& script, TrackerThreadOptions options = kFast) {
  return std::make_unique<TrackerThread>(std::make_unique<ScriptedTracker>(script), TrackedRun{.name = "r"}, options);
}

TrackedStep numbered(std::int64_t step) { return {.step = step}; }

/// What fails so many times and then does not.
std::function<void()> fails(int times) {
  return [left = std::make_shared<std::atomic<int>>(times)] {
    if (left->fetch_sub(1) > 0) throw std::runtime_error("down");
  };
}

using Told = std::vector<std::string>;

}  // namespace

TEST_CASE("steps are logged in order between begin and end") {
  const auto script = std::make_shared<Script>();
  const auto thread = start(script, {.flush_s = 1000});  // the end does not wait for the next flush
  for (int i = 1; i <= 3; ++i) thread->step(numbered(i));
  thread->end(TrackedEnd::finished, kLong_s);
  CHECK(script->so_far() == Told{"begin r", "1", "2", "3", "finished"});
  CHECK(thread->counts().logged == 3);
  CHECK(thread->counts().dropped == 0);
}

TEST_CASE("a tracker that is down at the start and fails at times gets every step once") {
  const auto script = std::make_shared<Script>();
  script->begin = fails(3);
  script->end = fails(2);
  script->log = [f = fails(4)](std::int64_t step) {
    if (step % 2 == 0) f();
  };
  const auto thread = start(script);
  for (int i = 1; i <= 4; ++i) thread->step(numbered(i));
  thread->end(TrackedEnd::failed, kLong_s);
  CHECK(script->so_far() == Told{"begin r", "1", "2", "3", "4", "failed"});
  CHECK(thread->counts().failures == 9);
}

TEST_CASE("what a tracker refuses is left out, and the rest is logged") {
  const auto script = std::make_shared<Script>();
  script->log = [](std::int64_t step) {
    if (step == 2) throw TrackerRefused("no such name");
  };
  const auto thread = start(script);
  for (int i = 1; i <= 3; ++i) thread->step(numbered(i));
  thread->end(TrackedEnd::finished, kLong_s);
  CHECK(script->so_far() == Told{"begin r", "1", "3", "finished"});
  CHECK(thread->counts().logged == 2);
  CHECK(thread->counts().dropped == 1);
}

TEST_CASE("a tracker that refuses the run is asked no more") {
  const auto script = std::make_shared<Script>();
  script->begin = [] { throw TrackerRefused("no such experiment"); };
  const auto thread = start(script);
  CHECK(wait_until(kLong_s, 0.001, [&] { return thread->counts().failures == 1; }));
  for (int i = 1; i <= 3; ++i) thread->step(numbered(i));
  thread->end(TrackedEnd::finished, kLong_s);
  CHECK(script->so_far().empty());
  CHECK(thread->counts().dropped == 3);
  CHECK(thread->counts().failures == 1);
}

TEST_CASE("the queue is bounded: the oldest steps are left out and counted") {
  const auto script = std::make_shared<Script>();
  std::atomic<bool> down = true;
  script->begin = [&] {
    if (down) throw std::runtime_error("down");
  };
  auto options = kFast;
  options.capacity = 5;
  const auto thread = start(script, options);
  for (int i = 1; i <= 20; ++i) thread->step(numbered(i));
  CHECK(thread->counts().dropped == 15);
  down = false;
  thread->end(TrackedEnd::finished, kLong_s);
  CHECK(script->so_far() == Told{"begin r", "16", "17", "18", "19", "20", "finished"});
}

TEST_CASE("a call that never returns holds up neither steps nor the end") {
  const auto script = std::make_shared<Script>();
  const auto gate = std::make_shared<std::pair<std::mutex, std::condition_variable>>();
  const auto open = std::make_shared<std::atomic<bool>>(false), in_call = std::make_shared<std::atomic<bool>>(false);
  script->log = [=](std::int64_t) {
    *in_call = true;
    std::unique_lock lock(gate->first);
    gate->second.wait(lock, [&] { return open->load(); });
  };
  {
    const auto thread = start(script);
    thread->step(numbered(1));
    CHECK(wait_until(kLong_s, 0.001, [&] { return in_call->load(); }));
    for (int i = 2; i <= 1000; ++i) thread->step(numbered(i));
    thread->end(TrackedEnd::finished, 0.05);
    CHECK(thread->counts().logged == 0);
  }
  // The thread that was left behind ends when its call does, and makes no other.
  {
    const std::lock_guard lock(gate->first);
    *open = true;
  }
  gate->second.notify_all();
  CHECK(wait_until(kLong_s, 0.001, [&] { return script->so_far() == Told{"begin r", "1"}; }));
}

TEST_CASE("a tracker that stays down lets the run end") {
  const auto script = std::make_shared<Script>();
  script->begin = [] { throw std::runtime_error("down"); };
  const auto thread = start(script);
  thread->step(numbered(1));
  thread->end(TrackedEnd::finished, 0.05);
  CHECK(script->so_far().empty());
  thread->step(numbered(2));  // too late, and no error
  thread->end(TrackedEnd::finished, kLong_s);
}
