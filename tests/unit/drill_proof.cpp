// What a drill takes for proof: a strike whose line is missing, or whose line does not show it, fails the drill.
#include "planner/experiments/drill_proof.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;
using nlohmann::json;

namespace {

/// A line of strikes.jsonl.
struct Line {
  std::int64_t rank = 1;
  std::string proof = "{}";
};

/// The verdict on one event of four ranks, two a node, that left these lines a second apart, from time 100 on.
DrillCase judged_lines(const std::string& event, const std::vector<Line>& lines,
                       const std::vector<DrillRestart>& restarts) {
  const TempDirectory folder;
  write_bytes(folder / "s.yaml", "name: s\nrun: r\nnodes: {ranks: 2, spares: 1}\nevents:\n  - {" + event + "}\n");
  const Scenario scenario = read_scenario_file(folder / "s.yaml");
  std::string text;
  double at = 100;
  for (const Line& line : lines)
    text += json{{"event", 0},
                 {"generation", scenario.events[0].generation},
                 {"rank", line.rank},
                 {"node", line.rank / 2},
                 {"step", 3},
                 {"at", "begin"},
                 {"kind", "x"},
                 {"unix_s", at++},
                 {"proof", json::parse(line.proof)}}
                .dump() +
            "\n";
  write_bytes(folder / "strikes.jsonl", text);
  RunSpec run;
  run.layout.replicate = 2, run.layout.shard = 2;
  DrillCase out;
  out.restarts = restarts;
  prove_faults(scenario, run, folder.path(), out);
  CHECK((out.proofs.size() == 1 || !out.differences.empty()));
  return out;
}

/// Of one event in step 3 that left these proofs, one a line, all of rank 1.
DrillCase judged(const std::string& what, const std::vector<std::string>& proofs,
                 const std::vector<DrillRestart>& restarts, const std::string& more = "",
                 const std::string& who = "domain: rank, index: 1") {
  std::vector<Line> lines;
  for (const std::string& proof : proofs) lines.push_back({1, proof});
  return judged_lines("who: {" + who + "}, when: {step: 3}, what: {" + what + "}" + more, lines, restarts);
}

DrillRestart ended(const std::string& cause, std::int64_t rank = 1, double at = 101) {
  DrillRestart r;
  r.rank = rank, r.blamed = {rank}, r.cause = cause, r.detected_unix_s = r.stopped_unix_s = at;
  return r;
}

void fails(const DrillCase& c, const std::string& why) {
  INFO(why);
  REQUIRE(!c.differences.empty());
  CHECK_THAT(c.differences.front(), Catch::Contains(why));
}

bool passes(const DrillCase& c) { return c.differences.empty() && c.proofs.size() == 1; }

}  // namespace

TEST_CASE("a fault without a line, or with a line and no end, did not strike") {
  fails(judged("kind: kill", {}, {}), "kill of rank 1 at the begin of step 3 was never injected");
  fails(judged("kind: kill", {"{}"}, {}), "not proved: no rank ended");
  fails(judged("kind: kill", {"{}"}, {ended("signal 9 (Killed)", 1, 99)}), "no rank ended");  // before the strike
  CHECK(passes(judged("kind: kill", {"{}"}, {ended("signal 9 (Killed)")})));
}

TEST_CASE("a process has to end as it was asked to, and no other may be named for it") {
  for (const auto& [what, cause] : {std::pair{"kind: abort", "signal 6 (Aborted)"},
                                    {"kind: segfault", "signal 11 (Segmentation fault)"},
                                    {"kind: exit, status: 7", "exit status 7"},
                                    {"kind: exception", "exit status 4"}}) {
    CHECK(passes(judged(what, {"{}"}, {ended(cause)})));
    fails(judged(what, {"{}"}, {ended("signal 9 (Killed)")}), "it ended with signal 9 (Killed)");
    fails(judged(what, {"{}"}, {ended(cause, 0)}), "rank 0 is blamed");
  }
  DrillRestart peer = ended("exit status 4", 0);  // tells of another
  peer.blamed = {1};
  const std::string stopped = R"({"samples_stopped": 9, "samples_moved": 0, "ended": true})";
  CHECK(passes(judged("kind: hang", {stopped}, {peer})));
  for (const std::vector<std::int64_t>& blamed : {std::vector<std::int64_t>{0}, {0, 1}, {}}) {
    peer.blamed = blamed, peer.message = "why";
    fails(judged("kind: hang", {stopped}, {peer}), "is blamed, which was not hit: why");
  }
}

TEST_CASE("a stop is a stop throughout, and ends as asked") {
  const auto hang = [](const std::string& proof, const std::string& more) {
    return judged("kind: hang", {"{}", proof}, {}, more);
  };
  CHECK(passes(hang(R"({"samples_stopped": 9, "samples_moved": 0, "continued": true})", ", lasts: 2s")));
  fails(hang("{}", ", lasts: 2s"), "it was not stopped throughout");
  fails(hang(R"({"samples_stopped": 9, "samples_moved": 1, "continued": true})", ", lasts: 2s"),
        "not stopped throughout");
  fails(hang(R"({"samples_stopped": 9, "samples_moved": 0, "continued": false})", ", lasts: 2s"), "it was not ended");
  fails(judged("kind: hang, of: thread", {R"({"waited_s": 1.5})"}, {}, ", lasts: 2s"), "it did not wait");
  CHECK(passes(judged("kind: hang, of: thread", {R"({"waited_s": 2})"}, {}, ", lasts: 2s")));
  fails(judged("kind: hang, of: thread", {"{}"}, {}), "it was not ended");
  CHECK(passes(judged("kind: hang, of: thread", {"{}"}, {ended("exit status 4")})));
}

TEST_CASE("the ranks that are struck are those of the domain, as the nodes are in that generation") {
  const Line told{2, R"({"others_gone": true, "sent_s": 0.01})"};
  const std::string when = ", when: {step: 3}, what: {kind: kill}";
  DrillRestart lost = ended("signal 9 (Killed)", 2);
  lost.blamed = {2, 3};
  const auto node = [&](const std::vector<Line>& lines) {
    return judged_lines("who: {domain: node, index: 1}" + when, lines, {lost});
  };
  CHECK(passes(node({{2}, {3}, told})));
  fails(node({{2}, told}), "not proved: it hit ranks 2, not 2 3");
  fails(node({{1}, {2}, {3}, told}), "it hit ranks 1 2 3, not 2 3");
  DrillRestart first = ended("signal 9 (Killed)", 0, 90), second = lost;
  second.generation = 1;
  const auto in_generation_1 = [&](std::int64_t struck_node, const std::vector<std::int64_t>& nodes) {
    first.nodes = nodes;
    return judged_lines(fmt::format("who: {{domain: node, index: {}}}{}, generation: 1", struck_node, when),
                        {{2}, {3}, told}, {first, second});
  };
  CHECK(passes(in_generation_1(2, {0, 2})));  // a spare took the place
  CHECK(passes(in_generation_1(1, {})));
  fails(in_generation_1(1, {0, 2}), "it hit ranks 2 3, not ");
  CHECK(passes(judged_lines("who: {domain: replica, index: 1}" + when, {{2}, {3}, told}, {lost})));
  fails(judged_lines("who: {domain: all}" + when, {{2}, {3}, told}, {lost}), "not 0 1 2 3");
}

TEST_CASE("each rank of a group has to be slower, of those whose writes fail one is enough") {
  const std::string who = "who: {domain: node, index: 1}, when: {step: 3}, what: ";
  const std::string slower = R"({"computed_s": 2, "waited_s": 4})", not_slower = R"({"computed_s": 2, "waited_s": 1})";
  const auto slow = [&](const std::string& of_rank_3) {
    return judged_lines(who + "{kind: slow, factor: 3}", {{2, slower}, {3, of_rank_3}}, {});
  };
  CHECK(passes(slow(slower)));
  fails(slow(not_slower), "rank 3: it was not slower");
  const std::string full = "who: {domain: all}, when: {step: 3}, what: {kind: disk_full}";
  CHECK(passes(judged_lines(full, {{0, R"({"errno": 28})"}, {1}}, {})));
  fails(judged_lines(full, {{0}, {1}}, {}), "rank 0: no write failed with ENOSPC");
}

TEST_CASE("the end of another generation proves nothing") {
  DrillRestart later = ended("signal 9 (Killed)");
  later.generation = 1;
  fails(judged("kind: kill", {"{}"}, {later}), "no rank ended");
}

TEST_CASE("the other kinds leave numbers that show them") {
  const std::vector<DrillRestart> none;
  const auto slow = [&](const char* waited) {
    return judged("kind: slow, factor: 3", {fmt::format(R"({{"computed_s": 2, "waited_s": {}}})", waited)}, none);
  };
  CHECK(passes(slow("4")));
  fails(slow("3.9"), "it was not slower");
  const auto bit = [&](const char* proof) { return judged("kind: corrupt, tensor: weight, bit: 3", {proof}, none); };
  CHECK(passes(bit(R"({"before": "00", "after": "08"})")));
  fails(bit(R"({"before": "00", "after": "00"})"), "the number is as it was");
  fails(judged("kind: corrupt, tensor: weight, zero: true", {R"({"bytes_not_zero_before": 0})"}, none), "all was zero");
  fails(judged("kind: disk_full", {"{}"}, none), "no write failed with ENOSPC");
  CHECK(passes(judged("kind: disk_full", {"{}", R"({"errno": 28})"}, none)));
  fails(judged("kind: file_too_large", {R"({"errno": 28})"}, none), "no write failed with EFBIG");
  fails(judged("kind: partition", {R"({"peer_ports": []})"}, none), "no connection was cut");
  CHECK(passes(judged("kind: partition", {R"({"peer_ports": [4711]})"}, none)));
  fails(judged("kind: damage, how: zero", {R"({"before": 1, "after": 1})"}, none, "", "domain: storage"),
        "the file is as it was");
  fails(judged_lines("who: {domain: all}, when: {step: 3}, what: {kind: maintenance}", {{0}, {1}, {2}, {3}}, none),
        "the run was not asked to end");
  fails(judged("kind: kill", {"{}"}, none, "", "domain: agent"), "nothing ended");
}

TEST_CASE("what is noticed too late fails") {
  const auto within = [](const char* limit) {
    return judged("kind: kill", {"{}"}, {ended("signal 9 (Killed)", 1, 103)},
                  fmt::format(", detect: {{within: {}}}", limit));
  };
  CHECK(passes(within("4s")));
  fails(within("2s"), "noticed after 3.0 s, not within 2 s");
}
