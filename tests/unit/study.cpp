// Studies: what is read, what is refused, and the model presets behind them.
#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "configs/files/stack.hpp"
#include "configs/files/study.hpp"

using namespace wt;

namespace {

const std::string kStudy =
    "model: dbrx\ncluster: hgx-h100\ngpus: 64\nstack: torchtitan\ntokens: 1T\nmax_seq_len: 4096\n"
    "global_train_batch_size: 128\n";

std::string error_of(const std::string& text) {
  try {
    study_from_text(text, "study.yaml");
  } catch (const Error& e) {
    CHECK(e.code() == Code::usage);
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the DBRX study asks for 12T tokens on 384 nodes") {
  const StudySpec s = read_study("dbrx-3072-h100");
  CHECK(s.tokens == 12e12);
  CHECK(s.cluster.nodes == 384);
  CHECK(s.cluster.nic_count * 8 * static_cast<std::int64_t>(s.cluster.nic_Bps) == 3'200'000'000'000);  // bits
  CHECK(s.tokens_per_step() == 6144 * 4096);
  CHECK(s.steps() == 476838);  // 12e12 / 25,165,824, rounded up
  CHECK(s.checkpoint.evidence.kind == Evidence::assumed);
}

TEST_CASE("the same question of H200 is timed by what was measured on one, and published times for the rest") {
  const StudySpec s = read_study("dbrx-3072-h200"), of_h100 = read_study("dbrx-3072-h100");
  CHECK(s.cluster.gpu_name == "H200-SXM-141GB");
  CHECK(s.gpus == of_h100.gpus);
  CHECK(s.tokens_per_step() == of_h100.tokens_per_step());
  CHECK(s.stack == of_h100.stack);
  CHECK(s.profiles == std::vector<std::string>{"h200-dbrx"});
  CHECK(profiles_for_gpu(s.cluster.gpu_name) == std::vector<std::string>{"h200-dbrx", "h200-dbrx-gemm", "h200-moe"});
}

TEST_CASE("model presets have the parameter counts of their sources") {
  // Of tests/validation/model_shapes: weight matrices, then norms.
  for (const auto& [name, weights, norms] : {std::tuple{"dbrx", 131596025856, 497664},
                                             {"mixtral-8x7b", 46702526464, 266240},
                                             {"olmoe-1b-7b", 6919028736, 133120},
                                             {"qwen3-30b-a3b", 30531911680, 210944},
                                             {"deepseek-v2-lite", 15706357760, 126464},
                                             {"mpt-7b", 6648758272, 266240},
                                             {"gpt2", 124318464, 121344},         // and biases
                                             {"opt-2.7b", 2650526720, 1070080},   // 2,651,596,800 in all
                                             {"gpt-neo-125m", 125104896, 84480},  // 125,198,592 with 9,216 more biases
                                             {"llama3-8b", 8029995008, 266240},
                                             {"llama3-405b", 405849243648, 4145152},
                                             {"falcon-7b", 7216889856, 299904},
                                             {"falcon-180b", 179517784064, 4781056}}) {
    const ModelSpec m = read_model(name);
    INFO(name);
    CHECK(m.total_parameters() == weights + norms);
    CHECK(m.source.find("published") == 0);
  }
  CHECK(read_model("dbrx").flops_per_token(0) == 6.0 * 35852648448);
}

TEST_CASE("a Hugging Face config.json gives the same shape as the preset") {
  const ModelSpec hf = read_model("tests/data/models/dbrx_config.json"), ours = read_model("dbrx");
  CHECK(hf.total_parameters() == ours.total_parameters());
  CHECK(hf.flops_per_token(4096) == ours.flops_per_token(4096));
  CHECK(hf.kv_heads == 8);
  CHECK(hf.router.aux_loss_weight == 0.05);
}

TEST_CASE("a study may have its model as a map") {
  const std::string map =
      "model: {name: mine, n_layers: 4, d_model: 512, n_heads: 8, vocab_size: 1000, attn_config: {head_dim: 64}, "
      "ffn_config: {ffn_hidden_size: 2048}}\n";
  const StudySpec s = study_from_text(map + kStudy.substr(kStudy.find('\n') + 1), "study.yaml");
  CHECK((s.model.name == "mine" && s.model.layers == 4 && s.model.d_model == 512));
  CHECK(study_from_text(study_yaml(s), "study.yaml").model.total_parameters() == s.model.total_parameters());
  CHECK_THAT(error_of("model: {name: mine}\n" + kStudy.substr(kStudy.find('\n') + 1)),
             Catch::Contains("study.yaml:1: model.n_layers: missing"));
}

TEST_CASE("a study is written with every key, and read back the same") {
  const StudySpec s = study_from_text(kStudy + "search: {expert_degrees: [2, 4]}\nrepair_time: 7h\n", "s");
  const std::string written = study_yaml(s);
  for (const char* line : {"failures: llama3", "repair_time: 7h", "shard_sizes: auto", "tie: 0.02",
                           "network_latency: 1", "copy_bandwidth: 25GB/s", "runs: 1000", "seed: 1", "stragglers: none",
                           "precision: amp_bf16", "oversubscription: 1"})
    CHECK_THAT(written, Catch::Contains(line));
  const StudySpec again = study_from_text(written, "written");
  CHECK(again.search.expert_degrees == s.search.expert_degrees);
  CHECK(again.checkpoint.copy_Bps == s.checkpoint.copy_Bps);
  CHECK(again.checkpoint.evidence.source == s.checkpoint.evidence.source);
  CHECK(again.routing == s.routing);
  CHECK(again.profiles == s.profiles);
  CHECK(study_yaml(again) == written);
}

TEST_CASE("the failure rates are the same ones wherever nobody says any") {
  CHECK(study_from_text(kStudy, "s").failures == kDefaultFailures);
}

TEST_CASE("search lists take auto, a number or a list") {
  const auto search = [](const std::string& text) { return study_from_text(kStudy + "search: " + text, "s").search; };
  CHECK(search("{shard_sizes: auto}").shard_sizes.empty());
  CHECK(search("{shard_sizes: 64}").shard_sizes == std::vector<std::int64_t>{64});
  CHECK(search("{expert_degrees: [1, 8]}").expert_degrees == std::vector<std::int64_t>{1, 8});
  CHECK(search("{recompute: block}").recompute == std::vector<Recompute>{Recompute::block});
}

TEST_CASE("studies are read strictly, and errors name the nearest key") {
  CHECK(error_of(kStudy + "serch: {}").find("did you mean 'search'?") != std::string::npos);
  CHECK(error_of(kStudy + "search: {shard_size: 8}").find("did you mean 'shard_sizes'?") != std::string::npos);
  CHECK(error_of(kStudy + "search: {recompute: [full]}")
            .find("allowed block, attention, experts, norm, core, products, moe") != std::string::npos);
  CHECK(error_of(kStudy + "search: {microbatch: [0]}").find("needs whole numbers >= 1") != std::string::npos);
  CHECK(error_of(kStudy + "checkpoint: {copy_bandwidth: 50GB/s}").find("source") != std::string::npos);
  CHECK(error_of("model: dbrx\ncluster: hgx-h100\ngpus: 63\n").find("whole nodes of 8") != std::string::npos);
}

TEST_CASE("a share of memory kept free is refused, and the error says what replaced it") {
  for (const char* bad : {"0", "0.7", "-1", "some"}) {
    const std::string refused = error_of(kStudy + "search: {memory_risk: " + bad + "}\n");
    INFO(refused);
    CHECK_THAT(refused, Catch::Contains("memory_risk") && Catch::Contains(std::string("found '") + bad));
  }
  const std::string error = error_of(kStudy + "memory_reserve: 0.05\n");
  CHECK_THAT(error, Catch::Contains("memory_reserve") && Catch::Contains("usable_memory"));
}

TEST_CASE("slow nodes and maintenance are none unless a study names them") {
  CHECK(study_from_text(kStudy, "s").stragglers == "none");
  CHECK(study_from_text(kStudy, "s").maintenance.every_s == 0);
  const StudySpec s = study_from_text(kStudy + "stragglers: bloom\nmaintenance: {every: 30d, duration: 4h}\n", "s");
  CHECK(s.stragglers == "bloom");
  CHECK(s.maintenance.every_s == 30 * 86400);
  CHECK(s.maintenance.duration_s == 4 * 3600);
  CHECK(error_of(kStudy + "maintenance: {every: 4h, duration: 4h}").find("shorter than the time between") !=
        std::string::npos);
  CHECK(error_of(kStudy + "maintenance: {every: 1s, duration: 0s}").find("at least an hour") != std::string::npos);
  CHECK(error_of(kStudy + "maintenance: {every: 30d}").find("duration") != std::string::npos);
  CHECK(error_of(kStudy + "maintenance: {evry: 30d, every: 3d, duration: 1h}").find("did you mean 'every'") !=
        std::string::npos);
}

TEST_CASE("drifting loads and copies of experts are off or automatic unless a study names them") {
  const StudySpec off = study_from_text(kStudy, "s");
  CHECK(off.drift.loads.empty());
  CHECK(off.search.expert_copies.empty());
  const StudySpec s =
      study_from_text(kStudy + "drift: {loads: [olmoe-c4, olmoe-github], every: 500, pause: 5m}\n", "s");
  CHECK(s.drift.loads.size() == 2);
  CHECK(s.drift.every == 500);
  CHECK(s.drift.pause_s == 300);
  CHECK(error_of(kStudy + "drift: {every: 500}").find("found none, needs histograms") != std::string::npos);
  CHECK(error_of(kStudy + "drift: {loads: [], every: 500}").find("loads") != std::string::npos);
  CHECK(error_of(kStudy + "drift: {loads: [olmoe-c4]}").find("every") != std::string::npos);
  CHECK(error_of(kStudy + "drift: {loads: [olmoe-c4], every: 0}").find("every") != std::string::npos);
}

TEST_CASE("local saves, silent errors and replica loss are off unless a study names them") {
  const StudySpec off = study_from_text(kStudy, "s");
  CHECK(off.checkpoint.local_every_s == 0);
  CHECK(off.silent_errors.rate == "none");
  CHECK(off.replica_loss.recover_s == 0);
  const std::string local = "checkpoint: {local: {every: 1m, survival: 0.8, source: 'assumed: this test'}}\n",
                    silent = "silent_errors: {rate: llama3, verify: 30s, source: 'measured: this test'}\n",
                    lost = "replica_loss: {recover: 10m, stall: 3m, source: 'published: this test'}\n";
  const StudySpec s = study_from_text(kStudy + local + silent + lost, "s");
  CHECK(s.checkpoint.local_every_s == 60);
  CHECK(s.checkpoint.local_survival == 0.8);
  CHECK(s.checkpoint.local_evidence.source == "this test");
  CHECK(s.checkpoint.evidence.kind == Evidence::assumed);  // of the copy bandwidth, as without
  CHECK(s.silent_errors.rate == "llama3");
  CHECK(s.silent_errors.verify_s == 30);
  CHECK(s.silent_errors.found_after_s == 0);
  CHECK(s.silent_errors.evidence.kind == Evidence::measured);
  CHECK(s.replica_loss.recover_s == 600);
  CHECK(s.replica_loss.stall_s == 180);
  const auto refused = [](std::string text, const std::string& from, const std::string& to, const std::string& why) {
    CHECK_THAT(error_of(kStudy + text.replace(text.find(from), from.size(), to)), Catch::Contains(why));
  };
  refused(local, "1m", "0s", "needs a time above 0");
  for (const char* long_time : {"1e300s", "71000d"}) {  // whole nanoseconds have to hold it
    refused(local, "1m", long_time, "needs a time below 2.2e+09 s (70 years)");
    refused(silent, "30s", long_time, "70 years");
    refused(lost, "10m", long_time, "70 years");
    refused(lost, "3m", long_time, "70 years");
    CHECK_THAT(error_of(kStudy + "maintenance: {every: " + long_time + ", duration: 1h}"), Catch::Contains("70 years"));
  }
  refused(local, "assumed: this test", "assumed:", "where the number is from");
  refused(silent, "measured: this test", "measured:  ", "where the number is from");
  refused(local, "0.8", "1", "survival");
  refused(local, ", source: 'assumed: this test'", "", "source");
  refused(local, "assumed:", "assumed", "needs 'measured: ...'");
  refused(local, "every", "evry", "every");
  refused(silent, "30s", "-1s", "needs a duration");
  refused(silent, "rate: llama3, ", "", "rate");
  refused(silent, "verify: 30s", "verify: 30s, found_after: 0s", "found_after: needs a time above 0");
  std::string late = silent;
  late.replace(late.find("verify"), 6, "found_after: 2h, verify");
  CHECK(study_from_text(kStudy + late, "s").silent_errors.found_after_s == 7200);
  refused(lost, "10m", "0s", "needs a time above 0");
  refused(lost, "stall", "stal", "stall");
}

TEST_CASE("a batch need not be a multiple of the GPUs: tensor and pipeline ranks share sequences") {
  std::string text = kStudy;
  text.replace(text.find("128"), 3, "100");
  CHECK(study_from_text(text, "study.yaml").global_batch == 100);
}

TEST_CASE("loads nobody says are those of models in training") {
  CHECK(study_from_text(kStudy, "s").routing == std::vector<std::string>{"trained"});
  CHECK(study_from_text(kStudy + "routing: balanced\n", "s").routing == std::vector<std::string>{"balanced"});
  for (const char* model : {"mixtral-8x7b", "olmoe-1b-7b", "qwen3-30b-a3b"})
    CHECK(routing_for_model(read_model(model)) == std::vector<std::string>{"trained"});
  CHECK(routing_for_model(read_model("llama3-8b")) == std::vector<std::string>{"balanced"});
}

TEST_CASE("GPUs are timed as a stack uses them, whatever was measured; ranks on shared cores by what was") {
  CHECK(profiles_for_gpu("B999").empty());
  const std::string study =
      "model: dbrx\ngpus: 64\ntokens: 1T\nmax_seq_len: 4096\nglobal_train_batch_size: 128\ncluster: ";
  for (const std::string cluster : {"aws-p5", "hgx-h100", "hgx-h200", "hgx-b200", "falcon-4096-a100"}) {
    const StudySpec s = study_from_text(study + cluster + "\n", "s");
    CHECK(s.stack == kDefaultStack);
    CHECK(s.profiles.empty());
  }
  const StudySpec both = study_from_text(study + "aws-p5\nstack: nanotron\nprofiles: [mine]\n", "s");
  CHECK(both.stack == "nanotron");
  CHECK(both.profiles == std::vector<std::string>{"mine"});
  const std::string local =
      "model: olmoe-1b-7b\ngpus: 2\ntokens: 1B\nmax_seq_len: 512\nglobal_train_batch_size: 4\ncluster: local-2core\n";
  CHECK(error_of(local).find("profiles") != std::string::npos);
  CHECK(error_of(local + "stack: nanotron\n").find("share cores") != std::string::npos);
}
