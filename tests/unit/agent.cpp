// What the agent does with ranks that end, come and stop in ways that a real step seldom shows: they are test cases of
// this program, each the rank of the case before it.
#include "trainer/launch/agent.hpp"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "tests/fixtures/temp_directory.hpp"
#include "trainer/communication/membership.hpp"
#include "trainer/communication/rank_watch.hpp"

using namespace wt;

namespace {

std::vector<std::string> rank_that(const std::string& test_case) {
  return {std::filesystem::read_symlink("/proc/self/exe").string(), test_case};
}

/// `replicas` of one rank, each a node; global batch 6.
AgentOptions agent_of(std::int64_t replicas, const std::string& test_case, AgentResult& told) {
  AgentOptions out;
  out.run.name = "made up", out.run.seq = 32, out.run.global_batch = 6, out.run.steps = 10, out.run.save = true;
  ModelSpec& m = out.run.model;
  m.name = "made up", m.layers = 2, m.d_model = 64, m.heads = 4, m.kv_heads = 2, m.head_dim = 16, m.ffn = 96;
  m.vocab = 257;
  out.run.layout.replicate = replicas;
  out.policy.on_loss = {Recovery::without_replica, Recovery::shrink, Recovery::restart};
  out.max_restarts = 5;
  out.command = [test_case](const RunSpec&) { return rank_that(test_case); };
  out.progress = [] { return RunProgress(); };
  out.record = [&told](const AgentResult& result) { told = result; };
  return out;
}

/// The rank trains with the others of its generation.
void in_step(RankWatch& watch, std::int64_t step) {
  watch.at(step, "forward");
  note_training(watch.store(), step - 1);
}

RankEnvironment that_regroups() {
  RankEnvironment out = RankEnvironment::read();
  out.regroups = true;
  return out;
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/// Rank 1 of two is killed when both train; the other one waits for what follows.
std::optional<Membership> after_loss_of_rank_1(const RankEnvironment& environment) {
  std::optional<Membership> next;
  run_watched(environment, 30, [&](RankWatch& watch) {
    in_step(watch, 6);
    while (in_training(watch.store()).ranks < 2) usleep(20'000);
    if (environment.rank == 1) die();
    next = watch.wait_for_next(/*planned=*/false);
  });
  return next;
}

}  // namespace

TEST_CASE("a rank dies while all save for a larger world: nobody goes on in memory, all start again") {
  AgentResult told;
  AgentOptions agent = agent_of(3, "a rank that dies when it is asked to end", told);
  agent.repair_s = [](int generation, std::int64_t) { return generation == 0 ? std::optional(0.0) : std::nullopt; };
  train_with_agent(agent);
  REQUIRE(told.restarts.size() == 2);
  CHECK(told.restarts[0].policy == "shrink to 2 ranks");
  CHECK(told.restarts[1].end.cause == "signal 9 (Killed)");
  CHECK(told.restarts[1].policy == "shrink to 1 ranks, grow to 2 ranks");  // node 2 is back, node 1 is not
  CHECK(told.restarts[1].nodes == std::vector<std::int64_t>{0, 2});
}

// The one above starts it.
TEST_CASE("a rank that dies when it is asked to end", "[.rank]") {
  const RankEnvironment environment = RankEnvironment::read();
  take_notice();
  run_watched(environment, 30, [&](RankWatch& watch) {
    if (watch.generation() == 0 && environment.rank == 2) die();
    if (watch.generation() > 1) return;
    in_step(watch, 1);
    while (stop_requested() == 0) usleep(20'000);
    if (environment.rank == 1) die();
    sleep(2);
    _exit(kEndedOnRequest);
  });
}

TEST_CASE("what came of a loss is told also where the run ends before the agent looks again") {
  AgentResult told;
  train_with_agent(agent_of(2, "a rank that ends as soon as it trains without the other one", told));
  REQUIRE(told.restarts.size() == 1);
  CHECK(told.restarts[0].policy == "without replica 1");
  REQUIRE(told.restarts[0].regrouped);
  CHECK(told.restarts[0].regrouped->steps_done == 5);
  CHECK(told.restarts[0].regrouped->trains_s >= told.restarts[0].regrouped->decided_s);
}

// The one above starts it.
TEST_CASE("a rank that ends as soon as it trains without the other one", "[.rank]") {
  const RankEnvironment environment = that_regroups();
  const auto next = after_loss_of_rank_1(environment);
  REQUIRE(next);
  run_watched(*environment_in(*next, environment), 30, [](RankWatch& watch) { in_step(watch, 6); });
}

TEST_CASE("the others end by the same fault before they train again: it is one failure") {
  AgentResult told;
  AgentOptions agent = agent_of(2, "a rank that ends when the other one is gone", told);
  agent.max_restarts = 1;
  agent.policy.on_loss = {Recovery::without_replica, Recovery::restart};
  train_with_agent(agent);
  REQUIRE(told.restarts.size() == 2);
  CHECK(told.restarts[0].policy == "without replica 1");
  CHECK_FALSE(told.restarts[0].regrouped);
  CHECK(told.restarts[1].policy == "restart");
}

// The one above starts it.
TEST_CASE("a rank that ends when the other one is gone", "[.rank]") {
  const RankEnvironment environment = that_regroups();
  if (environment.restart_count > 0) return;
  after_loss_of_rank_1(environment);
  _exit(4);
}

namespace {

/// Where rank 0 sees that it may end, in its environment.
constexpr const char* kEndsAt = "WT_TEST_ENDS_AT";

/// One rank, and another one that is to join it: what the agent is told of.
struct Joining {
  std::optional<GenerationEnd> given_up;
  std::optional<Regrouped> joined;
  GenerationEnd end;
};

/// The second rank is started `times`.
Joining join(const std::string& test_case, int times) {
  const test::TempDirectory folder;
  const std::string ends_at = (folder / "end").string();
  setenv(kEndsAt, ends_at.c_str(), 1);
  GracePeriod none(0);
  Joining out;
  Generation generation;
  generation.command = rank_that(test_case);
  generation.silence_s = 10;
  generation.more_ranks = [&] { return times-- > 0 ? 1 : 0; };
  generation.given_up = [&](const GenerationEnd& joiners) { out.given_up = joiners; };
  generation.regrouped = [&](const Regrouped& what) { out.joined = what, test::write_bytes(ends_at, ""); };
  out.end = run_generation(generation, none);
  return out;
}

void wait_for_end() {
  while (!std::filesystem::exists(std::getenv(kEndsAt))) usleep(20'000);
}

/// Rank 0 trains until others join, and then with them.
void train_until_joined(const RankEnvironment& environment) {
  std::optional<Membership> next;
  run_watched(environment, 30, [&](RankWatch& watch) {
    in_step(watch, 6);
    while (!next) usleep(20'000), next = watch.next();
  });
  run_watched(*environment_in(*next, environment), 30, [](RankWatch& watch) {
    in_step(watch, 7);
    wait_for_end();
  });
}

}  // namespace

TEST_CASE("a rank that stops before it is ready to join is given up; the next one joins") {
  const Joining what = join("a rank that stops the first time that it is to join", 2);
  CHECK(what.end.how == GenerationEnd::How::finished);
  REQUIRE(what.given_up);
  CHECK(what.given_up->ranks == std::vector<std::int64_t>{1});
  CHECK(what.given_up->message == "ranks that were to join were not ready after 10 s");
  REQUIRE(what.joined);
  CHECK(what.joined->generation == 2);
  CHECK(what.joined->steps_done == 6);
}

// The one above starts it.
TEST_CASE("a rank that stops the first time that it is to join", "[.rank]") {
  const RankEnvironment environment = that_regroups();
  if (!environment.joins) return train_until_joined(environment);
  if (environment.restart_count == 1) raise(SIGSTOP);
  run_watched(environment, 30, [](RankWatch& watch) {
    note_ready(watch.store());
    in_step(watch, 7);
    wait_for_end();
  });
}

TEST_CASE("while ranks join, what one of them says of its failure is heard") {
  const Joining what = join("a rank that fails when it joins", 1);
  CHECK(what.end.how == GenerationEnd::How::failed);
  CHECK(what.end.rank == 1);
  CHECK(what.end.ranks == std::vector<std::int64_t>{1});
  CHECK(what.end.message == "rank 1 has no memory");
}

// The one above starts it.
TEST_CASE("a rank that fails when it joins", "[.rank]") {
  const RankEnvironment environment = that_regroups();
  if (!environment.joins) return train_until_joined(environment);
  run_watched(environment, 30, [](RankWatch& watch) {
    note_ready(watch.store());
    sleep(1);
    throw_runtime("rank 1 has no memory");
  });
}

TEST_CASE("ranks that others join and that take longer than the silence allowed have gone over, not fallen silent") {
  const Joining what = join("a rank that joins late", 1);
  CHECK(what.end.how == GenerationEnd::How::finished);
  CHECK(what.joined);
}

// The one above starts it.
TEST_CASE("a rank that joins late", "[.rank]") {
  const RankEnvironment environment = that_regroups();
  if (!environment.joins) return train_until_joined(environment);
  run_watched(environment, 30, [](RankWatch& watch) {
    note_ready(watch.store());
    sleep(13);
    in_step(watch, 7);
    wait_for_end();
  });
}
