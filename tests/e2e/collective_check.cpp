// The exchange of what is about to be issued, which debug builds make before every collective: on here. Four processes
// walk the step program; a rank with a doctored one is found before anything of it is sent.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/executor/executor.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using namespace wt::test;

namespace {

RunSpec four_ranks() {
  RunSpec run = with_layout(small_run(), 2, 2, 2);
  run.model.layers = 2, run.global_batch = 8;
  return run;
}

/// One step of the rank's program, on tokens made up.
void run_rank(const RunSpec& run, const RankEnvironment& environment) {
  at::set_num_threads(1);
  run_watched(environment, 20, [&](RankWatch& watch) {
    const auto communicators = make_gloo_communicators(environment, Mesh(run.layout), watch, OrderCheck::on);
    const auto clock = make_step_clock(at::kCPU);
    Executor executor(run, RankWork(run, environment.rank, false), *communicators, *clock);
    executor.run_step(1, 1e-3, [&](int) {
      const at::Tensor tokens = at::arange(run.layout.microbatch * run.seq, at::kLong).remainder(run.model.vocab);
      return Microbatch{tokens, tokens.unsqueeze(0), {}};
    });
    communicators->barrier();
  });
}

/// Runs the ranks, rank 1 with a run that `doctor` has changed, and returns what all of them said; `status`: of each.
std::string said_by(const std::function<void(RunSpec&)>& doctor, int status) {
  static int count = 0;
  const auto log = scratch(fmt::format("ranks-{}.txt", ++count));
  const int port = free_port();
  const RunSpec same = four_ranks();  // packs its data, before there are ranks
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid > 0) {
      ranks.push_back(pid);
      continue;
    }
    if (!std::freopen(log.c_str(), "a", stderr)) _exit(9);
    RankEnvironment environment;
    environment.rank = rank, environment.world = 4, environment.master_port = port;
    RunSpec run = same;
    if (rank == 1) doctor(run);
    run_rank(run, environment);
    _exit(0);
  }
  for (const pid_t pid : ranks) {
    int ended = 0;
    waitpid(pid, &ended, 0);
    CHECK((WIFEXITED(ended) ? WEXITSTATUS(ended) : 128) == status);
  }
  const std::string said = read_bytes(log);
  UNSCOPED_INFO(said);
  return said;
}

using Catch::Contains;

}  // namespace

TEST_CASE("ranks with one program pass the check") {
  CHECK_THAT(said_by([](RunSpec&) {}, 0), !Contains("windtunnel:"));
}

TEST_CASE("a rank whose program differs is found: op, group, ranks and both calls are named") {
  const std::string said = said_by([](RunSpec& run) { run.layout.recompute = Recompute::block; }, 4);
  CHECK_THAT(said, Contains("order of collectives over axis expert (group 0 of 2 ranks)") &&
                       Contains("issues mb0.L1.collect.bwd of step 1: all_to_all") &&
                       Contains("issues mb0.L1.dispatch.rec of step 1: all_to_all"));
}

TEST_CASE("a rank that gathers another size is found") {
  const std::string said = said_by([](RunSpec& run) { run.model.vocab += 1; }, 4);
  CHECK_THAT(said, Contains("order of collectives over axis shard (group 0 of 2 ranks)") &&
                       Contains("mb0.embedding.unshard.fwd of step 1: all_gather over axis shard of 90464 bytes") &&
                       Contains("of 90816 bytes"));
}
