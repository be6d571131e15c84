// Number formats by class of operations: run files, and what the step program sends and keeps in them.
#include "configs/files/precisions.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "configs/base/error.hpp"
#include "configs/files/run.hpp"
#include "sim/program/compose/compose.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using Catch::Contains;
using Format = NumberFormat;

namespace {

RunSpec read(const std::string& text) {
  const test::TempDirectory folder;
  std::ofstream(folder / "run.yaml")
      << text
      << "\nmodel: olmoe-1b-7b\nmax_duration: 1ba\nmax_seq_len: 64\nglobal_train_batch_size: 8\n"
         "device_train_microbatch_size: 1\nfsdp_config: {data_parallel_replicate_degree: 2, "
         "data_parallel_shard_degree: 4, expert_parallel_degree: 4}\n";
  return read_run(folder / "run.yaml");
}

RunSpec written_and_read(const RunSpec& run) {
  const test::TempDirectory folder;
  std::ofstream(folder / "run.yaml") << run_to_yaml(run);
  return read_run(folder / "run.yaml");
}

/// Bytes of the program's collectives by op name, and what it holds through the step by buffer.
struct Moved {
  std::map<std::string, double> sent, held;
  double updated = 0;  ///< parameters of the optimizer's work
};

Moved moved(const RunSpec& run) {
  Moved out;
  const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  for (const OpInstance& instance : unroll(set.programs.front())) {
    out.sent[instance.op->name] += instance.op->collective.bytes.at(1000);
    for (const WorkItem& item : instance.op->work)
      if (item.kernel == Kernel::adamw) out.updated += item.rows.at(0);
  }
  for (const Buffer& buffer : set.programs.front().resident) out.held[buffer.name] += buffer.bytes.at(0);
  return out;
}

}  // namespace

TEST_CASE("bytes of an element count its share of the block's scale") {
  CHECK(bytes_of(Format::tf32) == 4);
  CHECK(bytes_of(Format::fp8) == 1);
  CHECK(bytes_of(Format::fp8_blockwise) * 128 == 128 + 4);
  CHECK(bytes_of(Format::mxfp8) * 32 == 32 + 1);
  CHECK(bytes_of(Format::nvfp4) * 16 == 8 + 1);
  CHECK(share_of_compute(Format::fp8) == 0.5);
  CHECK(share_of_compute(Format::fp32) == 1);
}

TEST_CASE("a recipe names the formats of all products, and classes have their own beside it") {
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    INFO(recipe.word);
    const RunSpec run = read("precision: " + recipe.word);
    CHECK(run.precision == recipe.compute);
    CHECK(run.precisions == recipe.precisions);
    CHECK(written_and_read(run).precisions == run.precisions);
    CHECK(written_and_read(run).precision == run.precision);
    CHECK(untrainable(run).empty() == (recipe.word == "fp32" || recipe.word == "amp_bf16"));
  }
  const RunSpec run = read(
      "precision: amp_nvfp4\nprecisions: {weight_gradients: bf16, attention: fp8, dispatch: fp8_blockwise, moments: "
      "bf16}");
  CHECK(run.precisions.forward == Format::nvfp4);
  CHECK(run.precisions.weight_gradients == Format::bf16);
  CHECK(run.precisions.dispatch == Format::fp8_blockwise);
  CHECK(run.precisions.moments == Format::bf16);
  CHECK(written_and_read(run).precisions == run.precisions);
}

TEST_CASE("formats that nothing has are refused") {
  CHECK_THROWS_WITH(read("precision: fp8"), Contains("amp_fp8"));
  CHECK_THROWS_WITH(read("precision: amp_bf16\nprecisions: {dispatch: fp32}"), Contains("fp8_blockwise"));
  CHECK_THROWS_WITH(read("precision: amp_bf16\nprecisions: {dispach: fp8}"), Contains("dispatch"));
  CHECK_THROWS_WITH(read("precision: amp_bf16\nprecisions: {moments: nvfp4}"), Contains("fp32, bf16, fp8"));
  CHECK_THROWS_WITH(read("precision: tf32\nprecisions: {forward: fp8}"), Contains("found fp8 beside precision tf32"));
  CHECK_NOTHROW(read("precision: tf32\nprecisions: {moments: bf16}"));
}

TEST_CASE("rows go out in the dispatch's format and come back in 16 bits; weights are gathered in theirs") {
  const Moved usual = moved(read("precision: amp_bf16")),
              narrow = moved(read("precision: amp_bf16\nprecisions: {dispatch: mxfp8, gathered_weights: fp8}"));
  const double mxfp8 = (1 + 1. / 32) / 2;
  for (const auto& [name, bytes] : usual.sent) {
    INFO(name);
    const bool gathers =
        name.find("unshard") != std::string::npos && !name.starts_with("embedding") && !name.starts_with("head");
    const double share = name == "dispatch.fwd" ? mxfp8 : gathers ? 0.5 : 1;
    CHECK(narrow.sent.at(name) == Approx(share * bytes));
  }
  CHECK(usual.sent.at("dispatch.fwd") > 0);
  CHECK(usual.sent.at("dispatch.bwd") > 0);
  CHECK(narrow.held.at("gathered slots") == Approx(usual.held.at("gathered slots") / 2));
  CHECK(narrow.held.at("masters") == usual.held.at("masters"));
}

TEST_CASE("the optimizer keeps, reads and writes its state in the state's formats") {
  const Moved usual = moved(read("precision: amp_bf16")),
              narrow = moved(read("precision: amp_bf16\nprecisions: {master_weights: bf16, moments: fp8}"));
  CHECK(narrow.held.at("masters") == usual.held.at("masters") / 2);
  CHECK(narrow.held.at("moments") == usual.held.at("moments") / 4);
  CHECK(narrow.updated == Approx(usual.updated * (2 * 2 + 4 * 1 + 4) / 28));
}
