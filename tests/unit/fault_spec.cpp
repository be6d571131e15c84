// Fault scenario files of the recovery drill: what they say, and what is refused.
#include <catch2/catch.hpp>

#include "configs/spec/fault.hpp"
#include "configs/spec/run.hpp"
#include "configs/spec/support/error.hpp"
#include "tests/support/temp_directory.hpp"

using namespace wt;
using wt::test::TempDirectory;

namespace {

FaultSpec read(const std::string& cases) {
  const TempDirectory folder;
  const auto file = folder.path() / "drill.yaml";
  test::write_bytes(file, "name: drill\nrun: some-run\nexpect: bitwise\ncases:\n" + cases);
  return read_fault_spec_file(file);
}

const char* kOp = "  - {name: a, kind: kill, rank: 1, step: 2, at: mb0.L1.experts.bwd}\n";
const char* kSave = "  - {name: b, kind: kill, rank: 0, step: 4, at: checkpoint, after: 0.5}\n";
const std::vector<std::string> kOps = {"mb0.L0.attn.fwd", "mb0.L1.experts.bwd", "optimizer"};

RunSpec run_of(std::int64_t replicate, std::int64_t shard, std::int64_t steps, std::int64_t save_interval) {
  RunSpec run;
  run.name = "some-run";
  run.layout.replicate = replicate, run.layout.shard = shard;
  run.steps = steps, run.save_interval = save_interval;
  return run;
}

}  // namespace

TEST_CASE("the shipped drill kills in compute, before the optimizer and in a checkpoint") {
  const FaultSpec spec = read_fault_spec("kill-rank");
  CHECK(spec.name == "kill-rank");
  REQUIRE(spec.cases.size() == 3);
  CHECK(spec.cases[0].op == "mb0.L1.experts.bwd");
  CHECK_FALSE(spec.cases[0].at_checkpoint);
  CHECK(spec.cases[2].at_checkpoint);
  CHECK(spec.cases[2].after == 0.5);
}

TEST_CASE("cases are read") {
  const FaultSpec spec = read(std::string(kOp) + kSave);
  CHECK(spec.run == "some-run");
  CHECK(spec.cases.at(0).rank == 1);
  CHECK(spec.cases.at(0).step == 2);
  CHECK(spec.cases.at(1).op.empty());
  CHECK_NOTHROW(check_fault_spec(spec, run_of(1, 2, 6, 4), kOps));
}

TEST_CASE("bad cases are refused with what is allowed") {
  const auto refused = [](const std::string& line, const std::string& why) {
    CHECK_THROWS_WITH(read("  - " + line), Catch::Contains(why));
  };
  refused("{name: a, kind: stop, rank: 1, step: 2, at: optimizer}", "found 'stop', allowed kill");
  refused("{name: a, kind: kill, rank: -1, step: 2, at: optimizer}", "rank");
  refused("{name: a, kind: kill, rank: 1, step: 2, at: 'layer 3'}", "needs 'checkpoint' or the id of an op");
  refused("{name: a, kind: kill, rank: 1, step: 2, at: optimizer, after: 0.5}", "only a fault at a checkpoint");
  refused("{name: a, kind: kill, rank: 1, step: 2, at: checkpoint}", "after");
  refused("{name: a, kind: kill, rank: 1, step: 2, at: checkpoint, after: 1.5}", "1.5");
  refused("{name: a, kind: kill, rank: 1, step: 0, at: checkpoint, after: 0.5}", "step");
  refused("{name: a, kind: kill, rank: 1, step: 2, at: optimizer, wen: 1}", "unknown key");
  CHECK_THROWS_WITH(read(std::string(kOp) + kOp), Catch::Contains("found 'a' twice"));
}

TEST_CASE("a drill that cannot happen in its run is refused") {
  const FaultSpec op = read(kOp), save = read(kSave);
  const auto refused = [](const FaultSpec& spec, const RunSpec& run, const std::string& why) {
    CHECK_THROWS_WITH(check_fault_spec(spec, run, kOps), Catch::Contains(why));
  };
  refused(op, run_of(1, 1, 6, 4), "found 1, the run some-run has ranks 0..0");
  refused(op, run_of(1, 2, 1, 4), "found 2, the run some-run has steps 1..1");
  refused(save, run_of(1, 2, 6, 3), "writes no checkpoint there; it saves every 3 steps and at its end, step 6");
  refused(save, run_of(1, 2, 6, 0), "writes no checkpoint there; it saves at its end, step 6");
  CHECK_THROWS_WITH(check_fault_spec(op, run_of(1, 2, 6, 4), {"mb0.L1.experts.fwd"}),
                    Catch::Contains("did you mean 'mb0.L1.experts.fwd'"));
  CHECK_NOTHROW(check_fault_spec(save, run_of(1, 2, 4, 0), kOps));  // saved at the end
  RunSpec unsaved = run_of(1, 2, 4, 4);
  unsaved.save = false;
  refused(save, unsaved, "it saves none");
  const FaultSpec replica = read("  - {name: c, kind: kill, rank: 3, step: 4, at: checkpoint, after: 0.5}\n");
  refused(replica, run_of(2, 2, 4, 4), "ranks 0..1 write the checkpoints");
}

TEST_CASE("cases in the words of the trainer's --inject") {
  CHECK(inject_text(read(kOp).cases[0]) == "rank=1,step=2,at=mb0.L1.experts.bwd");
  CHECK(inject_text(read(kSave).cases[0]) == "rank=0,step=4,at=checkpoint,after=0.5");
}
