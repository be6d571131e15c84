// windtunnel watch over made-up run folders, with scripts for hooks: what it runs, in which order, and what it writes
// down.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "configs/base/json_reader.hpp"
#include "planner/watch/run_watch.hpp"
#include "tests/fixtures/watch_site.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

TEST_CASE("a node at half speed is found, excluded and replaced, and the run goes on at its pace") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  const Ended ended = site.watch("--act");
  INFO(ended.said << site.arguments());
  CHECK(ended.status == 1);
  CHECK(site.calls() == "save stop sweep sweep cordon start ");
  CHECK_THAT(site.arguments(), Contains("cordon|node-003|compute: 8 of 8 devices") && Contains("start||node-003\n"));
  const std::vector<json> decisions = site.decisions();
  REQUIRE(decisions.size() == 7);
  const json& first = decisions[0];
  CHECK(first["schema"] == "windtunnel.decision/1");
  CHECK(first["rule"] == "slow steps");
  CHECK(first["signals"][0]["value"] == 2.0);
  CHECK(first["diagnosis"]["ailment"] == "slow hardware");
  CHECK(first["alternatives"].size() == 4);
  CHECK(first["alternatives"][1]["lost_s"] == "UNKNOWN");
  CHECK(first["outcome"]["how"] == "ok");
  CHECK(decisions[4]["way"] == "spare");
  CHECK_THAT(decisions[6]["why"].get<std::string>(), Contains("it helped"));
  CHECK(decisions[6]["ledger"]["cordoned"].contains("node-003"));
}

TEST_CASE("what one watch has begun the next one verifies") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  site.file("pace", "2.0");
  site.watch("--act --once");
  CHECK(site.calls() == "save stop sweep sweep cordon start ");
  CHECK(site.decisions().back()["ledger"]["trial"]["excluded"] == json{"node-003"});
  std::filesystem::remove(site.run() / "summary.json");
  const Ended next = site.watch("--act --once");
  INFO(next.said);
  CHECK(site.calls() == "save stop sweep sweep cordon start uncordon tell ");
  CHECK(site.decisions().back()["ledger"]["trial"].is_null());
}

TEST_CASE("it did not help: what was cordoned is free again") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  site.file("pace", "2.0");
  const Ended ended = site.watch("--act");
  INFO(ended.said);
  CHECK(site.calls() == "save stop sweep sweep cordon start uncordon tell ");
  CHECK(site.decisions().back()["ledger"]["cordoned"].empty());
}

TEST_CASE("a node that came back and fails again needs one sweep, and another spare") {
  Site site(/*spares=*/2);
  site.metrics(waits_longer);
  site.fleet({3});
  site.watch("--act");
  std::filesystem::remove(site.run() / "summary.json");
  site.metrics(waits_longer);
  const Ended ended = site.watch("--act");
  INFO(ended.said);
  CHECK(site.calls() == "save stop sweep sweep cordon start save stop sweep cordon start ");
  CHECK(site.decisions().back()["ledger"]["spares_used"] == 2);
  // A third time there is no spare, and nobody knows what else it costs.
  std::filesystem::remove(site.run() / "summary.json");
  site.metrics(waits_longer);
  CHECK_THAT(site.watch("--act").said, Contains("no spare is left"));
  CHECK(site.calls().ends_with("start save stop sweep start tell "));
}

TEST_CASE("a router that is skewed touches nobody") {
  Site site;
  site.metrics([](json& line) {
    waits_longer(line);
    line["expert_imbalance"] = 2.3;
  });
  site.fleet({3});
  const Ended ended = site.watch("--act --once");
  CHECK(site.calls().empty());
  CHECK_THAT(ended.said, Contains("imbalanced router: no node is at fault, nobody is touched"));
  REQUIRE(site.decisions().size() == 1);
  CHECK(site.decisions()[0]["action"].is_null());
}

TEST_CASE("a sweep that hangs is ended with all that it started, and nobody is excluded") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  site.file("hangs", "");
  const Ended ended = site.watch("--act");
  INFO(ended.said);
  CHECK(site.calls() == "save stop sweep start tell ");
  CHECK(site.decisions()[2]["outcome"]["how"] == "timed out");
  CHECK(std::system("pgrep -f '^sleep 98765$' > /dev/null") != 0);
}

TEST_CASE("names from a sweep are never commands, flags, or lists of nodes") {
  for (const auto& [name, cordons] : {std::pair{"gpu-7.rack_2", true},
                                      {"$(touch owned);`touch owned`", false},
                                      {"-rf", false},
                                      {"ALL", false},
                                      {"n[1-8]", false}}) {
    Site site;
    site.metrics(waits_longer);
    site.fleet({3}, name);
    const Ended ended = site.watch("--act");
    INFO(ended.said << site.arguments());
    CHECK((site.arguments().find("cordon|" + std::string(name) + "|") != std::string::npos) == cordons);
    CHECK_FALSE((site.has("owned") || site.has("run/owned") || std::filesystem::exists("owned")));
    if (!cordons) CHECK(site.decisions()[2]["outcome"]["how"] == "no answer");
  }
}

TEST_CASE("it only logs without --act, and a run that is over is gone through without a trace") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  const Ended live = site.watch("--once");
  CHECK(live.status == 1);
  CHECK_THAT(live.said, Contains("Would save, stop, sweep twice"));
  CHECK(site.calls().empty());
  REQUIRE(site.decisions().size() == 1);
  std::filesystem::remove(site.run() / "decisions.jsonl");
  site.file("run/summary.json", "{}");
  const Ended over = site.watch("--json");
  const json said = json::parse(over.said.substr(0, over.said.find('\n')));
  CHECK(said["signals"][0]["first_step"] == 31);
  CHECK(said["signals"][0]["last_step"] == 34);  // as early as the rule allows
  CHECK(site.watch("--act").status == 1);        // nothing is left to act on
  CHECK(site.calls().empty());
  CHECK_FALSE(site.has("run/decisions.jsonl"));
}

TEST_CASE("one watch acts on a run; others log beside it and leave its ledger alone") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  {
    const auto held = watch_lock(site.run());
    const Ended second = site.watch("--act --once");
    CHECK(second.status == 2);
    CHECK_THAT(second.said, Contains("found another watch that acts on this run"));
    CHECK(site.watch("--once --reset").status == 2);
    CHECK(site.calls().empty());
    CHECK_FALSE(site.has("run/decisions.jsonl"));
    CHECK(site.watch("--once").status == 1);
  }
  CHECK(site.decisions().back()["ledger"].is_null());
  site.watch("--act");
  const json ledger = site.decisions().back()["ledger"];
  CHECK(ledger["cordoned"].contains("node-003"));
  std::filesystem::remove(site.run() / "summary.json");
  site.metrics(waits_longer);
  site.watch("--once");
  CHECK(site.decisions().back()["ledger"].is_null());
  site.watch("--once --reset");  // also without --act what is known is kept
  const json reset = site.decisions()[site.decisions().size() - 2]["ledger"];
  CHECK(reset["cordoned"] == ledger["cordoned"]);
  CHECK(reset["causes"].empty());
}

TEST_CASE("the hook of this machine stops a run without a save, and leaves no process") {
  Site site;
  site.file("windtunnel", R"sh(#!/bin/sh
here=$(dirname "$0")
trap 'echo saved >> "$here/calls"; exit 75' USR1 TERM
sleep 98764 &
echo $! > "$here/sleeper"
while :; do sleep 0.05; done
)sh");
  site.file("run.yaml", "a run file");
  std::filesystem::permissions(site.run() / "../windtunnel", std::filesystem::perms::owner_all);
  const std::string folder = site.run().parent_path().string(), run = site.run().string();
  const std::string local = "WINDTUNNEL='" + folder + "/windtunnel' configs/watch/local.sh ";
  REQUIRE(std::system((local + "start '" + run + "' '" + folder + "/run.yaml'").c_str()) == 0);
  const auto shell = [&](const std::string& command) {
    return std::system(("cd '" + folder + "' && timeout 60 sh -c '" + command + "'").c_str());
  };
  CHECK(shell("until [ -s sleeper ]; do sleep 0.1; done; kill -0 $(cat sleeper)") == 0);
  CHECK(std::system((local + "stop '" + run + "'").c_str()) == 0);
  CHECK(site.calls().empty());
  // A killed process may stay as a zombie where nobody waits for it.
  CHECK(shell("while grep -qs \"^State:.[^ZX]\" /proc/$(cat sleeper)/status; do sleep 0.1; done") == 0);
}

TEST_CASE("the circuit breaker outlives the watch, until a human closes it") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  site.file("rules.yaml", [&] {
    std::string rules =
        "every: 20ms\nwindow: 4\nsignals: [{name: slow steps, metric: step_s, above: 1.5, of: best, steps: 4}]\n";
    return rules +
           "undecided: tell\nsure: 0.99\nmost_excluded: 0\nrestarts: 3\nrollback: {margin: 4, skip: 8}\n"
           "verify: {steps: 4, within: 1h}\n";
  }());
  const Ended opened = site.watch("--act");
  INFO(opened.said);
  CHECK_THAT(site.decisions().back()["ledger"]["breaker"].get<std::string>(), Contains("1 of 8 nodes"));
  std::filesystem::remove(site.run() / "summary.json");
  site.metrics(waits_longer);
  const std::string before = site.calls();
  CHECK_THAT(site.watch("--act --once").said, Contains("until a human closes the circuit breaker (--reset)"));
  CHECK(site.calls() == before);
  site.watch("--act --once --reset");
  CHECK(site.calls().size() > before.size());
}

TEST_CASE("the hooks of this machine start, save, sweep, cordon and start again") {
  // In the trainer's place: the first training goes on until it is asked to save and end, the second does ten steps.
  Site site;
  site.file("windtunnel", R"sh(#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/calls"
if [ "$1" = health ]; then
  shift $(($# - 1))
  cp "$here/fleet.json" "$1"
  exit 1
fi
if [ ! -e "$here/first" ]; then
  touch "$here/first"
  trap 'echo saved >> "$here/calls"; exit 75' USR1
  while :; do sleep 0.05; done
fi
exec "$here/site.sh" start "$here/run"
)sh");
  site.file("run.yaml", "a run file");
  std::filesystem::permissions(site.run() / "../windtunnel", std::filesystem::perms::owner_all);
  site.metrics(waits_longer);
  site.fleet({3});
  const std::string folder = site.run().parent_path().string(), run = site.run().string(),
                    environment = "WINDTUNNEL='" + folder + "/windtunnel'";
  const std::string local = environment + " configs/watch/local.sh ";
  REQUIRE(std::system((local + "start '" + run + "' '" + folder + "/run.yaml'").c_str()) == 0);
  // Its file has no spares; a node to spare is what the site says.
  std::string hooks = "spares: 1\n" + read_bytes("configs/watch/hooks-local.yaml");
  for (std::size_t at = 0; (at = hooks.find("./local.sh", at)) != std::string::npos; at += 1)
    hooks.replace(at, 10, std::filesystem::absolute("configs/watch/local.sh").string());
  site.file("local.yaml", hooks);
  const Ended ended =
      windtunnel(fmt::format("watch '{}' --rules '{}/rules.yaml' --hooks '{}/local.yaml' --act", run, folder, folder),
                 environment + " timeout 60");
  INFO(ended.said << site.arguments() << read_bytes(site.run() / "hooks.log"));
  CHECK(ended.status == 1);
  CHECK_THAT(ended.said, Contains("it helped"));
  const std::string train = "train " + run + "/watch.yaml -o " + run + "\n",
                    health = "health --quick --storage " + run + " -o " + run + "/sweep-";
  CHECK(site.arguments() == train + "saved\n" + health + "1.json\n" + health + "2.json\n" + train + "start|\n");
  CHECK_THAT(read_bytes(site.run() / "cordoned"), StartsWith("node-003\tcompute: 8 of 8 devices"));
  CHECK(read_bytes(site.run() / "watch.yaml") == "a run file");
  REQUIRE(std::system((local + "uncordon '" + run + "' node-003").c_str()) == 0);
  CHECK(read_bytes(site.run() / "cordoned").empty());
  CHECK(std::system((local + "stop '" + run + "'").c_str()) == 0);  // it has ended
  CHECK(std::system((local + "mend '" + run + "' 2> '" + folder + "/said'").c_str()) != 0);
}

TEST_CASE("where nothing can be written down any more, what was begun is brought to its end") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  std::filesystem::create_directory(site.run() / "hooks.log");  // no hook can be run: the job is not even saved
  const Ended hooks = site.watch("--act --once");
  CHECK(site.calls().empty());
  CHECK_THAT(site.decisions()[0]["outcome"]["said"].get<std::string>(), Contains("hooks.log: cannot be written"));
  std::filesystem::remove(site.run() / "hooks.log");
  std::filesystem::remove(site.run() / "decisions.jsonl");
  std::filesystem::create_symlink("/no/such/folder/file", site.run() / "decisions.jsonl");
  const Ended full = site.watch("--act");
  INFO(full.said);
  CHECK(site.calls() == "save stop sweep sweep cordon start ");
  CHECK_THAT(full.said, Contains("decisions.jsonl: could not be written") && Contains("it helped"));
}

TEST_CASE("an exception of the library ends no watch in the middle of the ladder") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  std::filesystem::create_directories(site.run() / "sweep-1.json" / "full");  // remove() throws
  const Ended ended = site.watch("--act");
  INFO(ended.said);
  CHECK(site.calls() == "save stop start tell ");
  CHECK(site.decisions()[2]["outcome"]["how"] == "failed");
}

TEST_CASE("what a watch cannot go on with is refused before it looks") {
  Site site;
  site.metrics(waits_longer);
  site.fleet({3});
  CHECK(windtunnel("watch '" + site.run().string() + "' --act").status == 2);
  site.file("run/decisions.jsonl", "{\"schema\": \"other\"}\n");
  const Ended other = site.watch("--once");
  CHECK(other.status == 2);
  CHECK_THAT(other.said, Contains("decisions.jsonl:1") && Contains("windtunnel.decision/1"));
  std::filesystem::remove(site.run() / "decisions.jsonl");
  site.file("run/metrics.jsonl", "{\"step\": 1}\n");
  CHECK(site.watch("--once").status == 2);
  CHECK(site.calls().empty());
}

TEST_CASE("a log: what stands is listed, decisions go beside it, only tell is run, and what needs a run is refused") {
  const TempDirectory folder;
  const std::string log = (folder / "job.log").string();
  std::string text = read_bytes("tests/data/job_logs/loss-jump.log");
  text.erase(text.rfind("[titan]"));  // it goes on
  write_bytes(log, text);
  const auto watch = [&](const std::string& more) { return windtunnel("watch '" + log + "' " + more, "timeout 60"); };
  const Ended once = watch("--once");
  INFO(once.said);
  CHECK(once.status == 1);
  CHECK_THAT(once.said, Contains("loss jump: a human is to look") && Contains("since step 520") &&
                            Contains("70 logged steps so far, 1 decision.") && Contains("What still stands"));
  const json decision = json::parse(read_bytes(log + ".decisions.jsonl"));
  CHECK((decision["schema"] == "windtunnel.decision/1" && decision["run"] == log));
  const Ended older = watch("--once --last 100 --decisions '" + (folder / "other.jsonl").string() + "'");
  CHECK(older.status == 1);
  CHECK_THAT(older.said, Contains("1 signal began before the last 100 steps (--last)."));
  CHECK(std::filesystem::exists(folder / "other.jsonl"));

  write_bytes(folder / "tell.yaml", "tell: {command: [touch, \"{run}.told\"], timeout: 10s}\n");
  const Ended told = watch("--once --act --hooks '" + (folder / "tell.yaml").string() + "'");
  CHECK_THAT(told.said,
             Contains("of the hooks only tell is run. save, stop, sweep, cordon, uncordon and start are not"));
  CHECK(std::filesystem::exists(log + ".told"));

  const auto refused = [&](const std::string& more, const std::string& why) {
    const Ended ended = watch(more);
    INFO(more << ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Contains(why));
  };
  refused("--once --act --hooks hooks-local", "tell");  // it has none
  refused("--once --plan plan.json", "--plan: found with");
  refused("--once --reset", "circuit breaker");
  refused("--once --last 0", "--last");
  refused("--last 5", "--once");
  refused("--once '" + folder.path().string() + "' --decisions x", "needs one log");
  refused("--once /dev/null", "neither a folder nor a regular file");
  refused("--once /nowhere", "neither a folder nor a regular file");
  write_bytes(folder / "job.csv", "Step,a - throughput(tps),b - throughput(tps)\n1,2,3\n");
  refused("--once '" + (folder / "job.csv").string() + "'", "job.csv");
  write_bytes(log,
              text + "[titan] step: 710  loss:  6,5  memory: 63.40GiB(70.50%)  tps: 5,712  tflops: 330.72  mfu: 1%\n");
  refused("--once", "found loss '6,5'");
}
