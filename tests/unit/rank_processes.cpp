// Processes of an agent: started with their environment, seen to end, killed, and reported where a kill does not help.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "configs/base/clock.hpp"
#include "configs/base/process.hpp"
#include "trainer/communication/rank_watch.hpp"
#include "trainer/communication/storage_progress.hpp"
#include "trainer/launch/rank_generation.hpp"
#include "trainer/launch/rank_processes.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;

namespace {

RankProcesses::Ended wait_for_one(RankProcesses& processes) {
  for (const double begin = steady_s(); steady_s() - begin < 60;) {
    if (const auto ended = processes.next_ended()) return *ended;
    pause_briefly();
  }
  FAIL("no process has ended within a minute");
  return {};
}

}  // namespace

TEST_CASE("a process gets its own variables and its parent's id; its end is told once") {
  RankProcesses processes;
  processes.start(3, {"/bin/sh", "-c", "test \"$RANK/$WINDTUNNEL_PARENT\" = 3/$PPID && exit 7"}, {{"RANK", "3"}});
  const auto ended = wait_for_one(processes);
  CHECK(ended.rank == 3);
  CHECK(cause_of(ended.status) == "exit status 7");
  CHECK(processes.running().empty());
  CHECK_FALSE(processes.next_ended());
}

TEST_CASE("stopped processes are killed, too") {
  RankProcesses processes;
  for (const std::int64_t rank : {0, 1}) processes.start(rank, {"/bin/sleep", "100"}, {});
  for (const auto& [pid, rank] : processes.running()) kill(pid, SIGSTOP);
  processes.kill_all();
  CHECK(processes.running().empty());
}

TEST_CASE("a process that cannot be killed in time is named") {
  RankProcesses processes;
  processes.start(5, {"/bin/sleep", "100"}, {});
  const pid_t pid = processes.running().begin()->first;
  CHECK_THROWS_WITH(processes.kill_all(-1), Catch::Contains("rank 5 (process " + std::to_string(pid) + ")") &&
                                                Catch::Contains("cannot be killed"));
  waitpid(pid, nullptr, 0);
}

TEST_CASE("a program that is not there is an error") {
  RankProcesses processes;
  CHECK_THROWS_WITH(processes.start(2, {"/no/such/program"}, {}),
                    Catch::Contains("rank 2") && Catch::Contains("could not be started"));
}

TEST_CASE("a node is lost when all of its ranks are killed, one some time after the other") {
  GracePeriod none(0);
  const auto killed_of = [&](const std::string& of_rank_1, std::int64_t ranks_per_node, double node_goes_s = 60) {
    Generation generation;
    generation.node_goes_s = node_goes_s;
    generation.command = {"/bin/sh", "-c",
                          "case $RANK in 0) kill -9 $$;; 1) sleep 1; " + of_rank_1 + ";; esac; exec sleep 100"};
    generation.world = 4, generation.ranks_per_node = ranks_per_node;
    return run_generation(generation, none).killed;
  };
  using Ranks = std::vector<std::int64_t>;
  CHECK(killed_of("kill -9 $$", 2) == Ranks{0, 1});
  CHECK(killed_of("exit 4", 2) == Ranks{0});      // it lost its peer
  CHECK(killed_of("true", 2, 2) == Ranks{0});     // it lives on
  CHECK(killed_of("kill -9 $$", 1) == Ranks{0});  // of another node: nobody waits for it
}

TEST_CASE("ranks that live and come no further are ended, with the place where they are") {
  GracePeriod none(0);
  Generation generation;
  generation.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "a rank that stands still"};
  generation.still_s = 5;
  const GenerationEnd end = run_generation(generation, none);
  CHECK(end.how == GenerationEnd::How::failed);
  CHECK(end.cause == "silence");
  CHECK(end.message == "no rank has come further for 5 s; rank 0 is at checkpoint of step 7");
}

// The one above starts it.
TEST_CASE("a rank that stands still", "[.rank]") {
  run_watched(RankEnvironment::read(), 30, [](RankWatch& watch) {
    watch.at(7, "checkpoint");
    for (;;) pause();
  });
}

TEST_CASE("ranks that come no further while their storage moves are left alone") {
  GracePeriod none(0);
  Generation generation;
  generation.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "a rank that fetches"};
  generation.still_s = 10;
  CHECK(run_generation(generation, none).how == GenerationEnd::How::finished);
}

// The one above starts it.
TEST_CASE("a rank that fetches", "[.rank]") {
  run_watched(RankEnvironment::read(), 30, [](RankWatch& watch) {
    watch.at(0, "loading the checkpoint");
    for (int i = 0; i < 60; ++i, usleep(250'000))
      watch.store().set(kStorageMoves, std::vector<std::uint8_t>(static_cast<std::size_t>(i + 1), '.'));
  });
}

TEST_CASE("a notice that comes before a rank can take it is not lost") {
  RankProcesses processes;
  processes.start(0, {std::filesystem::read_symlink("/proc/self/exe").string(), "a rank that takes notice late"}, {});
  kill(processes.running().begin()->first, SIGTERM);
  CHECK(cause_of(wait_for_one(processes).status) == "exit status 7");
}

// The one above starts it.
TEST_CASE("a rank that takes notice late", "[.rank]") {
  usleep(200'000);
  CHECK(stop_requested() == 0);
  take_notice();
  _exit(stop_requested() == SIGTERM ? 7 : 8);
}

TEST_CASE("ends are seen also where this process was started with SIGCHLD ignored") {
  signal(SIGCHLD, SIG_IGN);
  RankProcesses processes;
  processes.start(0, {"/bin/sh", "-c", "exit 7"}, {});
  CHECK(cause_of(wait_for_one(processes).status) == "exit status 7");
}
