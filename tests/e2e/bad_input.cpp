// Every door of `windtunnel-train train`, knocked on with the wrong thing: status 2, what was found, what is allowed,
// and nothing trained.
#include <catch2/catch.hpp>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;

namespace {

RunSpec run_of_two() {
  RunSpec run = with_layout(small_run(), 1, 2, 2);
  run.steps = 2, run.save = true;
  return run;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// Names in the output folder; empty when it was not made.
std::vector<std::string> made_in(const fs::path& folder) {
  std::vector<std::string> out;
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// Runs the text as a run file and returns what was said; `made`: what may be in the output folder then.
std::string refused(const std::string& yaml, const Launch& launch = {}, const std::vector<std::string>& made = {}) {
  static int count = 0;
  const fs::path folder = scratch(fmt::format("refused-{}", ++count)), file = folder.string() + ".yaml";
  write_bytes(file, yaml);
  const Ended ended = train_file(file, folder, launch);
  INFO(ended.said);
  CHECK(ended.status == 2);
  CHECK(made_in(folder) == made);
  return ended.said;
}

std::string edited(const std::string& from, const std::string& to) {
  return replaced(run_to_yaml(run_of_two()), from, to);
}

using Catch::Contains;

}  // namespace

TEST_CASE("an output where nothing can be written is refused before the run file is read") {
  const TempDirectory folder;
  write_bytes(folder / "file", "kept");
  const std::string below = (folder / "file/below").string();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"train", "no-such.yaml", "-o", below},
                                                {"bench", "kernels", "--run", "no-such.yaml", "-o", below}}) {
    const Ended ended = wait_for(start_trainer(words));
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Contains("file is a file; needs a "));
  }
  CHECK(read_bytes(folder / "file") == "kept");
}

TEST_CASE("an unknown key: the nearest one is suggested") {
  CHECK_THAT(refused(edited("save_interval", "save_intervall")),
             Contains("save_intervall") && Contains("did you mean 'save_interval'"));
  CHECK_THAT(refused(edited("moe_top_k", "moe_topk")), Contains("moe_topk") && Contains("moe_top_k"));
}

TEST_CASE("a wrong unit or value") {
  CHECK_THAT(refused(edited("2ba", "40sec")), Contains("max_duration") && Contains("40sec") && Contains("40ba"));
  CHECK_THAT(refused(edited("precision: fp32", "precision: fp8")), Contains("fp8") && Contains("amp_bf16"));
  CHECK_THAT(refused(edited("max_seq_len: 48", "max_seq_len: 0")), Contains("max_seq_len") && Contains("0"));
  CHECK_THAT(refused(edited("ffn_hidden_size: 104", "ffn_hidden_size: 102")),
             Contains("found 102") && Contains("multiple of 4"));
  CHECK_THAT(refused(edited("max_duration: 2ba", "max_duration: 0ba")), Contains("max_duration"));
  for (const std::string chunks : {"0", "-4", "2.5", "tiger"})
    CHECK_THAT(refused(edited("precision: fp32", "precision: fp32\nloss_chunks: " + chunks)),
               Contains("loss_chunks: found '" + chunks + "', needs a whole number >= 1, or liger"));
}

TEST_CASE("a batch that the ranks cannot share") {
  CHECK_THAT(refused(edited("global_train_batch_size: 24", "global_train_batch_size: 17")),
             Contains("global_train_batch_size: found 17") && Contains("multiple of world = 2"));
  CHECK_THAT(refused(edited("device_train_microbatch_size: 2", "device_train_microbatch_size: 13")),
             Contains("device_train_microbatch_size: found 13") && Contains("at most the 12 sequences"));
}

TEST_CASE("experts that the ranks cannot share") {
  CHECK_THAT(refused(edited("moe_num_experts: 8", "moe_num_experts: 7")),
             Contains("expert parallelism 2") && Contains("7 experts"));
  CHECK_THAT(refused(edited("expert_parallel_degree: 2", "expert_parallel_degree: 3")),
             Contains("expert parallelism 3") && Contains("shard = 2"));
}

TEST_CASE("a placement that leaves an expert out") {
  CHECK_THAT(refused(edited("  activation_checkpointing",
                            "  tensor_parallel_degree: 2\n  sequence_parallel: true\n  activation_checkpointing")),
             Contains("tensor 2+sequence") && Contains("simulated alone"));
  CHECK_THAT(refused(edited("  activation_checkpointing",
                            "  expert_placement: [[0,1,2,3,4,5,6,6],[0],[0]]\n  activation_checkpointing")),
             Contains("layer 0") && Contains("expert 7 has no slot"));
}

TEST_CASE("a model with what is only simulated") {
  const auto with = [](auto change) {
    RunSpec run = run_of_two();
    change(run.model);
    return refused(run_to_yaml(run));
  };
  CHECK_THAT(with([](ModelSpec& m) { m.simulated_only = {"shared_expert_gate"}; }),
             Contains("shared_expert_gate") && Contains("windtunnel simulate"));
  CHECK_THAT(with([](ModelSpec& m) { m.mtp_layers = 48; }),
             Contains("max_seq_len: found 48") && Contains("48 modules of multi-token prediction"));
}

TEST_CASE("no such run file, no data, no shard, a shard that is cut off") {
  const Ended ended = train_file("no-such.yaml", scratch("nowhere"));
  CHECK(ended.status == 2);
  CHECK_THAT(ended.said, Contains("no-such.yaml"));
  RunSpec run = run_of_two();
  run.dataset.use_folder(scratch("no-data"));
  CHECK_THAT(refused(run_to_yaml(run)), Contains("no-data"));
  run.dataset.use_folder(scratch("spoilt-data"));
  fs::copy(licence_tokens(48), run.dataset.folder(), fs::copy_options::recursive);
  fs::resize_file(run.dataset.folder() / "shard.00000.mds", 1000);
  CHECK_THAT(refused(run_to_yaml(run)), Contains("shard.00000.mds") && Contains("1000"));
  fs::remove(run.dataset.folder() / "shard.00000.mds");
  CHECK_THAT(refused(run_to_yaml(run)), Contains("shard.00000.mds"));
}

TEST_CASE("data that does not fit the model: found before the first step is done, ids by the ranks") {
  const std::vector<std::string> begun{"generations.jsonl", "metrics.jsonl", "run.yaml"};
  RunSpec run = run_of_two();
  run.model.vocab = 100;
  CHECK_THAT(refused(run_to_yaml(run), {}, begun), Contains("token 1") && Contains("vocab_size is 100"));
  run = run_of_two();
  run.seq = 64;
  CHECK_THAT(refused(run_to_yaml(run)), Contains("has 49 tokens, max_seq_len 64 needs 65") && Contains("--seq-len 64"));
}

TEST_CASE("a launcher's environment that contradicts the layout or itself") {
  const auto said = [](std::map<std::string, std::string> environment, const std::vector<std::string>& made = {}) {
    Launch launch;
    launch.environment = std::move(environment);
    return refused(run_to_yaml(run_of_two()), launch, made);
  };
  // The first rank holds the folder before it meets the others and compares their number.
  CHECK_THAT(said({{"RANK", "0"}, {"WORLD_SIZE", "3"}}, {".train.lock"}),
             Contains("launched with 3 ranks") && Contains("= 2"));
  CHECK_THAT(said({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), Contains("RANK") && Contains("found 2") && Contains("0..1"));
  CHECK_THAT(said({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), Contains("RANK") && Contains("'one'"));
  CHECK_THAT(said({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "http"}}),
             Contains("MASTER_PORT") && Contains("'http'"));
}

TEST_CASE("a fault that cannot be") {
  const auto said = [](const std::string& fault) {
    Launch launch;
    launch.more = {"--faults", fault};
    return refused(run_to_yaml(run_of_two()), launch);
  };
  const auto at = [&](std::int64_t rank, const std::string& when) {
    return said(fault_file("impossible", {killed(rank, when)}));
  };
  CHECK_THAT(said("tomorrow"), Contains("'tomorrow'") && Contains("kill-in-save"));
  CHECK_THAT(at(1, "step: 2x, at: optimizer"), Contains("2x"));
  CHECK_THAT(at(1, "step: 2, at: mb0.L1.expert.bwd"), Contains("mb0.L1.expert.bwd") && Contains("mb0.L1.experts.bwd"));
  CHECK_THAT(at(2, "step: 2, at: optimizer"), Contains("found 2") && Contains("ranks 0..1"));
  CHECK_THAT(at(0, "step: 9, at: optimizer"), Contains("found 9") && Contains("steps 1..2"));
}

TEST_CASE("arguments that are missing or unknown") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"train"},
                                                    {"train", "run.yaml"},
                                                    {"train", "run.yaml", "-o", "x", "--no-such"},
                                                    {"fly"}})
    CHECK(wait_for(start_trainer(arguments)).status == 2);
}
