// What a scenario expects of its recoveries: all of it is compared, and what was not measured is no success.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "planner/experiments/drill_invariants.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Two strikes; the recovery from the first one was cut short by the second.
DrillCase two_recoveries() {
  DrillCase out;
  out.restarts.resize(2);
  out.restarts[0].resumed_after = 4, out.restarts[0].level = "peer";
  out.restarts[1].resumed_after = 8, out.restarts[1].level = "storage";
  out.restarts[1].phases = RecoveryPhases{0.1, 0.2, 0.3, 0.4, 0.5, 0};
  return out;
}

std::vector<std::string> differences(const std::string& expect, DrillCase out = two_recoveries(),
                                     const char* agent = R"({"excluded": [2]})") {
  const TempDirectory folder;
  write_bytes(folder / "s.yaml",
              "name: s\nrun: r\nevents:\n  - {who: {domain: rank, index: 1}, when: {step: 3}, repeats: 2, what: {kind: "
              "kill}}\nexpect: {" +
                  expect + "}\n");
  if (agent) write_bytes(folder / "agent.json", agent);
  write_bytes(folder / "strikes.jsonl", "{\"node\": 2}\n");
  check_recoveries(folder.path(), read_scenario_file(folder / "s.yaml"), out);
  return out.differences;
}

/// A start of ranks at `began`, and a step that was done.
std::string start(int began, int after) {
  return fmt::format("{{\"connected_unix_s\": {}, \"resumed_after\": {}}}\n", began, after);
}
std::string step(int number, int at) { return fmt::format("{{\"step\": {}, \"unix_s\": {}}}\n", number, at); }

std::vector<std::string> of_generations(const std::string& starts, const std::string& metrics,
                                        const std::string& replayed) {
  const TempDirectory folder;
  write_bytes(folder / "generations.jsonl", starts);
  write_bytes(folder / "metrics.jsonl", metrics);
  write_bytes(folder / "replayed.jsonl", replayed);
  DrillCase out;
  check_generations(folder.path(), out);
  return out.differences;
}

using Said = std::vector<std::string>;

}  // namespace

TEST_CASE("each recovery goes on from what is expected of it") {
  CHECK(differences("resumed_after: 4, level: peer").empty());
  CHECK(differences("resumed_after: [4, 8], level: [peer, storage]").empty());
  CHECK(differences("resumed_after: [4, 6]") == Said{"recovery 2: resumed after step: 8, expected 6"});
  CHECK(differences("level: [peer, peer]") == Said{"recovery 2: loaded from: storage, expected peer"});
  CHECK(differences("resumed_after: 6") == Said{"resumed after step: 4, expected 6"});
  CHECK(differences("resumed_after: [4, 8, 8]") == Said{"resumed after step: there were 2 recoveries, not 3"});
  CHECK(differences("resumed_after: 4, level: local", DrillCase()) ==
        Said{"resumed after step: there were 0 recoveries, not 1", "loaded from: there were 0 recoveries, not 1"});
}

TEST_CASE("a limit that nothing was measured for is not kept") {
  CHECK(differences("within: 2s").empty());
  CHECK(differences("within: 1s") == Said{"recovery took 1.4 s, expected within 1 s"});
  DrillCase unmeasured = two_recoveries();
  unmeasured.restarts[1].phases.reset();
  const Said said{"no recovery was measured to its first step, expected within 2 s"};
  CHECK(differences("within: 2s", unmeasured) == said);
  CHECK(differences("within: 2s", DrillCase()) == said);
}

TEST_CASE("excluded nodes are compared, also where there are to be none") {
  CHECK(differences("excluded: [2]").empty());
  CHECK(differences("excluded: []") == Said{"excluded nodes: [2], expected []"});
  CHECK(differences("excluded: [2]", DrillCase(), R"({"excluded": []})") == Said{"excluded nodes: [], expected [2]"});
  CHECK(differences("excluded: []", DrillCase(), nullptr) == Said{"no agent.json, which tells of excluded nodes"});
  CHECK(differences("restarts: 2").empty());
}

TEST_CASE("where nothing is said of excluded nodes, none is that was not struck") {
  CHECK(differences("restarts: 2", two_recoveries(), R"({"excluded": [1, 2]})") ==
        Said{"node 1 is excluded, which was not hit"});
}

TEST_CASE("ranks that were followed by others write no steps, and what was lost is what is done again") {
  const std::string starts = start(10, 0) + start(20, 1), again = step(1, 11) + step(2, 22) + step(3, 23);
  CHECK(of_generations(starts, again, step(2, 12)).empty());
  CHECK(of_generations(starts, step(1, 11) + step(2, 19), "") ==
        Said{"step 2 was not done by the last ranks that came to it"});
  CHECK(of_generations(starts, step(1, 21) + step(2, 22), "") ==
        Said{"step 1 was not done by the last ranks that came to it"});
  CHECK(of_generations(starts, again, step(2, 12) + step(2, 13)) ==
        Said{"2 steps were done again, and 1 lie between checkpoints and failures"});
  // Others may go back further than those before them.
  CHECK(of_generations(starts + start(30, 0), step(1, 31) + step(2, 32), step(2, 12) + step(1, 11) + step(2, 22))
            .empty());
  // Ranks that were ended before their first step lose none, and those after them no other.
  CHECK(of_generations(start(10, 0) + start(20, 1) + start(30, 1), step(1, 11) + step(2, 32), step(2, 12)).empty());
}

TEST_CASE("a run that is over keeps nothing in the memory of nodes") {
  const TempDirectory folder;
  DrillCase out;
  check_memory_given_back(folder.path(), out);
  std::filesystem::create_directories(folder / "nodes/1");
  CHECK(out.differences.empty());
  check_memory_given_back(folder.path(), out);
  CHECK(out.differences == Said{"nodes/1 is left behind: the run is over, and saved"});
}
