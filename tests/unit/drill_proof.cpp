// What a drill takes for proof: a strike whose line is missing, or whose line does not show it, fails the drill.
#include "planner/experiments/drill_proof.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/temp_directory.hpp"

using namespace wt;
using namespace wt::test;
using nlohmann::json;

namespace {

/// The verdict on one event of rank 1 in step 3 that left these proofs, one a line, struck at time 100.
DrillCase judged(const std::string& what, const std::vector<std::string>& proofs,
                 const std::vector<DrillRestart>& restarts, const std::string& more = "",
                 const std::string& who = "domain: rank, index: 1") {
  const TempDirectory folder;
  write_bytes(folder / "s.yaml", "name: s\nrun: r\nevents:\n  - {who: {" + who + "}, when: {step: 3}, what: {" + what +
                                     "}" + more + "}\n");
  std::string lines;
  double at = 100;
  for (const std::string& proof : proofs)
    lines += json{{"event", 0},  {"generation", 0}, {"rank", 1},
                  {"node", 1},   {"step", 3},       {"at", "begin"},
                  {"kind", "x"}, {"unix_s", at++},  {"proof", json::parse(proof)}}
                 .dump() +
             "\n";
  write_bytes(folder / "strikes.jsonl", lines);
  DrillCase out;
  out.restarts = restarts;
  prove_strikes(read_scenario_file(folder / "s.yaml"), folder.path(), out);
  CHECK((out.struck.size() == 1 || !out.differences.empty()));
  return out;
}

DrillRestart ended(const std::string& cause, std::int64_t rank = 1, double at = 101) {
  DrillRestart r;
  r.rank = rank, r.cause = cause, r.detected_unix_s = r.stopped_unix_s = at;
  return r;
}

void fails(const DrillCase& c, const std::string& why) {
  INFO(why);
  REQUIRE(!c.differences.empty());
  CHECK_THAT(c.differences.front(), Catch::Contains(why));
}

bool passes(const DrillCase& c) { return c.differences.empty() && c.struck.size() == 1; }

}  // namespace

TEST_CASE("a fault without a line, or with a line and no end, did not strike") {
  fails(judged("kind: kill", {}, {}), "kill of rank 1 at the begin of step 3 never struck");
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
    fails(judged(what, {"{}"}, {ended(cause, 0)}), "rank 0 is named");
  }
  DrillRestart peer = ended("exit status 4", 0);
  peer.message = "all_to_all over axis expert was not over: rank 1 is silent";
  const std::string stopped = R"({"samples_stopped": 9, "samples_moved": 0, "ended": true})";
  CHECK(passes(judged("kind: hang", {stopped}, {peer})));
  peer.message = "rank 12 is silent";
  fails(judged("kind: hang", {stopped}, {peer}), "rank 0 is named");
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
  fails(judged("kind: maintenance", {"{}"}, none, "", "domain: all"), "the run was not asked to end");
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
