#include "trainer/launch/train_command.hpp"

#include "trainer/launch/training_lock.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/output_place.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/standard_error.hpp"
#include "configs/files/find.hpp"
#include "configs/files/model_words.hpp"
#include "sim/program/compose/drill_ops.hpp"
#include "trainer/checkpoint/earlier_run.hpp"
#include "trainer/data/shard_cache.hpp"
#include "trainer/launch/agent.hpp"
#include "trainer/launch/batch_nodes.hpp"
#include "trainer/launch/local_run.hpp"
#include "trainer/launch/notice.hpp"
#include "trainer/launch/rehearse_rank.hpp"
#include "trainer/launch/trainable.hpp"
#include "trainer/launch/worker.hpp"
#include "trainer/parameters/starting_weights.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_lines.hpp"
#include "trainer/storage/store.hpp"

namespace wt {
namespace {

/// More ranks than this a core only wait for each other; a plan for a cluster is not meant for this machine.
constexpr std::int64_t kRanksPerCore = 16;

/// Ranks that refuse their run file wait so long for the store: nobody knows the run's own limit.
constexpr double kMeetRefused_s = 10;

struct TrainOptions {
  std::string run, folder, faults, rehearsed, machine;
  int max_restarts = 3;
  bool json = false;
};

std::optional<Scenario> read_faults(const std::string& name_or_file, const RunSpec& run) {
  if (name_or_file.empty()) return std::nullopt;
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
    throw_usage(
        "--rehearse: found --machine or --json, windtunnel-train only measures; call windtunnel train --rehearse, "
        "which compares");
  RunSpec run = read_run(find_config("runs", o.rehearsed));
  if (run.microbatch_auto)
    throw_usage("{}: device_train_microbatch_size: found auto, a rehearsal needs a number", o.rehearsed);
  if (run.lora)
    throw_usage("{}: model.peft_config: found an adapter, a rehearsal runs the training of all weights; leave it out",
                o.rehearsed);
  run.device = run.rehearsal.device;
  check_model(run, o.rehearsed);
  print_error("{}", model_lines(run.model));
  std::filesystem::create_directories(o.folder);
  rehearse(run, o.folder);
  fmt::print("wrote rehearsal.json, profile.json, trace.json in {}\n", o.folder);
}

/// Processes on this machine go on in memory where replicas are lost; the groups of NCCL cannot be broken up.
bool goes_on_without_replicas(const RunSpec& run, const std::optional<Scenario>& faults) {
  return faults && std::ranges::count(faults->policy.on_loss, Recovery::without_replica) > 0 &&
         run.device == DeviceKind::cpu && run.layout.optimizer_shard == 1;
}

/// A rank whose run file is wrong still meets the others, so that one of them says it and all end. Returns its exit
/// status.
int train_one_rank(const TrainOptions& o) {
  take_notice();
  keep_lock_from_children();
  RankEnvironment environment = RankEnvironment::read();
  RunSpec run;
  WorkerOptions worker;
  worker.folder = o.folder;
  std::unique_ptr<FolderLock> lock;
  std::exception_ptr refused;
  bool found_microbatch = false;
  try {
    found_microbatch = read_run(find_config("runs", o.run)).microbatch_auto;
    run = read_trainable(o.run, o.folder);
    worker.faults = read_faults(o.faults, run);
    std::filesystem::create_directories(worker.folder);
    if (environment.rank == 0) lock = lock_for_training(worker.folder);
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
        if (found_microbatch) run = with_microbatch_of_first(std::move(run), environment, watch.store());
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
    throw_usage("train: found {}; needs either a run file to train, or --rehearse with one to rehearse",
                o.run.empty() ? "no run file" : "both a run file and --rehearse");
  if (!o.rehearsed.empty()) {
    rehearse_as_is(o);
    return 0;
  }
  if (!o.machine.empty() || o.json)
    throw_usage("train: found {} without --rehearse, to which it belongs; leave it out",
                o.json ? "--json" : "--machine");
  if (RankEnvironment::present()) return train_one_rank(o);
  WorkerOptions worker;
  worker.folder = o.folder;
  const RunSpec run = read_trainable(o.run, o.folder);
  worker.faults = read_faults(o.faults, run);
  if (const std::int64_t most = kRanksPerCore * std::thread::hardware_concurrency(); run.layout.world() > most)
    throw_usage(
        "{}: layout {} needs {} ranks, this machine has {} cores; start one rank a device with Slurm, MPI or torchrun "
        "--no-python, or choose a smaller layout",
        o.run, run.layout.name(), run.layout.world(), std::thread::hardware_concurrency());

  ShardCache{run.dataset};  // throws before anything is made or started; so do the next two
  if (is_remote_address(run.load_path))
    open_store(run.load_path);
  else if (!run.load_path.empty())
    StartingWeights(run.load_path, run);
  if (!run.save_folder.empty()) check_save_folder(run.save_folder, worker.folder);
  if (!run.export_path.empty()) family_of(run.model);
  std::filesystem::create_directories(worker.folder);
  const auto lock = lock_for_training(worker.folder);
  // Here, too: a rank that fails before rank 0 has come to it makes the next generation a restart.
  make_way(worker.folder, run.autoresume, launch_name(), is_restart());
  print_error("{}", model_lines(run.model));
  LocalRun local{o.run, run, worker.folder, worker.faults, {}, o.max_restarts, lock ? lock->descriptor() : -1};
  if (!o.faults.empty()) local.arguments = {"--faults", o.faults};
  return train_on_this_machine(local) ? 0 : kEndedOnRequest;
}

}  // namespace

void add_train_command(CLI::App& app, int& status) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train",
                                         "Train a MoE model on local ranks, or as one rank under torchrun "
                                         "--no-python\nExample: windtunnel train configs/runs/demo.yaml -o out/train");
  command->add_option("RUN", options->run, "Run file (YAML)");
  command->add_option("-o,--output", options->folder, "Folder for metrics, trace, profile, routing and checkpoints")
      ->check(writable(Output::folder))
      ->required();
  command->add_option("--max-restarts", options->max_restarts, "How often failed ranks are started again")
      ->capture_default_str();
  command->add_option("--faults", options->faults,
                      "Faults to inject into the ranks: a file or a preset of configs/faults");
  command->add_option(
      "--rehearse", options->rehearsed,
      "Instead: one rank of this run file (plan.yaml) here, all others faked, and compare it with the plan");
  command->add_option("--machine", options->machine,
                      "With --rehearse: machine model that predicts the op times (see calibrate)");
  command->add_flag("--json", options->json, "With --rehearse: print one JSON document");
  command->callback([options, &status] { status = train(*options); });
}

}  // namespace wt
