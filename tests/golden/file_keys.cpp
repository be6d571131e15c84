// docs/files.md lists the keys that readers accept, no more and no fewer. A reader names them itself: an unknown key in
// a map is refused with all that are allowed there, so each map of a complete sample is given one.
#include <yaml-cpp/yaml.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "configs/base/command_line.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/cluster.hpp"
#include "configs/files/failures.hpp"
#include "configs/files/measured_recovery.hpp"
#include "configs/files/measured_steps.hpp"
#include "configs/files/offer.hpp"
#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"
#include "configs/files/study.hpp"
#include "planner/evaluate/lm_eval.hpp"
#include "planner/watch/hooks.hpp"
#include "planner/watch/rules.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

using Keys = std::set<std::string>;
using Reader = std::function<void(const std::string& text)>;

/// What the reader allows in the map at `at` of the sample, as dotted keys without those that are maps themselves.
void add_allowed(const std::string& sample, const YAML::Node& root, YAML::Node at, const std::string& path,
                 const Reader& read, Keys& keys) {
  if (path.ends_with(".streams.")) {  // names that the file chooses
    for (const auto& entry : at) add_allowed(sample, root, entry.second, path + "NAME.", read, keys);
    return;
  }
  if (path == "variables.") {  // free
    keys.insert("variables");
    return;
  }
  if (path.ends_with(".proportions.")) {  // numbers by such names
    keys.insert(path.substr(0, path.size() - 1));
    return;
  }
  if (path == "eval_loader.dataset.") {  // the keys of train_loader.dataset
    keys.insert("eval_loader.dataset");
    return;
  }
  at["no_such_key"] = 1;
  YAML::Emitter changed;
  changed << root;
  at.remove("no_such_key");
  const std::string said = usage_error([&] { read(changed.c_str()); }), before = "allowed here: ";
  INFO(sample << "\nin the map '" << path << "': " << said);
  REQUIRE(said.find(before) != std::string::npos);
  std::istringstream words(said.substr(said.find(before) + before.size()));
  for (std::string key; std::getline(words >> std::ws, key, ',');) {
    const YAML::Node child = at[key];
    const bool map =
        child.IsDefined() && (child.IsMap() || (child.IsSequence() && child.size() > 0 && child[0].IsMap()));
    if (!map) keys.insert(path + key);
  }
  for (const auto& entry : at) {
    const std::string below = path + entry.first.as<std::string>() + ".";
    if (entry.second.IsMap()) add_allowed(sample, root, entry.second, below, read, keys);
    if (entry.second.IsSequence())
      for (const YAML::Node& element : entry.second)
        if (element.IsMap()) add_allowed(sample, root, element, below, read, keys);
  }
}

Keys accepted(const std::vector<std::string>& samples, const Reader& read) {
  Keys keys;
  for (const std::string& sample : samples) {
    INFO(sample);
    REQUIRE(usage_error([&] { read(sample); }) == "no error");
    const YAML::Node root = YAML::Load(sample);
    add_allowed(sample, root, root, "", read, keys);
  }
  return keys;
}

/// The first column of the table under a heading of docs/files.md.
Keys documented(const std::string& heading) {
  std::ifstream page("docs/files.md");
  REQUIRE(page);
  Keys keys;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## " + heading;
    if (inside && line.starts_with("| `")) keys.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return keys;
}

Reader from_file(const std::function<void(const std::filesystem::path&)>& read) {
  return [read](const std::string& text) {
    const TempDirectory folder;
    write_bytes(folder / "sample.yaml", text);
    read(folder / "sample.yaml");
  };
}

void read_cluster_text(const std::string& text) {
  YamlMap map = YamlMap::from_text(text, "sample");
  cluster_from_yaml(map);
}

const std::string kModel = "{name: m, n_layers: 2, d_model: 64, n_heads: 4, vocab_size: 99, ";

}  // namespace

TEST_CASE("every key of a study stands in docs/files.md, and no other") {
  const std::string study =
      "{model: dbrx, cluster: hgx-h100, gpus: 64, tokens: 1T, max_seq_len: 4096, global_train_batch_size: 128, "
      "maintenance: {every: 30d, duration: 4h}, silent_errors: {rate: llama3, verify: 2s, found_after: 1d, source: "
      "'assumed: a'}, "
      "drift: {loads: [olmoe-c4], every: 1}, replica_loss: {recover: 10m, stall: 3m, source: 'assumed: a'}, "
      "hot_spares: {activate: 50s, source: 'assumed: a'}, "
      "checkpoint: {copy_bandwidth: 1GB/s, source: "
      "'assumed: a', local: {every: 5m, survival: 0.5, source: 'assumed: a'}}, search: {tie: 0.01}, scale: {clock: 1}}";
  CHECK(accepted({study}, [](const std::string& text) { study_from_text(text, "sample"); }) == documented("Study"));
}

TEST_CASE("every key of a cluster stands in docs/files.md, and no other") {
  const std::string gpus =
      "{name: c, kind: gpu, nodes: 4, gpus_per_node: 8, gpu: {name: of a test, data_sheet: {like: H100}, "
      "memory: 80GB, usable_memory: 70GB}, nvswitch: {bandwidth: 450GB/s}, nic: {count: 4, bandwidth: 400Gb/s, "
      "latency: 2us}, leaf: {nodes: 2, "
      "oversubscription: 3}, "
      "other_nodes: [{first: 3, count: 1, gpu: {name: A, memory: 40GB, usable_memory: 30GB}, nvswitch: {bandwidth: "
      "1GB/s}, nic: {count: 1, bandwidth: 1GB/s}, source: 'assumed: a'}], degraded: [{node: 1, compute: 0.5}, {leaf: "
      "1, uplink: 0.5}], storage: {write: 1GB/s, read: 1GB/s, node_write: 1GB/s, node_read: 1GB/s}, sources: {gpu: "
      "['published: a', 'assumed: b'], nvswitch: 'assumed: a', nic: 'assumed: a', leaf: 'assumed: a', storage: "
      "'assumed: a'}}";
  CHECK(accepted({gpus}, read_cluster_text) == documented("Cluster"));
  const std::string cores =
      "{name: c, kind: shared_cores, ranks: 4, host: {name: h, cores: 2, memory: 8GiB, usable_memory: 6GiB}, storage: "
      "{write: 1GB/s, read: 1GB/s}, sources: {host: 'assumed: a', storage: 'assumed: a'}}";
  CHECK(accepted({cores}, read_cluster_text) == documented("Cluster of shared cores"));
}

TEST_CASE("every key of prices stands in docs/files.md, and no other") {
  const std::string prices =
      "{currency: USD, date: 2026-03-01, source: 'assumed: a', gpu_hour: {amount: 2}, spares: as_gpus, "
      "storage_tb_month: "
      "1, egress_tb: 1, power: {compute: 1W, communicate: 1W, idle: 1W, host: 1W}, pue: 1, carbon_kg_kwh: 1}";
  Keys keys = accepted({prices}, [](const std::string& text) {
    YamlMap map = YamlMap::from_text("prices: " + text, "sample");
    prices_from_yaml(map.map("prices"));
  });
  keys.insert("gpu_hour");  // an amount alone, which the sample has as a map
  CHECK(keys == documented("Prices"));
}

TEST_CASE("every key of an offer stands in docs/files.md, and no other") {
  const std::string offer =
      "{cluster: hgx-h100, gpus: 64, source: 'assumed: a', storage: {write: 1GB/s, read: 1GB/s, node_write: 1GB/s, "
      "node_read: 1GB/s, source: 'assumed: a'}}";  // prices are a table of their own
  CHECK(accepted({offer}, from_file([](const auto& file) { read_offer(file.string()); })) == documented("Offer"));
}

TEST_CASE("every key of failure rates stands in docs/files.md, and no other") {
  const std::string proof = "evidence: assumed, source: a", one = "{class: a, per_1000_node_days: 1, " + proof + "}",
                    time = "{time: 1m, mean: 2m, " + proof + "}",
                    lawful = "{class: a, per_1000_node_days: 1, bad_nodes: {share: 0.1, factor: 2}, " + proof + "}",
                    announced = "{class: a, per_1000_node_days: 1, duration: " + time + ", " + proof + "}";
  std::vector<std::string> samples;
  for (const char* slow : {"step_factor", "node_compute"})
    samples.push_back("{name: n, title: t, failures: [" + lawful + "], planned: [" + announced + "], silent_errors: " +
                      one + ", stragglers: {class: a, per_1000_node_days: 1, " + proof + ", " + slow + ": {value: 1, " +
                      proof + "}, duration: " + time + ", ends: recovers}, recovery: {detect: " + time +
                      ", reschedule: " + time + ", restart: " + time + ", reload: " + time + "}}");
  // The straggler that each sample leaves out is allowed in it, too, as a key without a map.
  Keys keys = accepted(samples, from_file([](const auto& file) { read_failures_file(file); }));
  keys.erase("stragglers.step_factor"), keys.erase("stragglers.node_compute");
  CHECK(keys == documented("Failure rates"));
}

TEST_CASE("every key of a measured recovery stands in docs/files.md, and no other") {
  const std::string time = "{time: 1m, mean: 2m, evidence: measured, source: a}";
  const std::string sample =
      "{title: t, run: r, ranks: 4, step: 1s, first_step: 1s, save: {blocking: 1s, persist: 1s}, hang: 1s, recovery: "
      "{detect: " +
      time + ", reschedule: " + time + ", restart: " + time + ", reload: " + time + "}}";
  const Keys keys = accepted({sample}, from_file([](const auto& file) { read_measured_recovery(file.string()); }));
  CHECK(keys == documented("Measured recovery"));
}

TEST_CASE("every key of a run stands in docs/files.md, and no other") {
  const std::string run =
      "{model: llama3-8b, max_duration: 1ba, max_seq_len: 64, global_train_batch_size: 4, "
      "device_train_microbatch_size: "
      "1, fsdp_config: {activation_checkpointing: true}, precision: amp_fp8, precisions: {dispatch: fp8}, optimizer: "
      "{name: adamw}, scheduler: {name: inv_sqrt_with_warmup, t_scale: 1ba}, variables: {x: 1}, "
      "algorithms: {gradient_clipping: {clipping_threshold: 1}}, train_loader: {dataset: {streams: {a: {local: x, "
      "proportion: 1}}}, curriculum: [{at: 1ba, proportions: {a: 2}}]}, callbacks: "
      "{hf_checkpointer: {save_folder: x}}, local_checkpoints: {interval: 1ba}, loggers: {mlflow: {run_name: x}, "
      "tensorboard: {log_dir: x}, prometheus: {textfile_directory: x}}, save_folder: x, eval_loader: {label: x, "
      "dataset: {local: x}}, rehearsal: {rank: 0}}";
  const auto scheduled = [&](const std::string& schedule) {
    std::string other = run;
    const std::string one = "inv_sqrt_with_warmup, t_scale: 1ba";
    return other.replace(other.find(one), one.size(), schedule);
  };
  const std::vector<std::string> samples{run, scheduled("linear_decay_with_warmup"), scheduled("constant_with_warmup")};
  CHECK(accepted(samples, from_file([](const auto& file) { read_run(file); })) == documented("Run"));
}

TEST_CASE("every key of a model stands in docs/files.md, and no other") {
  const auto scaled = [](const std::string& scaling) {
    return kModel + "attn_config: {rope_scaling: {" + scaling + "}}, ffn_config: {ffn_hidden_size: 8}}";
  };
  const std::vector<std::string> samples{
      kModel +
          "attn_config: {kv_lora_rank: 8, qk_nope_head_dim: 8, qk_rope_head_dim: 4, v_head_dim: 8}, "
          "ffn_config: {ffn_hidden_size: 8, moe_num_experts: 4, moe_top_k: 2}}",
      kModel + "attn_config: {parallel_attn: true}, ffn_config: {ffn_hidden_size: 8}}",
      kModel +
          "attn_config: {alibi: false}, linear_config: {key_heads: 2, value_heads: 2, key_head_dim: 4, value_head_dim: "
          "4, chunk: 4}, "
          "ffn_config: {ffn_hidden_size: 8}}",
      kModel +
          "attn_config: {index_topk: 4, index_n_heads: 2, index_head_dim: 8, o_lora_rank: 4, o_groups: 2}, "
          "ffn_config: {ffn_hidden_size: 8, moe_num_experts: 4, moe_top_k: 2}}",
      scaled("rope_type: llama3, factor: 8, original_max_position_embeddings: 64, low_freq_factor: 1, "
             "high_freq_factor: 4"),
      kModel +
          "peft_config: {target_modules: [q_proj]}, attn_config: {alibi: false}, ffn_config: {ffn_hidden_size: 8}}",
      scaled("rope_type: yarn, factor: 8, original_max_position_embeddings: 64")};
  Keys keys = accepted(samples, [](const std::string& text) {
    YamlMap map = YamlMap::from_text(text, "sample");
    if (map.has("peft_config")) read_peft_config(map.map("peft_config"));  // as model_of does
    model_from_yaml(map);
    map.finish();
  });
  for (const char* part : {"attn_config.rope_scaling", "linear_config", "peft_config"})
    keys.erase(part);  // where it is left out
  CHECK(keys == documented("Model"));
}

TEST_CASE("every key of a watch's rules and hooks stands in docs/files.md, and no other") {
  const std::string rules =
      "{every: 1s, window: 8, signals: [{name: a, metric: step_s, above: 2, of: best, steps: 8}, {name: b, metric: "
      "mfu, below: 0.5, of: best, steps: 8}, {name: c, metric: silence, above: 10, of: recent, at_least: 60s}, "
      "{name: d, metric: loss, above: 0.3, deviations: 8, of: before, level: 32, within: 1000, steps: 2}], "
      "undecided: tell, sure: 0.99, most_excluded: 0.25, restarts: 3, rollback: {margin: 8, skip: least}, verify: "
      "{steps: 8, within: 1h}}";
  CHECK(accepted({rules}, from_file([](const auto& file) { read_watch_rules(file.string()); })) ==
        documented("Rules of a watch"));
  std::string hooks = "{spares: 1, sweep: {command: [x, '{output}'], timeout: 1s}";
  for (const char* hook : {"save", "stop", "cordon", "uncordon", "start", "tell"})
    hooks += std::string(", ") + hook + ": {command: [x], timeout: 1s}";
  CHECK(accepted({hooks + "}"}, from_file([](const auto& file) { read_watch_hooks(file.string()); })) ==
        documented("Hooks of a watch"));
}

TEST_CASE("every key of an evaluation stands in docs/files.md, and no other") {
  const std::string sample =
      "{tasks: [a], eval_gauntlet: {categories: [{name: c, benchmarks: [{name: a, num_fewshot: 0, random_baseline: "
      "0}]}]}}";
  CHECK(accepted({sample}, from_file([](const auto& file) { read_evaluation_file(file); })) ==
        documented("Evaluation"));
}

TEST_CASE("every key of a fault scenario stands in docs/files.md, and no other") {
  const std::string scenario = R"(name: n
run: tiny-moe
nodes: {ranks: 2, per_rack: 1, spares: 1}
policy: {on_loss: [spare, restart], min_replicas: 1, retries_same_place: 1, max_restarts: 3}
expect: {state: bitwise, says: text}
events:
)";
  const std::string rank = "  - {who: {domain: rank, index: 0}, when: {step: 1}, ";
  std::string events;
  for (const char* what : {"kill, takes: [local_copies]", "exit, status: 1", "hang, of: process", "slow, factor: 2",
                           "corrupt, tensor: weight, layer: 0, element: 0, bit: 1",
                           "corrupt, tensor: weight, zero: true", "disk_full, after: 1kB"})
    events += rank + "what: {kind: " + what + "}}\n";
  for (const char* when : {"step: 1, at: checkpoint, after: 0.5", "step: 1, at: optimizer, phase: before"})
    events += "  - {who: {domain: rank, index: 0}, when: {" + std::string(when) + "}, what: {kind: kill}}\n";
  events += "  - {who: {domain: storage}, when: {step: 1}, what: {kind: damage, how: zero, level: storage}}\n";
  events += "  - {who: {domain: all}, when: {step: 1}, what: {kind: maintenance, signal: TERM, notice: 1s}}\n";
  events +=
      "  - {who: {share: 0.1, of: node}, when: {per_1000_node_days: 1, shape: 1}, what: {kind: kill}, "
      "detect: {by: exit, within: 1s}}\n";
  events += "  - {who: {domain: node, index: 0}, when: {time: 1h}, what: {kind: kill}}\n";
  events += "  - {who: {domain: node}, when: {trace: t.csv}, what: {kind: kill}}\n";
  Keys keys = accepted({scenario + events}, from_file([](const auto& file) { read_scenario_file(file); }));
  keys.erase("events.detect");  // where it is left out
  CHECK(keys == documented("Fault scenario"));
}

TEST_CASE("every key of measured steps stands in docs/files.md, and no other") {
  const std::string run = "{run: demo, cluster: hgx-h100, ";
  const Reader read = from_file([](const auto& file) { read_measured_steps(file); });
  CHECK(accepted({"{steps: [" + run + "step_s: 1}]}",
                  "{steps: [" + run + "tokens_per_s_per_gpu: 1, reserved: 1GB, allocated: 1GB}]}"},
                 read) == documented("Measured steps"));
}

TEST_CASE("keys that stand in for flags of other trainers are keys of the file") {
  for (const bool study : {false, true}) {
    const Keys keys = documented(study ? "Study" : "Run");
    for (const std::string& key : keys_of_flags(study)) {
      INFO(key);
      CHECK(keys.count(key) == 1);
    }
  }
}
