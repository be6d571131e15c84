// windtunnel-train: the executable that has LibTorch. `windtunnel train` and `windtunnel bench` hand over to it.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <c10/util/Exception.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/suites/suite_commands.hpp"
#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/standard_error.hpp"
#include "configs/files/find.hpp"
#include "sim/program/compose/drill_ops.hpp"
#include "sim/program/memory/choose_microbatch.hpp"
#include "trainer/checkpoint/earlier_run.hpp"
#include "trainer/data/shard_cache.hpp"
#include "trainer/device/device.hpp"
#include "trainer/launch/agent.hpp"
#include "trainer/launch/batch_nodes.hpp"
#include "trainer/launch/local_run.hpp"
#include "trainer/launch/notice.hpp"
#include "trainer/launch/rehearse_rank.hpp"
#include "trainer/launch/worker.hpp"
#include "trainer/parameters/starting_weights.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_lines.hpp"
#include "trainer/storage/store.hpp"
#include "trainer/trackers/trackers.hpp"

namespace {

using namespace wt;

/// More ranks than this a core only wait for each other; a plan for a cluster is not meant for this machine.
constexpr std::int64_t kRanksPerCore = 16;

/// Ranks that refuse their run file wait so long for the store: nobody knows the run's own limit.
constexpr double kMeetRefused_s = 10;

struct TrainOptions {
  std::string run, folder, faults, rehearsed, machine;
  int max_restarts = 3;
  bool json = false;
};

/// What the trainer's segments and kernels take of the models that can be described.
void check_model(const RunSpec& run, const std::string& where) {
  const ModelSpec& m = run.model;
  if (const auto lacks = m.untrainable(); !lacks.empty())
    throw_error(
        Code::usage,
        "{}: model {}: found {}, which the trainer has not; allowed is a model without; windtunnel simulate and "
        "plan take this one",
        where, m.name, fmt::format("{}", fmt::join(lacks, ", ")));
  if (const auto lacks = untrainable(run); !lacks.empty())
    throw_error(
        Code::usage,
        "{}: layout {}: found {}, simulated alone; allowed in training are replicas, shards, expert and context "
        "parallelism with AdamW on the GPU; windtunnel simulate takes this file",
        where, run.layout.name(), fmt::format("{}", fmt::join(lacks, ", ")));
  if (m.experts == 0) return;
  const std::int64_t unit = run.precision == Precision::fp32 ? 4 : 8;  // LibTorch's grouped GEMM wants rows of 16 bytes
  for (const auto& [key, width] : {std::pair{"d_model", m.d_model}, {"ffn_hidden_size", m.ffn}})
    if (width % unit != 0)
      throw_error(Code::usage, "{}: {}: found {}, training in {} needs a multiple of {}", where, key, width,
                  to_string(run.precision), unit);
}

/// What only training needs, beyond read_run's checks.
void check_trainable(const RunSpec& run, const std::string& where) {
  if (run.dataset.empty() || run.steps < 1)
    throw_error(Code::usage, "{}: needs train_loader.dataset.local and max_duration of at least 1ba to train", where);
  check_model(run, where);
  if (run.lora && run.load_path.empty())
    throw_error(Code::usage,
                "{}: model.peft_config: found an adapter and no load_path; needs the weights that it is put on: set "
                "load_path to their folder, or leave peft_config out to train all weights",
                where);
  if (!run.export_path.empty() && !is_remote_address(run.export_path)) {
    // A folder that holds both is base and adapter in one, of which nobody can say what was trained on what.
    const std::filesystem::path folder = run.export_path;
    const char* const other = run.lora ? "config.json" : "adapter_config.json";
    if (std::error_code none; std::filesystem::exists(folder / other, none))
      throw_error(Code::usage,
                  "{}: callbacks.hf_checkpointer.save_folder: found {} in {}, needs a folder without {}; name another",
                  where, other, folder.string(), run.lora ? "weights" : "an adapter");
  }
  check_loggers(run.loggers);
}

Scenario read_faults(const std::string& name_or_file, const RunSpec& run) {
  Scenario scenario = read_scenario(name_or_file);
  if (!is_restart()) check_drill(scenario, run);  // a restart may have fewer ranks than events name
  return scenario;
}

/// When the ranks wrote their summary; they write none when there was no step left to do.
std::filesystem::file_time_type summary_time(const std::filesystem::path& folder) {
  std::error_code none;
  return std::filesystem::last_write_time(folder / kSummaryFile, none);
}

/// What a finished run is worth a line for; metrics.jsonl and summary.json have the rest. `before`: summary_time() at
/// its start.
void print_result(const RunSpec& run, const std::filesystem::path& folder, std::filesystem::file_time_type before) {
  if (summary_time(folder) == before) {
    fmt::print("nothing to do: {} holds the checkpoint of step {}, the run ends there\n", folder.string(), run.steps);
    return;
  }
  const auto summary = read_json(folder / kSummaryFile);
  const auto last = first_and_last_line(folder / kMetricsFile).second;
  fmt::print("{} steps of {} ({}): loss {:.4f}, median step {}, {:.0f} tokens/s\n", run.steps, run.name,
             summary.at("layout").get<std::string>(), last.at("loss").get<double>(),
             format_seconds(summary.at("median_step_s")), summary.at("tokens_per_s").get<double>());
  for (const auto& rank : summary.at("ranks"))
    fmt::print("  rank {}: exposed communication {}, peak tensor memory {}\n", rank.at("rank").get<int>(),
               format_seconds(rank.at("exposed_communication_s")), format_bytes(rank.at("peak_tensor_bytes")));
  fmt::print("wrote metrics.jsonl, summary.json, profile.json, routing.csv, trace.json, timeline.json{} in {}\n",
             run.save ? ", checkpoints" : "", folder.string());
}

/// The measuring half; windtunnel chooses the shape beforehand and compares afterwards.
void rehearse_as_is(const TrainOptions& o) {
  if (!o.machine.empty() || o.json)
    throw_error(Code::usage,
                "--rehearse: found --machine or --json, windtunnel-train only measures; call windtunnel train "
                "--rehearse, which compares");
  RunSpec run = read_run(find_config("runs", o.rehearsed));
  if (run.microbatch_auto)
    throw_error(Code::usage, "{}: device_train_microbatch_size: found auto, a rehearsal needs a number", o.rehearsed);
  if (run.lora)
    throw_error(Code::usage,
                "{}: model.peft_config: found an adapter, a rehearsal runs the training of all weights; leave it out",
                o.rehearsed);
  run.device = run.rehearsal.device;
  check_model(run, o.rehearsed);
  std::filesystem::create_directories(o.folder);
  rehearse(run, o.folder);
  fmt::print("wrote rehearsal.json, profile.json, trace.json in {}\n", o.folder);
}

/// What the tensors of a rank may take: nine tenths of its device's memory, or of its part of the host's.
double memory_of_rank(const RunSpec& run) {
  constexpr double kForTensors = 0.9;
  const char* const local = std::getenv("LOCAL_WORLD_SIZE");
  const std::int64_t sharing = local != nullptr ? std::max(1, std::atoi(local)) : run.layout.world();
  if (run.device == DeviceKind::cpu)
    return kForTensors * as_double(sysconf(_SC_PHYS_PAGES)) * as_double(sysconf(_SC_PAGE_SIZE)) / as_double(sharing);
  const char* const rank = std::getenv("LOCAL_RANK");
  const Fingerprint facts = device_facts(open_device(to_string(run.device), rank != nullptr ? std::atoi(rank) : 0));
  return kForTensors * std::stod(facts.at("device_memory_GiB")) * kGiB_bytes;
}

/// A run that goes on keeps the microbatch that was found at its beginning, whatever the machine now.
void take_earlier_microbatch(RunSpec& run, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kRunFile;
  if (!run.autoresume || !std::filesystem::exists(file)) return;
  try {
    const RunSpec earlier = read_run(file);
    if (earlier.microbatch_auto || earlier.layout.name() != run.layout.name() ||
        earlier.global_batch != run.global_batch || earlier.seq != run.seq)
      return;
    run.layout.microbatch = earlier.layout.microbatch;
    run.microbatch_auto = false;
  } catch (const Error&) {  // then it is found anew
  }
}

RunSpec read_trainable(const TrainOptions& o, WorkerOptions& worker) {
  RunSpec run = read_run(find_config("runs", o.run));
  check_trainable(run, o.run);
  if (run.lora) run.adapter_base = base_of_adapter(run.load_path);
  // On GPUs the ranks do it, each on its own device: this process must not open one before they do.
  if (run.microbatch_auto) take_earlier_microbatch(run, o.folder);
  if (run.microbatch_auto && (run.device == DeviceKind::cpu || RankEnvironment::present()))
    choose_microbatch(run, memory_of_rank(run), o.run);
  worker.folder = o.folder;
  if (!o.faults.empty()) worker.faults = read_faults(o.faults, run);
  return run;
}

/// Processes on this machine go on in memory where replicas are lost; the groups of NCCL cannot be broken up.
bool goes_on_without_replicas(const RunSpec& run, const std::optional<Scenario>& faults) {
  return faults &&
         std::count(faults->policy.on_loss.begin(), faults->policy.on_loss.end(), Recovery::without_replica) > 0 &&
         run.device == DeviceKind::cpu && run.layout.optimizer_shard == 1;
}

/// Throws Error{usage} where checkpoints would be uploaded onto themselves.
void check_save_folder(const std::string& address, const std::filesystem::path& output) {
  open_store(address);
  if (is_remote_address(address)) return;
  namespace fs = std::filesystem;
  const fs::path place = fs::weakly_canonical(address), checkpoints = fs::weakly_canonical(output / kCheckpointsFolder);
  const auto inside = [](const fs::path& a, const fs::path& b) {
    return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
  };
  if (inside(place, checkpoints) || inside(checkpoints, place))
    throw_error(Code::usage, "save_folder: found {}, where the run's own checkpoints are; needs another place, or none",
                address);
}

/// A rank whose run file is wrong still meets the others, so that one of them says it and all end. Returns its exit
/// status.
int train_one_rank(const TrainOptions& o) {
  take_notice();
  RankEnvironment environment = RankEnvironment::read();
  RunSpec run;
  WorkerOptions worker;
  std::exception_ptr refused;
  bool found_microbatch = false;
  try {
    found_microbatch = read_run(find_config("runs", o.run)).microbatch_auto;
    run = read_trainable(o, worker);
  } catch (...) {
    refused = std::current_exception();
  }
  const auto summary_before = summary_time(worker.folder);
  environment.regroups = !refused && !environment.torchrun && goes_on_without_replicas(run, worker.faults);
  std::unique_ptr<Worker> rank;
  for (RankEnd end{true, Membership{}}; end.next;) {
    run_watched(environment, refused ? kMeetRefused_s : run.dist_timeout_s, [&](RankWatch& watch) {
      if (refused) std::rethrow_exception(refused);
      if (!rank) {
        if (found_microbatch) take_microbatch_of_first(run, environment, watch.store());
        run = fit_to_world(run, environment, worker.folder, watch.store());
        worker.batch_world = batch_world(run, environment, watch.store());
        rank = std::make_unique<Worker>(run, worker);
      }
      end = rank->train(environment, watch);
    });
    if (end.next) {
      const auto next = environment_in(*end.next, environment);
      if (!next) return 0;  // left out of it
      environment = *next;
    } else if (!end.finished) {
      return kEndedOnRequest;
    }
  }
  if (environment.rank == 0) print_result(run, worker.folder, summary_before);
  return 0;
}

int train(const TrainOptions& o) {
  if (o.run.empty() == o.rehearsed.empty())
    throw_error(Code::usage, "train: found {}; needs either a run file to train, or --rehearse with one to rehearse",
                o.run.empty() ? "no run file" : "both a run file and --rehearse");
  if (!o.rehearsed.empty()) {
    rehearse_as_is(o);
    return 0;
  }
  if (!o.machine.empty() || o.json)
    throw_error(Code::usage, "train: found {} without --rehearse, to which it belongs; leave it out",
                o.json ? "--json" : "--machine");
  if (RankEnvironment::present()) return train_one_rank(o);
  WorkerOptions worker;
  const RunSpec run = read_trainable(o, worker);
  if (const std::int64_t most = kRanksPerCore * std::thread::hardware_concurrency(); run.layout.world() > most)
    throw_error(Code::usage,
                "{}: layout {} needs {} ranks, this machine has {} cores; start one rank a device with Slurm, MPI or "
                "torchrun --no-python, "
                "or choose a smaller layout",
                o.run, run.layout.name(), run.layout.world(), std::thread::hardware_concurrency());

  ShardCache{run.dataset};  // throws before anything is made or started; so do the next two
  if (is_remote_address(run.load_path))
    open_store(run.load_path);
  else if (!run.load_path.empty())
    StartingWeights(run.load_path, run);
  if (!run.save_folder.empty()) check_save_folder(run.save_folder, worker.folder);
  if (!run.export_path.empty()) family_of(run.model);
  std::filesystem::create_directories(worker.folder);
  // Here, too: a rank that fails before rank 0 has come to it makes the next generation a restart.
  make_way(worker.folder, run.autoresume, launch_name(), is_restart());
  LocalRun local{o.run, run, worker.folder, worker.faults, {}, o.max_restarts};
  if (!o.faults.empty()) local.arguments = {"--faults", o.faults};
  return train_on_this_machine(local) ? 0 : kEndedOnRequest;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  // Keep freed blocks: activations come and go every step, and giving them to the kernel and back costs page faults
  // (17.5k -> 20.0k tokens/s on the tiny run).
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error to report, not a death
  signal(SIGPIPE, SIG_IGN);  // likewise a peer or a reader that is gone
  CLI::App app("Real training steps and kernel benchmarks (usually called through ./windtunnel)");
  app.require_subcommand(1);
  TrainOptions options;
  CLI::App* train_command =
      app.add_subcommand("train",
                         "Train a MoE model on local ranks, or as one rank under torchrun --no-python\nExample: "
                         "windtunnel train configs/runs/demo.yaml -o out/train");
  train_command->add_option("RUN", options.run, "Run file (YAML)");
  train_command
      ->add_option("-o,--output", options.folder, "Folder for metrics, trace, profile, routing and checkpoints")
      ->required();
  train_command->add_option("--max-restarts", options.max_restarts, "How often failed ranks are started again")
      ->capture_default_str();
  train_command->add_option("--faults", options.faults,
                            "Faults that really strike: a file or a preset of configs/faults");
  train_command->add_option("--rehearse", options.rehearsed,
                            "Instead: one rank of this run file (plan.yaml) here, all others faked, beside the plan");
  train_command->add_option("--machine", options.machine,
                            "With --rehearse: machine model that predicts the op times (see calibrate)");
  train_command->add_flag("--json", options.json, "With --rehearse: print one JSON document");
  add_bench_command(app);
  add_health_command(app);
  try {
    end_with_launcher();
    app.parse(argc, argv);
    return train_command->parsed() ? train(options) : 0;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(Code::usage);
  } catch (const Error& e) {
    print_error("windtunnel: {}\n", fitting(e.what()));
    return e.exit_status();
  } catch (const c10::Error& e) {
    print_error("windtunnel: {}\n", e.what_without_backtrace());
    return static_cast<int>(Code::runtime);
  } catch (const std::exception& e) {
    print_error("windtunnel: {}\n", fitting(e.what()));
    return static_cast<int>(Code::runtime);
  }
}
