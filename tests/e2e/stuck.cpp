// A rank that no longer answers, or that ends early: the others end within seconds, with one message that names the op,
// the group and the rank; under the agent the run recovers.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/faults/processes.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;
using Catch::Contains;

namespace {

/// Long enough to be stopped in the middle, with a limit short enough to wait for.
RunSpec stoppable_run() {
  RunSpec run = with_layout(small_run(), 2, 2, 2);
  run.model.layers = 2, run.global_batch = 8;
  run.steps = 60, run.save = true, run.save_interval = 10, run.dist_timeout_s = 5;
  return run;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string last_of(const std::string& lines) {
  return lines.size() > 3000 ? lines.substr(lines.size() - 3000) : lines;
}

}  // namespace

TEST_CASE("a stopped rank ends the generation: op, group and rank are named, and the run recovers bit for bit") {
  const RunSpec run = stoppable_run();
  const fs::path folder = scratch("stopped"), file = scratch("stopped.yaml");
  write_file_atomically(file, run_to_yaml(run));
  const Started agent = start_trainer({"train", file.string(), "-o", folder.string()});
  wait_for_step(folder, 14);
  kill(rank_process(agent.pid, 2), SIGSTOP);
  const Ended ended = wait_for(agent);
  INFO(last_of(ended.said));
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Contains("was not over after 5 s (dist_timeout)") && Contains("rank 2 is silent"));
  CHECK(count(ended.said, "dist_timeout") == 1);
  const auto restarts = read_json(folder / "agent.json").at("restarts");
  REQUIRE(restarts.size() == 1);
  CHECK_THAT(restarts[0].at("message").get<std::string>(),
             Contains("over axis") && Contains("ranks") && Contains(" of step ") && Contains("rank 2 is silent"));
  CHECK(restarts[0].at("checkpoint_step").get<int>() >= 10);
  const fs::path undisturbed = trained(run);
  CHECK(steps_of(folder) == steps_of(undisturbed));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(undisturbed))));
}

TEST_CASE("so it is without an agent: the other ranks end, one of them says why") {
  const fs::path folder = scratch("stopped-by-hand");
  std::vector<Started> ranks = start_ranks(stoppable_run(), folder);
  wait_for_step(folder, 3);
  kill(ranks[1].pid, SIGSTOP);
  std::string said;
  for (const int rank : {0, 2, 3}) {
    const Ended ended = wait_for(ranks[static_cast<std::size_t>(rank)]);
    CHECK(ended.status == 4);
    said += ended.said;
  }
  kill(ranks[1].pid, SIGKILL);
  CHECK(wait_for(ranks[1]).status == 128 + SIGKILL);
  INFO(said);
  CHECK(count(said, "windtunnel: ") == 1);
  CHECK_THAT(said, Contains("rank 1 is silent (stopped, dead or cut off), last seen at ") && Contains("dist_timeout"));
}

TEST_CASE("the rank that hosts the store is stopped: the others still end") {
  const fs::path folder = scratch("host-stopped");
  std::vector<Started> ranks = start_ranks(stoppable_run(), folder);
  wait_for_step(folder, 3);
  kill(ranks[0].pid, SIGSTOP);
  for (const int rank : {1, 2, 3}) {
    const Ended ended = wait_for(ranks[static_cast<std::size_t>(rank)]);
    INFO(ended.said);
    CHECK(ended.status == 4);
    CHECK_THAT(ended.said, Contains("dist_timeout") && Contains("the store at 127.0.0.1:") &&
                               Contains("in rank 0, does not answer"));
  }
  kill(ranks[0].pid, SIGKILL);
  CHECK(wait_for(ranks[0]).status == 128 + SIGKILL);
}

TEST_CASE("the rank that hosts the store is killed: the others end, too") {
  const fs::path folder = scratch("host-killed");
  std::vector<Started> ranks = start_ranks(stoppable_run(), folder);
  wait_for_step(folder, 3);
  kill(ranks[0].pid, SIGKILL);
  CHECK(wait_for(ranks[0]).status == 128 + SIGKILL);
  for (const int rank : {1, 2, 3}) {
    const Ended ended = wait_for(ranks[static_cast<std::size_t>(rank)]);
    INFO(ended.said);
    CHECK(ended.status == 4);
    CHECK_THAT(ended.said, Contains("the store at 127.0.0.1:") && Contains("in rank 0, does not answer"));
  }
}

TEST_CASE("a rank that ends early takes the others with it, and its reason is what is said") {
  // Rank 3 alone has data that does not fit: it reads another vocabulary's tokens.
  RunSpec run = stoppable_run();
  const fs::path folder = scratch("early");
  std::vector<Started> ranks = start_ranks(run, folder, [](RunSpec& own, int rank) {
    if (rank == 3) own.model.vocab = 100;
  });
  std::string said;
  for (const Started& rank : ranks) {
    const Ended ended = wait_for(rank);
    CHECK(ended.status == 2);
    said += ended.said;
  }
  INFO(said);
  CHECK(count(said, "windtunnel: ") == 1);
  CHECK_THAT(said, Contains("windtunnel: rank 3: ") && Contains("vocab_size is 100"));
}

TEST_CASE("a killed rank is missed at once, and named") {
  const fs::path folder = scratch("killed");
  std::vector<Started> ranks = start_ranks(stoppable_run(), folder);
  wait_for_step(folder, 3);
  kill(ranks[3].pid, SIGKILL);
  CHECK(wait_for(ranks[3]).status == 128 + SIGKILL);
  std::string said;
  for (int rank = 0; rank < 3; ++rank) {
    const Ended ended = wait_for(ranks[static_cast<std::size_t>(rank)]);
    CHECK(ended.status == 4);
    said += ended.said;
  }
  INFO(said);
  CHECK(count(said, "windtunnel: ") == 1);
  CHECK_THAT(said, Contains("rank 3 is silent") && Contains(" failed: "));
}

TEST_CASE("a rank that never starts is named") {
  const fs::path folder = scratch("absent");
  std::vector<Started> ranks = start_ranks(stoppable_run(), folder, {}, 3);
  std::string said;
  for (const Started& rank : ranks) {
    const Ended ended = wait_for(rank);
    CHECK(ended.status == 4);
    said += ended.said;
  }
  INFO(said);
  CHECK(count(said, "windtunnel: ") == 1);
  CHECK_THAT(said, Contains("rank 3 has not started") && Contains("connecting group"));
}

TEST_CASE("the agent is stopped, with it the store: a rank that waits for nobody ends, too") {
  RunSpec run = small_run();
  run.steps = 100000, run.dist_timeout_s = 2;
  const fs::path folder = scratch("agent-stopped"), file = scratch("agent-stopped.yaml");
  write_file_atomically(file, run_to_yaml(run));
  const Started agent = start_trainer({"train", file.string(), "-o", folder.string(), "--max-restarts", "0"});
  wait_for_step(folder, 3);
  const pid_t rank = rank_process(agent.pid, 0);
  kill(agent.pid, SIGSTOP);
  for (int tenth = 0; tenth < 600 && !gone(rank); ++tenth) usleep(100'000);
  CHECK(gone(rank));
  kill(agent.pid, SIGCONT);
  const Ended ended = wait_for(agent);
  INFO(last_of(ended.said));
  CHECK(ended.status == 4);
  CHECK_THAT(ended.said, Contains("rank 0: no answer for 2 s (dist_timeout): the store at 127.0.0.1:") &&
                             Contains("in the launcher, does not answer"));
}
