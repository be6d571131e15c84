// Failure-rate presets: published rates, evidence on every number, strict reading.
#include "configs/files/failures.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using wt::test::TempDirectory;

namespace {

const std::string kGood = R"(name: mine
title: a test
node_days: 1000
failures:
  - {class: gpu, count: 4, evidence: measured, source: log}
recovery:
  detect: {time: 1m, evidence: measured, source: log}
  reschedule: {time: 2m, evidence: measured, source: log}
  restart: {time: 30s, evidence: measured, source: log}
  reload: {time: 90s, evidence: measured, source: log}
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("published rates per 1000 node-days") {
  CHECK(read_failures("rsc1").failures_per_1000_node_days() == 6.50);
  CHECK(read_failures("rsc2").failures_per_1000_node_days() == 2.34);
  CHECK(read_failures("llama3").failures_per_1000_node_days() == Approx(3.79).margin(5e-3));
  CHECK(read_failures("bloom").failures_per_1000_node_days() == Approx(1000.0 / (48 * 7)).epsilon(0.02));
  CHECK(read_failures("opt-early").failures_per_1000_node_days() == Approx(2000.0 / 128).epsilon(0.01));
}

TEST_CASE("Llama 3's counts are its 419 unexpected and 47 planned interruptions") {
  const FailurePreset p = read_failures("llama3");
  std::int64_t count = 0;
  for (const auto& c : p.failures) count += c.count;
  CHECK(count == 419);
  CHECK(p.planned.at(0).count == 47);
  CHECK(p.job_mtbf_s(2048).value / 3600 == Approx(3.09).margin(5e-3));
  CHECK(p.planned_mtbs_s(2048).value == Approx(54.0 * 86400 / 47));
}

TEST_CASE("3072 GPUs fail every 9.6, 16.5 and 26.7 hours") {
  CHECK(read_failures("rsc1").job_mtbf_s(384).value / 3600 == Approx(9.6).margin(0.05));
  CHECK(read_failures("llama3").job_mtbf_s(384).value / 3600 == Approx(16.5).margin(0.05));
  CHECK(read_failures("rsc2").job_mtbf_s(384).value / 3600 == Approx(26.7).margin(0.05));
  CHECK_THROWS_WITH(read_failures("rsc1").job_mtbf_s(0), Catch::Contains("found 0 nodes"));
}

TEST_CASE("every shipped preset gives a source for every number") {
  const auto names = preset_names("faults/rates");
  CHECK(names == std::vector<std::string>{"b200-lablup", "bloom", "byterobust-dense", "byterobust-moe", "llama3",
                                          "llama3-laws", "olmo-hybrid", "opt-early", "rsc1", "rsc1-lemons", "rsc2"});
  for (const auto& name : names) {
    const FailurePreset p = read_failures(name);
    CHECK(p.name == name);
    for (const auto& c : p.failures) CHECK_FALSE(c.per_1000_node_days.evidence.source.empty());
    for (const SourcedNumber* n :
         {&p.recovery.detect_s, &p.recovery.reschedule_s, &p.recovery.restart_s, &p.recovery.reload_s}) {
      CHECK_FALSE(n->evidence.source.empty());
    }
    CHECK(p.recovery.total_s() > 0);
    const bool phases = name != "olmo-hybrid";  // of which the whole alone is published
    CHECK(p.recovery.detect_s.value > 0);
    CHECK((p.recovery.reschedule_s.value > 0) == phases);
    CHECK((p.recovery.restart_s.value > 0) == phases);
    CHECK((p.recovery.reload_s.value > 0) == phases);
  }
}

TEST_CASE("bad nodes have the share of events that their source gives") {
  const BadNodes b200 = read_failures("b200-lablup").failures.at(0).bad;
  const double theirs = b200.share * b200.factor;
  CHECK(b200.share == Approx(3.0 / 63).epsilon(1e-3));
  CHECK(theirs / (theirs + 1 - b200.share) == Approx(0.5).margin(1e-3));  // half of the exclusions
  CHECK(read_failures("b200-lablup").failures_per_1000_node_days() == Approx(10 / (63 * 0.055)));
  // With the lemons 14 % of the jobs failed, without 4 %.
  const BadNodes lemons = read_failures("rsc1-lemons").failures.at(0).bad;
  const double with = 1 - lemons.share + lemons.share * lemons.factor;
  CHECK(lemons.share == 0.012);
  CHECK(1 - std::pow(1 - 0.04, with) == Approx(0.14).margin(5e-4));
  CHECK(read_failures("rsc1-lemons").failures_per_1000_node_days() ==
        read_failures("rsc1").failures_per_1000_node_days());
}

TEST_CASE("ByteRobust's incidents: 175 in three months and 125 in one, some of code and few of a switch") {
  struct Published {
    const char* name;
    double evictions, days;
    std::int64_t rollbacks, updates, all;
  };
  for (const Published& p :
       {Published{"byterobust-dense", 143, 90, 12, 20, 175}, {"byterobust-moe", 80, 30, 14, 31, 125}}) {
    INFO(p.name);
    const FailurePreset preset = read_failures(p.name);
    const FailureClass &machine = preset.failures.at(0), &under = preset.failures.at(1), &code = preset.failures.at(2);
    const double node_days = 1200 * p.days;
    CHECK(machine.per_1000_node_days.value == Approx(0.99 * p.evictions / node_days * 1000).epsilon(1e-3));
    CHECK(under.per_1000_node_days.value == Approx(0.01 * p.evictions / node_days * 1000).epsilon(1e-3));
    CHECK(under.domain == FaultDomain::leaf);
    CHECK(code.count == p.rollbacks);
    CHECK(code.domain == FaultDomain::rank);  // no node is away for it
    CHECK(preset.planned.at(0).count == p.updates);
    CHECK(p.evictions + static_cast<double>(code.count + preset.planned[0].count) == static_cast<double>(p.all));
    CHECK(preset.recovery.reschedule_s.value == Approx(768 / 10.87).epsilon(5e-3));
  }
}

TEST_CASE("OLMo Hybrid's recovery is lognormal, and its rate what 3 % of the time leaves") {
  const FailurePreset p = read_failures("olmo-hybrid");
  CHECK(p.recovery.detect_s.median == 222);
  CHECK(p.recovery.detect_s.sigma() == Approx(2.17).margin(5e-3));
  CHECK(p.recovery.total_s() / p.job_mtbf_s(64).value == Approx(0.03).epsilon(5e-3));
}

TEST_CASE("Llama 3's laws have its events and its recovery, and software takes no node away") {
  const FailurePreset laws = read_failures("llama3-laws"), plain = read_failures("llama3");
  CHECK(laws.failures.at(0).count + laws.failures.at(1).count == 419);
  CHECK(laws.failures[0].shape == 0.78);
  CHECK(laws.failures[1].domain == FaultDomain::rank);
  CHECK(laws.job_mtbf_s(384).value == Approx(plain.job_mtbf_s(384).value));
  CHECK(laws.planned_mtbs_s(384).value == plain.planned_mtbs_s(384).value);
  CHECK(laws.recovery.total_s() == plain.recovery.total_s());
}

TEST_CASE("BLOOM's slow GPU: one in the run, and no other preset has any") {
  const StragglerRates slow = read_stragglers("bloom").value();
  CHECK(slow.onset.job_mean_s(48) / 86400 == Approx(3.5 * 365 / 12).epsilon(0.03));
  CHECK(slow.step_factor.value == Approx(149.0 / 140).epsilon(1e-3));
  CHECK(slow.duration_s.value == 2 * 86400);
  CHECK(slow.exchanged);
  for (const SourcedNumber* n : {&slow.onset.per_1000_node_days, &slow.step_factor, &slow.duration_s})
    CHECK_THAT(n->evidence.source, Catch::Contains("2022-04-28"));
  CHECK_FALSE(read_stragglers("none").has_value());
  CHECK_THROWS_WITH(read_stragglers("llama3"), Catch::Contains("describes no slow nodes"));
}

TEST_CASE("silent errors: Llama 3's six, and no other preset has a rate") {
  const FailureClass silent = read_silent_errors("llama3").value();
  CHECK(silent.count == 6);
  CHECK(silent.per_1000_node_days.value == Approx(0.054).margin(5e-4));
  CHECK(silent.job_mean_s(2048) / 86400 == Approx(9));  // six in 54 days
  CHECK_FALSE(read_silent_errors("none").has_value());
  CHECK_THROWS_WITH(read_silent_errors("rsc1"), Catch::Contains("gives no rate of them"));
  const TempDirectory folder;
  test::write_bytes(folder.path() / "mine.yaml",
                    kGood + "silent_errors: {class: SDC, counts: 2, evidence: measured, source: log}\n");
  CHECK_THROWS_WITH(read_silent_errors((folder.path() / "mine.yaml").string()), Catch::Contains("needs exactly one"));
}

TEST_CASE("slow nodes of a file of one's own") {
  const TempDirectory folder;
  const auto read = [&](const std::string& section) {
    const auto file = folder.path() / "mine.yaml";
    test::write_bytes(file, kGood + section);
    return read_stragglers(file.string()).value();
  };
  const std::string good =
      "stragglers: {class: hot GPU, count: 2, evidence: measured, source: log, ends: recovers,\n"
      "  step_factor: {value: 1.3, evidence: measured, source: log},\n"
      "  duration: {time: 20m, evidence: measured, source: log}}\n";
  CHECK(read(good).onset.per_1000_node_days.value == 2);
  CHECK_FALSE(read(good).exchanged);
  CHECK(read(replaced(good, "count: 2", "count: 0")).onset.job_mean_s(8) == 0);
  CHECK_THROWS_WITH(read(replaced(good, "1.3", "0.9")), Catch::Contains("step_factor.value: found '0.9'"));
  CHECK(read(replaced(good, "step_factor: {value: 1.3", "node_compute: {value: 0.8")).node_compute.value == 0.8);
  CHECK_THROWS_WITH(read(replaced(good, "step_factor: {value: 1.3", "node_compute: {value: 1.3")),
                    Catch::Contains("node_compute.value: found '1.3'"));
  CHECK_THROWS_WITH(read(replaced(good, "ends:", "node_compute: {value: 0.8}, ends:")), Catch::Contains("found both"));
  CHECK_THROWS_WITH(read(replaced(good, "step_factor:", "step_facto:")), Catch::Contains("found neither"));
  CHECK_THROWS_WITH(read(replaced(good, "recovers", "ends")), Catch::Contains("exchanged"));
  CHECK_THROWS_WITH(read(replaced(good, "20m", "-20m")), Catch::Contains("duration"));
  CHECK_THROWS_WITH(read(replaced(good, "hot GPU,", "hot GPU, factor: 2,")), Catch::Contains("factor"));
}

TEST_CASE("a preset of one's own is read strictly") {
  const TempDirectory folder;
  const auto read = [&](const std::string& text) {
    const auto file = folder.path() / "mine.yaml";
    test::write_bytes(file, text);
    return read_failures_file(file);
  };
  CHECK(read(kGood).failures_per_1000_node_days() == 4);
  CHECK(read(kGood).recovery.total_s() == 300);
  CHECK(read(kGood).planned_mtbs_s(8).value == 0);
  CHECK_THROWS_WITH(read(replaced(kGood, "count: 4", "counts: 4")), Catch::Contains("needs exactly one"));
  CHECK_THROWS_WITH(read(replaced(kGood, "node_days: 1000", "node_gpus: 8")), Catch::Contains("needs node_days"));
  CHECK_THROWS_WITH(read(replaced(kGood, "1m, evidence: measured", "1m, evidence: guessed")),
                    Catch::Contains("found 'guessed'"));
  CHECK_THROWS_WITH(read(replaced(kGood, "title: a test", "title: a test\nnode_gpu: 8")),
                    Catch::Contains("did you mean 'node_gpus'"));
  CHECK_THROWS_WITH(read(replaced(kGood, "count: 4", "count: 0")), Catch::Contains("found no events"));
  CHECK_THROWS_WITH(read(replaced(kGood, "count: 4", "count: 400000000")),
                    Catch::Contains("at most 100 a node and day"));
  CHECK_THROWS_WITH(read_failures("rsc3"), Catch::Contains("presets: b200-lablup, bloom"));
}
