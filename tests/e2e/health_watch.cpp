// windtunnel health --watch beside a live trainer.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "bench/health/observation.hpp"
#include "configs/base/atomic_file.hpp"
#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

constexpr int kRanks = 4;

RunSpec watched_run(std::int64_t steps) {
  RunSpec run = with_layout(small_run(), 1, kRanks, kRanks);
  run.steps = steps, run.save = true, run.save_interval = 10;
  return run;
}

Started start(const RunSpec& run, const fs::path& folder) {
  const fs::path file = folder.string() + ".yaml";
  write_file_atomically(file, run_to_yaml(run));
  return start_trainer({"train", file.string(), "-o", folder.string()});
}

/// The CPU has no peak, so the threshold is a share of the run's best pace: a fifth, which only what is done to the run
/// goes below. After 150 s it has ended with status 124.
std::future<Ended> watch(const fs::path& folder) {
  const std::string arguments = "health --watch " + folder.string() + " --mfu-below 0.2 --kernel-log /dev/null -o " +
                                folder.string() + "-seen.json";
  return std::async(std::launch::async, [=] { return windtunnel(arguments, "timeout 150"); });
}

TrainingObservation seen_of(const fs::path& folder) {
  return read_fleet({folder.string() + "-seen.json"}).training.value();
}

/// A run without an end of its own, ended with the test, also where that throws.
class EndlessRun {
 public:
  explicit EndlessRun(const fs::path& folder) : agent_(start(watched_run(100'000), folder)) {}
  ~EndlessRun() { end(); }
  EndlessRun(const EndlessRun&) = delete;
  EndlessRun& operator=(const EndlessRun&) = delete;
  pid_t rank(int number) const { return rank_process(agent_.pid, number); }
  void end() {
    if (std::exchange(ended_, true)) return;
    kill(agent_.pid, SIGTERM);
    waitpid(agent_.pid, nullptr, 0);
  }

 private:
  Started agent_;
  bool ended_ = false;
};

bool over(const std::future<Ended>& ended) {
  return ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

TEST_CASE(
    "beside a run that is well the watch waits for its end, also where it goes on from an earlier one and loses a "
    "rank") {
  const fs::path folder = scratch("well");
  REQUIRE(wait_for(start(watched_run(10), folder)).status == 0);
  const Started agent = start(watched_run(120), folder);
  wait_for_step(folder, 20);
  std::future<Ended> watched = watch(folder);
  wait_for_step(folder, 40);
  kill(rank_process(agent.pid, 2), SIGKILL);
  const Ended trained = wait_for(agent), ended = watched.get();
  INFO(trained.said << ended.said);
  CHECK(trained.status == 0);
  CHECK_THAT(trained.said, Contains("restart: generation 1"));
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Contains("The training run is fine."));
  const TrainingObservation seen = seen_of(folder);
  CHECK(seen.ended);
  CHECK(seen.steps.size() == 120);
}

TEST_CASE("a rank that holds up every step is slow hardware, found while the run goes on") {
  const fs::path folder = scratch("slow");
  std::future<Ended> watched;  // destroyed after the run that it waits for
  EndlessRun run(folder);
  wait_for_step(folder, 20);
  std::vector<double> usual;
  for (const TrainingStep& step : read_training(folder, 0).steps) usual.push_back(step.step_s);
  std::nth_element(usual.begin(), usual.begin() + 10, usual.end());
  watched = watch(folder);
  const pid_t slow = run.rank(3);
  for (std::size_t step = steps_of(folder).size(); !over(watched); ++step) {  // every step waits 20 usual ones
    kill(slow, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::duration<double>(20 * usual[10]));
    kill(slow, SIGCONT);
    wait_for_step(folder, step + 1);
  }
  const Ended ended = watched.get();
  run.end();
  INFO(ended.said);
  CHECK(ended.status == 1);
  CHECK_THAT(ended.said, Contains("The training run shows: slow hardware.") &&
                             Contains("of the difference waiting for collectives"));
  const TrainingObservation seen = seen_of(folder);
  CHECK_FALSE(seen.ended);
  CHECK(seen.steps.back().expert_imbalance.has_value());
}

// Hidden ("."): a test of its own to ctest, since it mostly waits.
TEST_CASE("a run that stands still is a silent failure after a minute", "[.silence]") {
  const fs::path folder = scratch("still");
  EndlessRun run(folder);
  wait_for_step(folder, 20);
  for (int rank = 0; rank < kRanks; ++rank) kill(run.rank(rank), SIGSTOP);
  const Ended ended = watch(folder).get();
  run.end();
  INFO(ended.said);
  CHECK(ended.status == 1);
  const TrainingObservation seen = seen_of(folder);
  CHECK(seen.now_unix_s - seen.last_sign_unix_s > 60);
  // Ranks on one machine meet over loopback, but others may use its network.
  if (seen.network_Bps.value_or(0) <= DiagnosisOptions{}.silent_Bps)
    CHECK_THAT(ended.said, Contains("The training run shows: silent failure.") && Contains("no step for"));
  else
    CHECK_THAT(ended.said, Contains("undecided") && Contains("the network moves"));
}
