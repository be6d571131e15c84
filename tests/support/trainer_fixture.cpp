#include "tests/support/trainer_fixture.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/json_reader.hpp"
#include "planner/experiments/trainer_process.hpp"
#include "sim/program/timeline_json.hpp"
#include "tests/support/nightly.hpp"
#include "tests/support/temp_directory.hpp"
#include "tests/support/trained_runs.hpp"
#include "trainer/data/pack.hpp"
#include "trainer/safetensors/tensor_parts.hpp"

namespace wt::test {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path scratch(const std::string& name) {
  static const TempDirectory directory;
  return directory / name;
}

namespace {

const TrainedRuns& trained_runs() {
  static const TrainedRuns runs;
  return runs;
}

}  // namespace

fs::path licence_tokens(std::int64_t seq) {
  static std::map<std::int64_t, fs::path> packed;
  if (const auto it = packed.find(seq); it != packed.end()) return it->second;
  const fs::path folder = scratch(fmt::format("tokens-{}", seq));
  PackOptions options;
  options.seq_len = seq;
  pack_text({"LICENSE"}, folder, options);
  return packed[seq] = trained_runs().keep_data(folder);
}

RunSpec small_run() {
  RunSpec run;
  run.name = "small";
  ModelSpec& m = run.model;
  m.name = "small", m.layers = 3, m.d_model = 88, m.heads = 4, m.kv_heads = 2, m.head_dim = 22, m.ffn = 104;
  m.experts = 8, m.top_k = 2, m.vocab = 257, m.router.z_loss_weight = 0.001;
  run.layout.microbatch = 2;
  run.optimizer.lr = 0.003, run.optimizer.warmup_steps = 2;
  run.steps = 20, run.seq = 48, run.global_batch = 24;
  run.dataset.use_folder(licence_tokens(run.seq));
  run.save = false;
  return run;
}

RunSpec short_run() {
  RunSpec run = small_run();
  run.steps = 10, run.save = true;
  return run;
}

RunSpec with_layout(RunSpec run, std::int64_t replicate, std::int64_t shard, std::int64_t expert, Recompute recompute) {
  run.layout.replicate = replicate, run.layout.shard = shard, run.layout.expert = expert;
  run.layout.recompute = recompute;
  return run;
}

std::vector<RunSpec> sharded_runs(const RunSpec& run) {
  std::vector<RunSpec> out;
  for (const auto& [replicate, shard, expert] :
       {std::array{4, 1, 1}, {2, 2, 1}, {2, 2, 2}, {1, 4, 1}, {1, 4, 2}, {1, 4, 4}, {1, 3, 1}})
    out.push_back(with_layout(run, replicate, shard, expert));
  return out;
}

std::vector<RunSpec> block_runs(const RunSpec& run) {
  std::vector<RunSpec> out;
  for (const auto& [replicate, shard, expert] : {std::array{1, 1, 1}, {1, 4, 1}, {2, 2, 2}, {1, 4, 4}})
    out.push_back(with_layout(run, replicate, shard, expert, Recompute::block));
  return out;
}

std::vector<RunSpec> further_layouts(const RunSpec& run) {
  std::vector<RunSpec> out;
  const auto add = [&](RunSpec changed) { return &out.emplace_back(std::move(changed)).layout; };
  add(with_layout(run, 2, 2, 2))->reshard_after_forward = false;
  add(with_layout(run, 1, 4, 2))->reduce_every_microbatch = false;
  add(with_layout(run, 4, 1, 1))->reduce_every_microbatch = false;
  add(with_layout(run, 2, 2, 2))->optimizer_shard = 2;
  add(with_layout(run, 4, 1, 1))->optimizer_shard = 2;
  Layout* all = add(with_layout(run, 4, 1, 1));
  all->optimizer_shard = 4, all->reduce_every_microbatch = false, all->reshard_after_forward = false;
  return out;
}

std::vector<RunSpec> uneven_runs(const RunSpec& run) {
  std::vector<RunSpec> out;
  const auto add = [&](RunSpec changed, std::int64_t microbatch) {
    changed.layout.microbatch = microbatch;
    return &out.emplace_back(std::move(changed)).layout;
  };
  add(with_layout(run, 1, 1, 1), 5);  // 5 5 5 5 4
  add(with_layout(run, 2, 2, 2), 4);  // 4 2, as all that follow
  add(with_layout(run, 1, 4, 4, Recompute::block), 4);
  add(with_layout(run, 1, 4, 2), 4)->reduce_every_microbatch = false;
  Layout* states = add(with_layout(run, 4, 1, 1), 4);
  states->optimizer_shard = 2, states->reduce_every_microbatch = false;
  add(replicated_experts(run)[1], 4);
  add(context_runs(run)[1], 5)->recompute = Recompute::block;  // 5 5 2
  return out;
}

std::vector<RunSpec> context_runs(const RunSpec& run) {
  std::vector<RunSpec> out;
  for (const auto& [replicate, shard, expert, context] :
       {std::array{1, 4, 4, 4}, {2, 2, 2, 2}, {1, 4, 1, 2}, {1, 2, 1, 2}}) {
    out.push_back(with_layout(run, replicate, shard, expert));
    out.back().layout.context = context;
  }
  return out;
}

std::vector<RunSpec> replicated_experts(const RunSpec& run) {
  std::vector<RunSpec> out{with_layout(run, 1, 4, 4), with_layout(run, 2, 2, 2), with_layout(run, 1, 4, 2)};
  out[0].layout.placement = {
      {0, 1, 2, 3, 4, 5, 0, 6, 7, 1, 2, 0}, {7, 6, 5, 4, 3, 2, 1, 0, 0, 1, 2, 3}, {0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 3}};
  out[1].layout.placement = {
      {0, 1, 2, 3, 4, 0, 5, 6, 7, 0}, {0, 1, 2, 3, 4, 5, 6, 7, 4, 3}, {0, 0, 1, 2, 3, 4, 5, 6, 7, 7}};
  out[2].layout.placement = out[1].layout.placement;
  for (RunSpec& each : out)  // modules of multi-token prediction as the last layer
    each.layout.placement.resize(static_cast<std::size_t>(run.model.blocks()), each.layout.placement.back());
  return out;
}

std::vector<RunSpec> some_of(const std::vector<RunSpec>& runs) {
  std::vector<RunSpec> out;
  for (std::size_t i = 0; i < runs.size(); i += cases<std::size_t>(3, 1)) out.push_back(runs[i]);
  return out;
}

fs::path fault_file(const std::string& name, const std::vector<std::string>& events) {
  const fs::path file = scratch(name + ".yaml");
  std::string text = "name: " + name + "\nrun: tiny-moe\nevents:\n";
  for (const std::string& event : events) text += "  - {" + event + "}\n";
  write_bytes(file, text);
  return file;
}

std::string killed(std::int64_t rank, const std::string& when) {
  return fmt::format("who: {{domain: rank, index: {}}}, when: {{{}}}, what: {{kind: kill}}", rank, when);
}

Started start_trainer(const std::vector<std::string>& arguments, const Launch& launch) {
  static int count = 0;
  const Started started{-1, scratch(fmt::format("log-{}.txt", ++count))};
  std::string program = trainer_program().string();
  std::vector<std::string> words = arguments;
  std::vector<char*> argv{program.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw_error(Code::runtime, "fork failed: {}", std::strerror(errno));
  if (pid > 0) return {pid, started.log};
  const int log = open(started.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(log, STDOUT_FILENO), dup2(log, STDERR_FILENO);
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID", "SLURM_NTASKS",
        "SLURM_JOB_ID", "SLURM_RESTART_COUNT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "SLURM_NNODES", "SLURM_STEP_NUM_NODES", "SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"})
    unsetenv(name);
  for (const auto& [name, value] : launch.environment) setenv(name.c_str(), value.c_str(), 1);
  const auto limit = static_cast<rlim_t>(launch.file_limit_bytes);
  if (const rlimit bytes{limit, limit}; limit > 0) setrlimit(RLIMIT_FSIZE, &bytes);
  execv(program.c_str(), argv.data());
  _exit(127);
}

Ended wait_for(const Started& started, int most_s) {
  int status = 0;
  for (int waited_ms = 0; waitpid(started.pid, &status, WNOHANG) == 0; waited_ms += 5) {
    if (waited_ms > 1000 * most_s) {
      kill(started.pid, SIGTERM);  // an agent stops its ranks
      waitpid(started.pid, &status, 0);
      throw_error(Code::runtime, "the trainer did not end; it said: {}", read_bytes(started.log));
    }
    usleep(5000);
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_bytes(started.log)};
}

Ended train_file(const fs::path& run_file, const fs::path& folder, const Launch& launch) {
  std::vector<std::string> arguments{"train", run_file.string(), "-o", folder.string()};
  arguments.insert(arguments.end(), launch.more.begin(), launch.more.end());
  return wait_for(start_trainer(arguments, launch));
}

Ended train(const RunSpec& run, const fs::path& folder, const Launch& launch) {
  const fs::path file = folder.string() + ".yaml";
  write_file_atomically(file, run_to_yaml(run));
  return train_file(file, folder, launch);
}

fs::path trained(const RunSpec& run) {
  static std::map<std::string, fs::path> done;
  const std::string key = run_to_yaml(run);
  if (const auto it = done.find(key); it != done.end()) return it->second;
  const fs::path folder = scratch(fmt::format("run-{}", done.size() + 1));
  trained_runs().copy_or_train(key, scratch(""), folder, [&](const fs::path& to) {
    const Ended ended = train(run, to);
    if (ended.status != 0)
      throw_error(Code::runtime, "training {} ended with {}: {}", run.layout.name(), ended.status, ended.said);
  });
  return done[key] = folder;
}

std::vector<Step> steps_of(const fs::path& folder) {
  std::ifstream in(folder / "metrics.jsonl");
  std::vector<Step> out;
  for (std::string line; std::getline(in, line) && !in.eof();) {  // a last line without an end is still being written
    const json s = parse_json(line, (folder / "metrics.jsonl").string());
    out.push_back({s.at("step"), s.at("loss"), s.at("aux_loss"), s.at("z_loss"), s.at("grad_norm"), s.at("lr"),
                   s.value("mtp_losses", std::vector<double>()), s.at("samples")});
  }
  return out;
}

void wait_for_step(const fs::path& folder, std::size_t step) {
  for (int waited_ms = 0; !fs::exists(folder / "metrics.jsonl") || steps_of(folder).size() < step; waited_ms += 2) {
    if (waited_ms > 60'000) throw_error(Code::runtime, "{}: no step {} within a minute", folder.string(), step);
    usleep(2'000);
  }
}

std::vector<double> step_peaks_of(const fs::path& folder) {
  std::ifstream in(folder / "metrics.jsonl");
  std::vector<double> out;
  for (std::string line; std::getline(in, line);)
    out.push_back(parse_json(line, (folder / "metrics.jsonl").string()).at("peak_tensor_bytes").get<double>());
  return out;
}

std::vector<StepTimeline> timelines_of(const fs::path& folder) {
  std::vector<StepTimeline> out;
  for (const json& t : read_json(folder / "timeline.json")) out.push_back(timeline_from_json(t, folder.string()));
  return out;
}

State state_of(const fs::path& checkpoint) {
  State state;
  const StoredTensors stored = StoredTensors::of_checkpoint(checkpoint);
  for (const std::string& key : stored.keys()) {
    const std::vector<float> values = stored.read(key);
    auto& bits = state[key];
    std::transform(values.begin(), values.end(), std::back_inserter(bits),
                   [](float v) { return std::bit_cast<std::uint32_t>(v); });
  }
  if (state.empty()) throw_error(Code::runtime, "{} holds no state", checkpoint.string());
  return state;
}

fs::path checkpoint_of(const fs::path& folder, std::int64_t step) {
  return folder / "checkpoints" / fmt::format("step-{:08}", step);
}

fs::path latest_checkpoint(const fs::path& folder) {
  std::string name = read_bytes(folder / "checkpoints" / "latest");
  while (name.ends_with('\n')) name.pop_back();
  return folder / "checkpoints" / name;
}

std::vector<std::int64_t> checkpoint_steps(const fs::path& folder) {
  std::vector<std::int64_t> out;
  if (!fs::exists(folder / "checkpoints")) return out;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints")) {
    const std::string name = entry.path().filename().string();
    if (name == "latest") continue;
    const bool step = name.size() == 13 && name.starts_with("step-") && entry.is_directory();
    out.push_back(step ? std::stoll(name.substr(5)) : -1);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> leftovers(const fs::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (const std::string name = entry.path().filename().string(); name.ends_with(".tmp") || name.ends_with(".partial"))
      out.push_back(entry.path().string());
  return out;
}

}  // namespace wt::test
