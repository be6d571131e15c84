// What of a study is still to be measured.
#include "planner/plan/bench_shapes.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "configs/base/error.hpp"
#include "configs/files/profile.hpp"
#include "planner/plan/plan.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

std::string study(const std::string& more) {
  return "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\n" + more +
         "tokens: 20B\nmax_seq_len: 2048\nglobal_train_batch_size: 64\nrouting: [balanced]\nfailures: llama3\n"
         "search: {expert_degrees: [8], microbatch: [1], shard_sizes: [16], recompute: [none], tensor_parallel_degree: "
         "1, "
         "pipeline_parallel_degree: 1, context_parallel_degree: 1, token_dispatcher: alltoall, "
         "reshard_after_forward: true}\n";
}

StudyShapes shapes_of(const std::string& text) {
  return study_shapes(read_plan_inputs(study_from_text(text, "study.yaml"), true));
}

}  // namespace

TEST_CASE("a study needs the shapes of its layouts: rows that routing decides at four loads") {
  const StudyShapes s = shapes_of(study("profiles: [tests/data/h100-profile.json]\n"));
  CHECK(s.layouts == 1);
  CHECK(s.gpu == "H100-SXM-80GB");
  CHECK(s.run.layout.expert == 8);
  std::set<double> rows;
  for (const MissingShape& m : s.missing)
    if (m.item.kernel == Kernel::grouped_gemm && m.item.pass == Pass::forward && m.item.dims[0] == 2048)
      rows.insert(m.item.rows.fixed);
  CHECK(rows == std::set<double>{4096, 8192, 16384, 32768});  // a microbatch of 2048 tokens to 8 experts each
}

TEST_CASE("what a profile has exactly is not measured again") {
  const StudyShapes before = shapes_of(study("profiles: [tests/data/h100-profile.json]\n"));
  Profile measured;
  measured.fingerprint = {{"device", "H100"}};
  for (const MissingShape& m : before.missing) {
    Measurement row;
    row.kernel = to_string(m.item.kernel), row.pass = to_string(m.item.pass), row.dtype = to_string(m.item.precision);
    row.shape = m.item.shape(0), row.clock = "device", row.samples = {1e-3},
    row.evidence = {Evidence::measured, "test"};
    measured.measurements.push_back(row);
  }
  measured.measurements.pop_back();
  const TempDirectory folder;
  write_profile(measured, folder / "measured.json");
  const StudyShapes after =
      shapes_of(study("profiles: [tests/data/h100-profile.json, " + (folder / "measured.json").string() + "]\n"));
  REQUIRE(after.missing.size() == 1);
  CHECK(after.missing[0].item == before.missing.back().item);
  CHECK(after.known == before.known + static_cast<std::int64_t>(before.missing.size()) - 1);
}

TEST_CASE("the estimate grows with samples and with the work") {
  const MissingShape small{make_item(Kernel::gemm, Pass::forward, Precision::bf16, {128, 0}, {128, 128}), 1e-5};
  const MissingShape large{make_item(Kernel::gemm, Pass::forward, Precision::bf16, {8192, 0}, {8192, 8192}), 1e-1};
  CHECK(estimated_s(large, true, 9) > estimated_s(small, true, 9));
  CHECK(estimated_s(small, false, 18) > estimated_s(small, false, 9));
}

TEST_CASE("a study that fits nowhere has nothing to measure") {
  std::string large = study("profiles: [tests/data/h100-profile.json]\n");
  large.replace(large.find("olmoe-1b-7b"), std::string("olmoe-1b-7b").size(), "dbrx");
  CHECK_THROWS_WITH(shapes_of(large), Catch::Contains("no layout fits"));
}
