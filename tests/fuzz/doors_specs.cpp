#include <boost/crc.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/cluster.hpp"
#include "configs/files/duration.hpp"
#include "configs/files/failures.hpp"
#include "configs/files/find.hpp"
#include "configs/files/hub_models.hpp"
#include "configs/files/index_samples.hpp"
#include "configs/files/measured_recovery.hpp"
#include "configs/files/measured_steps.hpp"
#include "configs/files/model.hpp"
#include "configs/files/model_words.hpp"
#include "configs/files/offer.hpp"
#include "configs/files/recompute.hpp"
#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"
#include "configs/files/stack.hpp"
#include "configs/files/study.hpp"
#include "configs/files/study_keys.hpp"
#include "planner/evaluate/lm_eval.hpp"
#include "planner/job_logs/job_log.hpp"
#include "planner/job_logs/log_follower.hpp"
#include "planner/watch/hooks.hpp"
#include "planner/watch/rules.hpp"
#include "planner/watch/signals.hpp"
#include "planner/watch/watched_log.hpp"
#include "tests/fuzz/door.hpp"
#include "trainer/trackers/event_records.hpp"

namespace wt::fuzz {
namespace {

namespace fs = std::filesystem;

/// One config.json of each form: keys of experts, of latent and sparse attention, of linear mixers, of a text part.
std::vector<std::string> hugging_face_configs() {
  std::vector<std::string> out{
      sample("tests/data/models/dbrx_config.json"),
      R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                                   "vocab_size": 100, "intermediate_size": 96, "unread": [NaN, -Infinity]})"};
  for (const char* repository :
       {"zai-org/GLM-5", "deepseek-ai/DeepSeek-V4-Flash", "tencent/Hunyuan-A13B-Instruct", "google/gemma-3-4b-pt",
        "moonshotai/Kimi-Linear-48B-A3B-Base", "ibm-granite/granite-4.0-h-tiny", "LiquidAI/LFM2-1.2B",
        "MiniMaxAI/MiniMax-Text-01", "meituan-longcat/LongCat-Flash-Chat", "LGAI-EXAONE/EXAONE-4.0-32B"})
    out.push_back(hub_config(repository).dump());
  return out;
}

std::vector<std::string> presets(const std::string& kind, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back(sample(fs::path("configs") / kind / (name + ".yaml")));
  return out;
}

/// A file of Weights & Biases with one record, behind its checksum.
std::string wandb_file(const std::string& record) {
  const std::string piece = '\1' + record.substr(0, 30000);
  boost::crc_32_type sum;
  sum.process_bytes(piece.data(), piece.size());
  std::string out(":W&B\xe1\xbe\0", 7);
  for (int i = 0; i < 4; ++i) out += static_cast<char>(sum.checksum() >> 8 * i & 0xff);
  for (int i = 0; i < 2; ++i) out += static_cast<char>((piece.size() - 1) >> 8 * i & 0xff);
  return out + piece;
}

/// A reader that takes a file's name.
template <class Read>
auto of_file(const char* name, Read read) {
  return [name, read](const std::string& input, const fs::path& folder) { read(written(folder, name, input)); };
}

}  // namespace

std::vector<Door> spec_doors() {
  std::vector<Door> doors;
  doors.push_back({"yaml", presets("runs", {"demo", "tiny-moe-mix"}),
                   [](const auto& input, const auto&) { yaml_to_json(load_yaml(input, "input")); }});
  doors.push_back({"json", {sample("tests/data/models/dbrx_config.json")}, [](const auto& input, const auto&) {
                     differing_keys(parse_json(input, "input"), {{"a", 1}});
                   }});
  doors.push_back({"model", presets("models", {"dbrx", "qwen3-next-80b-a3b", "deepseek-v2-lite", "gpt-oss-20b"}),
                   of_file("model.yaml", [](const fs::path& file) { read_model(file.string()); })});
  doors.push_back({"hugging_face_config", hugging_face_configs(), [](const auto& input, const auto&) {
                     const ModelSpec model =
                         model_from_hugging_face(parse_python_json(input, "config.json"), "config.json");
                     model_lines(model);
                     if (model.untrainable().empty()) config_json(model);
                   }});
  doors.push_back({"cluster", presets("clusters", {"hgx-h100", "gb200-nvl72", "local-2core", "dbrx-3072-h100"}),
                   of_file("cluster.yaml", [](const fs::path& file) { read_cluster(file.string()); })});
  doors.push_back({"run",
                   presets("runs", {"demo", "dbrx-3072-h100", "tiny-moe-finetune", "tiny-moe-mix", "tiny-moe-safe"}),
                   [](const auto& input, const auto&) { run_from_text(input, "run.yaml"); }});
  doors.push_back({"measured_steps",
                   {"steps:\n- {run: demo, cluster: hgx-h100, step_s: 1.5, reserved: 60GiB}\n"
                    "- {run: demo, cluster: hgx-h200, tokens_per_s_per_gpu: 100, allocated: 1.5GB}\n"},
                   of_file("measured.yaml", [](const fs::path& file) { read_measured_steps(file); })});
  doors.push_back(
      {"job_log",
       {sample("tests/data/job_logs/torchtitan.log"),
        " iteration 10/ 100 | elapsed time per iteration (ms): 4000.0 | global batch size: 256 | lm loss: 2.5 |\n",
        "step 4 | epoch 0 | loss 2.1 | grad_norm 0.84 | mem 45.20 GiB | tps 12345.60(1543.20/gpu)\n",
        "[batch=11/50]:\n\t Train loss/train/total: 3.25\n\t Train throughput/device/mfu: 0.41\n",
        " 10%|#| 10/100 [00:35<05:15,  3.50s/it]\n 20%|#| 20/100 [01:15<05:15,  3.50s/it]\n{'loss': '2.1', 'epoch': "
        "1}\n",
        "{\"step\": 1, \"step_s\": 0.5, \"loss\": null}\n",
        "{\"log_history\": [{\"loss\": NaN, \"step\": 1, \"train_runtime\": 2.5}, {\"eval_runtime\": 1.5, \"step\": "
        "1},\n"
        "{\"loss\": 2.5, \"num_input_tokens_seen\": 64, \"step\": 2, \"train_runtime\": 5}]}\n"},
       of_file("job.log", [](const fs::path& file) { read_job_log(file); })});
  doors.push_back(
      {"followed_log",
       {sample("tests/data/job_logs/torchtitan.log"),
        " 10%|#| 10/100 [00:35<05:15,  3.50s/it]\r{'loss': '2.1', 'grad_norm': '0.8', 'epoch': 1}\n 10%|#| 10/100 "
        "[00:35<05:15,  3.50s/it]\r\n{'loss': 2.0}\n{'loss': nan}\n",
        "{\"step\": 1, \"step_s\": 0.5, \"loss\": null, \"grad_norm\": 1}\n{\"step\": 2"},
       [](const auto& input, const fs::path& folder) {  // in two parts
         const fs::path file = written(folder, "job.log", input.substr(0, input.size() / 2));
         LogFollower follower(file);
         follower.look();
         written(folder, "job.log", input);
         follower.look();
         const WatchedLog log = watched_log(follower.log(), {{0, 1.8e9}}, 1.8e9);
         static const WatchRules rules = read_watch_rules("default");
         RunSignals(log, rules).now();
       }});
  const std::string event = scalar_event(2, 4, "iteration-time", 4.5);
  doors.push_back(
      {"event_file",
       {event_record(version_event(1)) + event_record(event) + event_record(scalar_event(2, 4, "lm loss", 2.5))},
       of_file("events", [](const fs::path& file) { read_job_log(file); })});
  doors.push_back({"event", {event}, [](const auto& input, const fs::path& folder) {  // behind its checksum
                     read_job_log(written(folder, "events", event_record(input)));
                   }});
  doors.push_back({"wandb_run",
                   {read_file("tests/data/job_logs/run.wandb", "a sample")},
                   of_file("run.wandb", [](const fs::path& file) { read_job_log(file); })});
  doors.push_back(
      {"wandb_record",  // behind its checksum: one metric and its step
       {std::string("\x12\x1c\x0a\x16\x0a\x0e") + "iteration-time" + "\x82\x01\x03" + "4.5" + "\x12\x02\x08\x04"},
       [](const auto& input, const fs::path& folder) {
         read_job_log(written(folder, "run.wandb", wandb_file(input)));
       }});
  doors.push_back({"study", presets("studies", preset_names("studies")),
                   [](const auto& input, const auto&) { study_from_text(input, "study.yaml"); }});
  doors.push_back({"study_assignments",
                   {"tokens=2T", "cluster.nic.bandwidth=200Gb/s", "search.microbatch=[1,2]"},
                   [text = presets("studies", {"dbrx-3072-h100"})[0]](const auto& input, const auto&) {
                     const auto equals = std::min(input.find('='), input.size());
                     const std::string value = equals < input.size() ? input.substr(equals + 1) : "";
                     study_from_text(set_study_keys(text, {{input.substr(0, equals), value}}, "study"), "study");
                   }});
  doors.push_back({"fault_scenario", presets("faults", {"kill", "slow-node", "maintenance", "damaged-local-copy"}),
                   of_file("scenario.yaml", [](const fs::path& file) { scenario_to_yaml(read_scenario_file(file)); })});
  doors.push_back({"failure_rates", presets("faults/rates", preset_names("faults/rates")),
                   of_file("rates.yaml", [](const fs::path& file) { read_failures_file(file); })});
  doors.push_back({"measured_recovery", presets("faults/recovery", preset_names("faults/recovery")),
                   of_file("recovery.yaml", [](const fs::path& file) { read_measured_recovery(file.string()); })});
  doors.push_back({"stack", presets("stacks", {"torchtitan", "megatron-core", "windtunnel-train"}),
                   of_file("stack.yaml", [](const fs::path& file) { read_stack(file.string()); })});
  doors.push_back({"offer", presets("offers", {"made-up-h100", "made-up-h200"}),
                   of_file("offer.yaml", [](const fs::path& file) { read_offer(file.string()); })});
  doors.push_back({"watch_rules", presets("watch", {"default"}),
                   of_file("watch.yaml", [](const fs::path& file) { read_watch_rules(file.string()); })});
  doors.push_back({"watch_hooks", presets("watch", {"hooks-local", "hooks-slurm"}),
                   of_file("hooks.yaml", [](const fs::path& file) { read_watch_hooks(file.string()); })});
  doors.push_back(
      {"evaluation_file", {}, of_file("evaluation.yaml", [](const fs::path& file) { read_evaluation_file(file); })});
  doors.push_back(
      {"quantities", {"400Gb/s", "989TFLOP/s", "700W", "12T", "80GiB", "1.5ms"}, [](const auto& input, const auto&) {
         static constexpr double (*kParse[])(const std::string&, const std::string&) = {
             parse_seconds, parse_bytes, parse_bytes_per_second, parse_watts, parse_count};
         for (const auto& parse : kParse) {
           try {
             parse(input, "key");
           } catch (const Error&) {
             need_refusal();  // of another unit: the next one
           }
         }
       }});
  doors.push_back({"durations", {"1000ba", "2ep", "0.5dur", "12e12tok"}, [](const auto& input, const auto&) {
                     Duration::parse(input, "max_duration");
                   }});
  doors.push_back({"recompute", {"block", "attention", "norm+products"}, [](const auto& input, const auto&) {
                     recompute_from_string(input);
                   }});
  return doors;
}

}  // namespace wt::fuzz
