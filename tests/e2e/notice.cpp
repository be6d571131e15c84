// A notice to end: all ranks save after the same step and end, and no step is lost.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/nightly.hpp"
#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;

namespace {

constexpr int kEndedOnRequest = 75;  // EX_TEMPFAIL

/// Saves at its end alone, so that what is saved before was saved because of the notice.
RunSpec long_run() {
  RunSpec run = saved_run(60);
  run.save_interval = 0;
  return run;
}

Started start_run(const RunSpec& run, const fs::path& folder) {
  const fs::path file = folder.string() + ".yaml";
  write_file_atomically(file, run_to_yaml(run));
  return start_trainer({"train", file.string(), "-o", folder.string()});
}

/// Everything done so far is saved, and the rest is what an undisturbed run does.
void check_nothing_lost(const RunSpec& run, const fs::path& folder) {
  const std::size_t done = steps_of(folder).size();
  REQUIRE((done >= 5 && done < 60));
  CHECK(latest_checkpoint(folder) == checkpoint_of(folder, static_cast<std::int64_t>(done)));
  CHECK(!fs::exists(folder / "summary.json"));  // which says that a run is over
  CHECK(leftovers(folder).empty());
  const Ended again = train(run, folder);
  INFO(again.said);
  REQUIRE(again.status == 0);
  CHECK_THAT(again.said, Catch::Contains(fmt::format("continuing after step {} ", done)));
  CHECK(steps_of(folder) == steps_of(trained(run)));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(run)))));
}

bool has_ranks(pid_t agent) {
  try {
    rank_process(agent, 0);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("SIGTERM and SIGUSR1 to the agent: saved, ended with a status of its own, 0 steps lost") {
  for (const int signal : nightly() ? std::vector{SIGTERM, SIGUSR1} : std::vector{SIGTERM}) {
    const fs::path folder = scratch(fmt::format("agent-{}", signal));
    const Started agent = start_run(long_run(), folder);
    wait_for_step(folder, 5);
    kill(agent.pid, signal);
    const Ended ended = wait_for(agent);
    INFO(ended.said);
    CHECK(ended.status == kEndedOnRequest);
    CHECK_THAT(ended.said, Catch::Contains("asked to end: stopped after step "));
    CHECK(!has_ranks(agent.pid));
    check_nothing_lost(long_run(), folder);
  }
}

TEST_CASE("so it is where a scheduler tells every process, and the agent its ranks once more", "[.nightly]") {
  const fs::path folder = scratch("everybody");
  const Started agent = start_run(long_run(), folder);
  wait_for_step(folder, 5);
  for (int rank = 0; rank < 4; ++rank) kill(rank_process(agent.pid, rank), SIGTERM);
  kill(agent.pid, SIGTERM);
  const Ended ended = wait_for(agent);
  INFO(ended.said);
  CHECK(ended.status == kEndedOnRequest);
  check_nothing_lost(long_run(), folder);
}

TEST_CASE("so it is without our agent, where one rank alone was told", "[.nightly]") {
  const fs::path folder = scratch("one-rank");
  const std::vector<Started> ranks = start_ranks(long_run(), folder);
  wait_for_step(folder, 5);
  kill(ranks[2].pid, SIGUSR1);
  for (const Started& rank : ranks) {
    const Ended ended = wait_for(rank);
    INFO(ended.said);
    CHECK(ended.status == kEndedOnRequest);
  }
  check_nothing_lost(long_run(), folder);
}

TEST_CASE("a run that saves nothing says so") {
  RunSpec run = long_run();
  run.save = false;
  const fs::path folder = scratch("unsaved");
  const Started agent = start_run(run, folder);
  wait_for_step(folder, 5);
  kill(agent.pid, SIGTERM);
  const Ended ended = wait_for(agent);
  CHECK(ended.status == kEndedOnRequest);
  CHECK_THAT(ended.said, Catch::Contains("nothing is saved (save: false)"));
  CHECK(checkpoint_steps(folder).empty());
}

TEST_CASE("a rank that cannot save is killed after the grace period, or at a second signal") {
  for (const bool second : {false, true}) {
    RunSpec run = long_run();
    run.resilience.grace_period_s = second ? 100 : 1;
    const fs::path folder = scratch(second ? "second-signal" : "grace-period");
    const Started agent = start_run(run, folder);
    wait_for_step(folder, 5);
    kill(rank_process(agent.pid, 1), SIGSTOP);
    kill(agent.pid, SIGTERM);
    if (second) usleep(2'200'000), kill(agent.pid, SIGTERM);  // sooner it counts as an echo of the first
    const Ended ended = wait_for(agent, 60);
    INFO(ended.said);
    CHECK(ended.status == 4);
    CHECK_THAT(ended.said, Catch::Contains("stopped by signal 15; the ranks are gone"));
    CHECK(!has_ranks(agent.pid));
  }
}

TEST_CASE("a second signal ends a rank without our agent, whatever it waits for") {
  const fs::path folder = scratch("second-signal-rank");
  const std::vector<Started> ranks = start_ranks(long_run(), folder);
  wait_for_step(folder, 5);
  kill(ranks[1].pid, SIGSTOP);
  kill(ranks[0].pid, SIGTERM);
  usleep(2'200'000);
  kill(ranks[0].pid, SIGTERM);
  CHECK(wait_for(ranks[0], 60).status == 128 + SIGTERM);
  for (const int rank : {1, 2, 3}) kill(ranks[static_cast<std::size_t>(rank)].pid, SIGKILL);
  for (const int rank : {1, 2, 3}) wait_for(ranks[static_cast<std::size_t>(rank)]);
}
