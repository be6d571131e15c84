// Child processes: what they are started with, how their end is seen, and that a limit ends them and what they started.
#include "configs/base/process.hpp"

#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/run_hook.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/base/text.hpp"

using namespace wt;

namespace {

ProcessStart shell(const std::string& script) { return {.words = {"sh", "-c", script}}; }

/// Of a process that nobody waits for any more.
bool is_gone(const std::string& pid) {
  return wait_until(60, 0.01, [&] {
    std::ifstream in("/proc/" + std::to_string(std::atoi(pid.c_str())) + "/stat");
    std::string id, name, state;
    return !(in >> id >> name >> state) || state == "Z";
  });
}

}  // namespace

TEST_CASE("a child has the words, variables and folder that it is started with") {
  const ScratchFolder folder("wt-process");
  setenv("WT_LEFT", "left", 1), setenv("WT_CHANGED", "before", 1);
  ProcessStart start = shell("echo $0 $1 $WT_LEFT $WT_CHANGED; pwd -P");
  start.words.insert(start.words.end(), {"a b", "$c"});
  start.environment = environment_with({{"WT_CHANGED", "after"}});
  start.folder = folder.path();
  CHECK(output_of(start) == "a b $c left after\n" + std::filesystem::canonical(folder.path()).string());
}

TEST_CASE("an end is an exit status or a signal, and is told in words") {
  const auto end_of = [](const std::string& script) { return *wait_for_end(start_process(shell(script))); };
  CHECK(exit_status(end_of("exit 7")) == 7);
  CHECK(cause_of(end_of("exit 7")) == "exit status 7");
  CHECK(exit_status(end_of("kill -9 $$")) == 128 + SIGKILL);
  CHECK(cause_of(end_of("kill -9 $$")) == "signal 9 (Killed)");
}

TEST_CASE("a child that has not ended is told apart from one that has, and is killed") {
  const pid_t pid = start_process(shell("exec sleep 1000"));
  CHECK_FALSE(wait_for_end(pid, 0));
  kill_process(pid);
  CHECK_THROWS_WITH(wait_for_end(pid, 0), Catch::Contains("could not be seen"));  // it was waited for
}

TEST_CASE("a program that is not there, and a folder, are errors that name the program") {
  CHECK_THROWS_WITH(start_process({.words = {"no-such-program"}}),
                    "no-such-program could not be started: No such file or directory");
  ProcessStart start = shell("true");
  start.folder = "/no/such/folder";
  CHECK_THROWS_AS(start_process(start), Error);
  CHECK(output_of({.words = {"no-such-program"}}).empty());
}

TEST_CASE("output is taken up to a limit of bytes, errors apart; a command that fails has none") {
  CHECK(run_for_output(shell("echo told; exit 3")).text == "told\n");
  CHECK(run_for_output(shell("echo told; exit 3")).status == 3);
  CHECK(output_of(shell("echo told; exit 3")).empty());
  CHECK(output_of(shell("echo lost >&2; echo told")) == "told");
  CHECK(output_of(shell("cat")).empty());  // nothing to read, not the terminal
  const ProcessOutput endless = run_for_output(shell("yes"), 60, 100'000);
  CHECK(endless.text.size() >= 100'000);
  CHECK(endless.text.size() < 200'000);
  CHECK(endless.status.value_or(0) != 0);  // nobody reads what it writes
}

TEST_CASE("at the limit a child is ended, with what it started where it leads a group") {
  ProcessStart start = shell("sleep 1000 & echo $! ; wait");
  start.own_group = true;
  const ProcessOutput out = run_for_output(start, 0.5);
  CHECK_FALSE(out.status);
  CHECK(is_gone(out.text));
  CHECK_FALSE(run_for_output(shell("exec sleep 1000"), 0.2).status);
}

TEST_CASE("a log holds both of its outputs and nothing of an earlier child") {
  const ScratchFolder folder("wt-process");
  ProcessStart start = shell("echo earlier and longer");
  start.log = folder.path() / "log";
  wait_for_end(start_process(start));
  start.words.back() = "echo told; echo complained >&2";
  wait_for_end(start_process(start));
  CHECK(read_file(start.log, "a log") == "told\ncomplained\n");
}

TEST_CASE("a hook's log says what ran and where; at the limit it and what it started are ended") {
  const ScratchFolder folder("wt-process");
  const auto log = folder.path() / "log";
  ProcessStart start = shell("pwd >&2; exit 3");
  start.folder = "/";
  const HookEnd failed = run_hook(start, 60, log);
  CHECK(failed.how == HookEnd::How::failed);
  CHECK(failed.status == 3);
  CHECK(run_hook({{"no-such-program"}}, 60, log).status == 127);
  CHECK(read_file(log, "a log") == "/$ sh -c pwd >&2; exit 3\n/\n$ no-such-program\n");
  const auto pid = folder.path() / "pid";
  CHECK(run_hook(shell("sleep 1000 & echo $! > " + pid.string() + "; wait"), 0.5, log).how == HookEnd::How::timed_out);
  CHECK(is_gone(read_file(pid, "a process id")));
}

TEST_CASE("words that end with this process run all the same") {
  CHECK(output_of({.words = ended_with_us({"echo", "told"})}) == "told");
  CHECK(in_path("sh"));
  CHECK_FALSE(in_path("no-such-program"));
}
