// What a drill measured: a file that reads back to the same, and studies that go by it.
#include "configs/files/measured_recovery.hpp"

#include <catch2/catch.hpp>

#include "configs/files/study.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

MeasuredRecovery example() {
  const auto time = [](double mean_s, double median_s) {
    SourcedTime out;
    out.value = mean_s, out.median = median_s;
    out.evidence = {Evidence::measured, "three: of a test"};
    return out;
  };
  return {.title = "a drill, \"quoted\": of a test",
          .run = "mine",
          .ranks = 4,
          .step_s = 0.1,
          .blocking_s = 0.003,
          .persist_s = 0.25,
          .first_step_s = 1.0 / 3,
          .times = {time(0.75, 0.5), time(0.25, 0), time(2, 1.5), time(0.125, 0)},
          .hang_detect_s = 11.5,
          .notice_s = 1.25,
          .relaunch_s = 2.75};
}

void check_same(const SourcedTime& a, const SourcedTime& b) {
  CHECK((a.value == b.value && a.median == b.median));
  CHECK((a.evidence.kind == b.evidence.kind && a.evidence.source == b.evidence.source));
}

}  // namespace

TEST_CASE("a measured recovery reads back to the same") {
  for (const bool hang : {true, false}) {
    MeasuredRecovery wrote = example();
    if (!hang) wrote.hang_detect_s.reset(), wrote.notice_s.reset(), wrote.relaunch_s.reset();
    const TempDirectory folder;
    write_bytes(folder / "r.yaml", to_yaml(wrote));
    const MeasuredRecovery read = read_measured_recovery((folder / "r.yaml").string());
    CHECK((read.title == wrote.title && read.run == wrote.run && read.ranks == wrote.ranks));
    CHECK((read.step_s == wrote.step_s && read.first_step_s == wrote.first_step_s));
    CHECK((read.blocking_s == wrote.blocking_s && read.persist_s == wrote.persist_s));
    CHECK(read.hang_detect_s == wrote.hang_detect_s);
    CHECK((read.notice_s == wrote.notice_s && read.relaunch_s == wrote.relaunch_s));
    check_same(read.times.detect_s, wrote.times.detect_s);
    check_same(read.times.reschedule_s, wrote.times.reschedule_s);
    check_same(read.times.restart_s, wrote.times.restart_s);
    check_same(read.times.reload_s, wrote.times.reload_s);
  }
}

TEST_CASE("a study that names one recovers as measured, and fails as its rates say") {
  const TempDirectory folder;
  write_bytes(folder / "r.yaml", to_yaml(example()));
  const std::string text =
      "{model: dbrx, cluster: hgx-h100, gpus: 64, tokens: 1T, max_seq_len: 4096, global_train_batch_size: 128";
  const StudySpec plain = study_from_text(text + "}", "plain"),
                  named = study_from_text(text + ", recovery: " + (folder / "r.yaml").string() + "}", "named");
  const FailurePreset published = failures_of(plain, "rsc1"), measured = failures_of(named, "rsc1");
  CHECK(published.recovery.total_s() == read_failures("rsc1").recovery.total_s());
  CHECK(measured.recovery.total_s() == 0.75 + 0.25 + 2 + 0.125);
  CHECK(measured.failures_per_1000_node_days() == published.failures_per_1000_node_days());
  CHECK(study_from_text(study_yaml(named), "again").recovery == named.recovery);
}

TEST_CASE("a measured recovery is read strictly") {
  const auto refused = [](const std::string& from, const std::string& to, const char* what) {
    const TempDirectory folder;
    std::string text = to_yaml(example());
    REQUIRE(text.find(from) != std::string::npos);
    write_bytes(folder / "r.yaml", text.replace(text.find(from), from.size(), to));
    CHECK_THAT(usage_error([&] { read_measured_recovery((folder / "r.yaml").string()); }), Catch::Contains(what));
  };
  refused("ranks: 4", "ranks: 0", "ranks");
  refused("step: 0.1s", "step: 0s", "needs a time > 0");
  refused("hang: 11.5s", "hang: -1s", "hang");
  refused("notice: 1.25s", "notice: -1s", "notice");
  refused("relaunch: 2.75s", "relaunch: soon", "relaunch");
  refused("reload:", "loading:", "reload");
  refused("run: mine", "runs: mine", "run");
  CHECK_THAT(usage_error([] { read_measured_recovery("nobody"); }), Catch::Contains("nobody"));
}
