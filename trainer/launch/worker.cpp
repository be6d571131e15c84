#include "trainer/launch/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <numeric>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/checkpoint/earlier_run.hpp"
#include "trainer/communication/numbers_of_ranks.hpp"
#include "trainer/communication/storage_progress.hpp"
#include "trainer/data/tokenizer_files.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/device/device.hpp"
#include "trainer/device/memory_counter.hpp"
#include "trainer/executor/replica_check.hpp"
#include "trainer/launch/batch_nodes.hpp"
#include "trainer/launch/notice.hpp"
#include "trainer/launch/step_batches.hpp"
#include "trainer/parameters/hugging_face.hpp"
#include "trainer/parameters/learning_rate.hpp"
#include "trainer/parameters/starting_weights.hpp"
#include "trainer/pch.hpp"
#include "trainer/recovery/remaining_layout.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_metrics.hpp"
#include "trainer/storage/folder_copy.hpp"
#include "trainer/storage/store.hpp"

namespace wt {
namespace {

/// Possible folders of each stream's tokenizer: next to its shards, or where they were fetched from.
std::vector<std::filesystem::path> tokenizer_folders(const DatasetSpec& dataset) {
  std::vector<std::filesystem::path> out;
  for (const StreamSpec& stream : dataset.streams) {
    const std::filesystem::path local = stream.local_folder(), remote = stream.remote_folder();
    out.push_back(local.empty() || std::filesystem::exists(remote / kTokenizerFolder) ? remote : local);
  }
  return out;
}

/// cuBLAS keeps a workspace for every thread that calls it, allocated by the tensors' allocator.
void make_workspaces(at::Device device) {
  const at::AutoGradMode recording(true);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor a = at::ones({16, 16}, at::TensorOptions(device).dtype(type)).requires_grad_(true);
    const at::Tensor bias = at::ones({16}, at::TensorOptions(device).dtype(type));
    at::addmm(bias, a, a).sum().backward();  // for this thread, and for the device's autograd thread
  }
  wait_for_device(device);
}

std::string origin(const LoadedCheckpoint& loaded) {
  switch (loaded.level) {
    case CopyLevel::local:
      return "copies in the memory of the nodes";
    case CopyLevel::peer:
      return "copies in the memory of nodes, some of them a peer's";
    default:
      return loaded.path.string();
  }
}

/// Collective: process ids by rank.
std::vector<std::int64_t> processes_of(Communicators& communicators, std::int64_t world) {
  const at::Tensor all = numbers_of_ranks(communicators, world, {static_cast<double>(getpid())});
  const auto* begin = all.data_ptr<double>();
  return {begin, begin + world};
}

/// Collective. Runs `act` on the first rank alone, for any time, while it reports progress (wait_for()). Throws
/// Error{runtime} on every rank if it failed.
void on_first_rank(Communicators& communicators, const std::string& key,
                   const std::function<void(const std::function<void()>& moves)>& act) {
  if (communicators.rank() == 0) {
    std::string wrong;
    StorageProgress progress(communicators.store(), 0);
    try {
      act([&] { progress.moves(); });
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    communicators.store().set(key, wrong);
  }
  if (const std::string wrong = wait_for(communicators.store(), key); !wrong.empty()) throw Error(Code::runtime, wrong);
}

/// Whether the first rank has evaluations of the step that the run resumes from. The same on every rank.
bool was_evaluated(const Recorder& recorder, Communicators& communicators, int generation) {
  const std::string key = fmt::format("worker/evaluated/{}", generation);
  if (communicators.rank() == 0) communicators.store().set(key, recorder.evaluated() ? "yes" : "no");
  return wait_for(communicators.store(), key) == "yes";
}

/// The run on the ranks that there are: where it goes on without replicas, on whole ones, with all of the global batch.
RunSpec in_world(RunSpec run, const RankEnvironment& environment) {
  Layout& l = run.layout;
  if (environment.regroups && environment.world < l.world() && environment.world % l.shard == 0)
    l.replicate = environment.world / l.shard;
  if (environment.world != l.world())
    throw_usage("world size: launched with {} ranks, the run's layout {} needs replicate x shard = {}",
                environment.world, l.name(), l.world());
  return run;
}

}  // namespace

at::Device prepare_rank_process(const RunSpec& run, std::int64_t local_rank) {
  const at::Device device = open_device(to_string(run.device), local_rank);
  at::set_num_threads(1);  // ranks share cores; one thread keeps op times and sums reproducible
  at::globalContext().setDeterministicAlgorithms(
      true,
      /*warn_only=*/false);  // with warnings only, other kernels would be chosen
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  if (!device.is_cpu()) make_workspaces(device);
  install_memory_counter(device);
  return device;
}

RunSpec fit_to_world(RunSpec run, const RankEnvironment& environment, const std::filesystem::path& folder,
                     c10d::Store& store) {
  if (!environment.torchrun || environment.world == run.layout.world() || !run.autoresume) return run;
  constexpr const char* kSaved = "worker/has_saved";  // not all ranks see a new folder at the same time
  if (environment.rank == 0)
    store.set(kSaved, std::string(checkpoint_folders(folder / kCheckpointsFolder).empty() ? "no" : "yes"));
  if (store.get_to_str(kSaved) == "no") return run;
  const auto layouts = remaining_layouts(run, environment.world);
  if (layouts.empty() || layouts.front().layout.world() != environment.world) return run;  // the caller refuses it
  if (environment.rank == 0)
    print_error("{} ranks in place of the {} of {}: going on as {}\n", environment.world, run.layout.world(),
                run.layout.name(), layouts.front().layout.name());
  return layouts.front();
}

RunSpec with_microbatch_of_first(RunSpec run, const RankEnvironment& environment, c10d::Store& store) {
  constexpr const char* kMicrobatch = "worker/microbatch";
  if (environment.rank == 0) store.set(kMicrobatch, std::to_string(run.layout.microbatch));
  run.layout.microbatch = std::stoll(store.get_to_str(kMicrobatch));
  return run;
}

Worker::Worker(RunSpec run, WorkerOptions options)
    : run_(std::move(run)),
      options_(std::move(options)),
      data_(run_.dataset),
      sampler_(run_.dataset, data_.shard_sizes(), options_.batch_world.value_or(BatchWorld{}), data_.identity()),
      evaluator_(run_.evaluation) {}

/// A rank that is not in the next membership does not end trackers: the run goes on without it.
Worker::~Worker() {
  if (std::uncaught_exceptions() > 0) end_trackers(TrackedEnd::failed);
}

/// Trackers stay from one membership to the next.
void Worker::start_trackers(const RunSpec& run, Recorder& recorder) {
  if (!run.loggers.any()) return;
  if (trackers_)
    trackers_->goes_on();
  else
    trackers_ = std::make_unique<Trackers>(run, options_.folder, now_.done);
  recorder.tell_lines_to([this](const nlohmann::json& line) { trackers_->step(line); });
}

/// After a failure, the next start should follow soon.
void Worker::end_trackers(TrackedEnd how) {
  if (trackers_) trackers_->end(how, how == TrackedEnd::finished ? Trackers::kTrackerEnd_s : 3);
  trackers_.reset();
}

void Worker::prepare(const RunSpec& run, const RankEnvironment& environment, int generation) {
  const bool first = !clock_;
  if (first) {
    std::filesystem::create_directories(options_.folder);
    if (environment.rank == 0) make_way(options_.folder, run.autoresume, launch_name(), generation > 0 || is_restart());
    clock_ = make_step_clock(prepare_rank_process(run, environment.local_rank));
  }
  if (environment.rank == 0 && !lease_ && run.save && !run.save_folder.empty())
    lease_ = std::make_unique<StoreLease>(open_store(run.save_folder), run_of_folder(options_.folder), LeaseTerms(),
                                          [] { return stop_requested() != 0; });
  if (options_.faults)
    arm_faults(*options_.faults,
               {environment.rank, run.layout.world() / run.layout.replicate, generation, options_.folder,
                run.save_interval, environment.master_port, environment.agent_store, node_number()});
  if (first) pass_fault_point(FaultTime::Place::restart, 0);
}

std::filesystem::path Worker::pretrained(const RunSpec& run, Communicators& communicators) const {
  if (!is_remote_address(run.load_path)) return run.load_path;
  const std::filesystem::path folder = local_folder_of(run.load_path, options_.folder);
  on_first_rank(communicators, "worker/pretrained",
                [&](const auto& moves) { fetch_folder(run.load_path, folder, moves); });
  return folder;
}

void Worker::load(RunSpec& run, Executor& executor, Communicators& communicators, CheckpointLevels& checkpoints) {
  const bool first_rank = communicators.rank() == 0;
  pass_fault_point(FaultTime::Place::reload, 0);
  now_ = {0, sampler_.state()};
  loaded_ = checkpoints.load([&](std::int64_t step, const SamplerState& state) {
    const std::int64_t drawn = sampler_.batches_drawn(state, run.samples_per_step());
    const std::int64_t batch = trained_although_skipped(step, drawn, [&](auto b) { return run.resilience.skips(b); });
    return batch == 0 ? std::string() : fmt::format("it was trained on batch {}, which skip_batches leaves out", batch);
  });
  if (loaded_) {
    now_ = {loaded_->step, loaded_->sampler};
    if (!loaded_->adapter_base.empty()) run.adapter_base = loaded_->adapter_base;
    sampler_.restore(now_.sampler);  // before anything is written
    if (first_rank) print_error("continuing after step {} from {}\n", now_.done, origin(*loaded_));
    for (const std::string& note : first_rank ? loaded_->notes : std::vector<std::string>()) print_error("{}\n", note);
  } else {
    check_batch_world(options_.batch_world, run, communicators.rank());
    if (first_rank) check_nothing_was_saved(options_.folder);
    if (!run.load_path.empty()) StartingWeights(pretrained(run, communicators), run).load(executor.groups());
  }
  if (first_rank) write_file_atomically(options_.folder / kRunFile, run_to_yaml(run));
}

/// Ranks of a membership are at most one step apart, because a step ends with a sum over all of them.
void Worker::agree(const RunSpec& run, Executor& executor, Communicators& communicators, bool joins) {
  constexpr double kJoins = -1;
  const at::Tensor all =
      numbers_of_ranks(communicators, run.layout.world(), {joins ? kJoins : static_cast<double>(now_.done)});
  const auto* begin = all.data_ptr<double>();
  const std::vector<double> steps(begin, begin + all.numel());
  const bool some_join = std::ranges::count(steps, kJoins) > 0;
  const std::int64_t done = static_cast<std::int64_t>(std::accumulate(
      steps.begin(), steps.end(), steps.front(), [](double a, double b) { return b < 0 ? a : std::min(a, b); }));
  if (!joins) {
    if (now_.done > done) now_ = before_last_;
    if (now_.done != done)
      throw_runtime("rank {}: has done {} steps, others {}; they can be one apart", communicators.rank(), now_.done,
                    done);
    before_.restore(done, executor.groups());
  }
  if (!some_join) return;
  constexpr const char* kSampler = "membership/sampler";
  if (communicators.rank() == 0) communicators.store().set(kSampler, to_json(now_.sampler).dump());
  if (joins)
    now_ = {done, sampler_state_from_json(parse_json(communicators.store().get(kSampler), kSampler), kSampler)};
  for (const ShardedGroup& g : executor.groups())
    for (const at::Tensor& t : g.states()) communicators.broadcast(state_copies_axis(run.layout), t)->wait();
}

AfterStep Worker::train_steps(const RunSpec& run, const RankWork& work, Executor& executor,
                              Communicators& communicators, CheckpointLevels& checkpoints, Recorder& recorder,
                              RankWatch& watch) {
  checkpoints.start(
      now_.done, [&](std::int64_t step, const SaveTimes& times) { recorder.checkpoint(step, times); },
      [&](const SaveTimes& times) { recorder.local_copy(times); }, lease_.get());
  checkpoints.complete(now_.sampler);
  ReplicaCheck replicas(run, communicators, executor.groups());
  executor.check_gradients([&](std::int64_t step) { return !replicas.due(step) || replicas.gradients_agree(step); });
  StepBatches batches(run, work, data_, sampler_, communicators.rank(), now_.sampler.waiting);
  AfterStep after = AfterStep::go_on;
  if (run.evaluation.due(now_.done, run.steps) && !was_evaluated(recorder, communicators, watch.generation()))
    evaluator_.after_step(now_.done, run, executor, communicators, batches.positions(), recorder);
  while (now_.done < run.steps && after == AfterStep::go_on) {
    const std::int64_t step = now_.done + 1;
    const StepBatches::Step batch = batches.next();
    if (batch.examples) executor.set_loss_tokens(batch.examples->targets);
    const double lr = learning_rate(run.optimizer, step, run.steps);
    StepResult result = executor.run_step(step, lr, [&](int microbatch) { return batches.load(batch, microbatch); });
    result.repeated = replicas.repeated_for();
    recorder.step(result, lr, batch.drawn.batch.samples, to_json(batch.drawn.batch.skipped),
                  batch.examples ? &*batch.examples : nullptr);
    if (step < run.steps) after = result.after;
    const bool ends = after == AfterStep::end || step == run.steps;
    watch.at(step, "checkpoint");
    if (replicas.due(step) || (replicas.on() && checkpoints.due(step, ends))) replicas.check_state(step);
    checkpoints.after_step(step, batch.drawn.after, ends);
    before_last_ = std::exchange(now_, {step, batch.drawn.after});
    // Behind the save, which bad data of an evaluation cannot undo; a notice to end has no time for it: the next start
    // makes up for it.
    if (after == AfterStep::go_on)
      evaluator_.after_step(step, run, executor, communicators, batches.positions(), recorder);
  }
  checkpoints.finish();
  executor.check_gradients({});
  return after;
}

RankEnd Worker::train(const RankEnvironment& environment, RankWatch& watch) {
  RunSpec run = in_world(run_, environment);
  const RankWork work(run, environment.rank, run.dataset.finetuning || is_last_target_missing(data_, run));
  evaluator_.check(run);
  const bool goes_on = !groups_.empty(), first_rank = environment.rank == 0;
  prepare(run, environment, watch.generation());
  if (environment.joins) note_ready(watch.store());
  const auto communicators = make_communicators(environment, Mesh(run.layout), watch, *clock_);
  const double connected_unix_s = clock_s(CLOCK_REALTIME);
  Executor executor(run, work, *communicators, *clock_, std::exchange(groups_, {}));
  if (environment.regroups) executor.keep_state_in(before_);
  if (environment.regroups) name_members(processes_of(*communicators, environment.world));
  watch.at(0, "loading the checkpoint");
  CheckpointLevels checkpoints(options_.folder, run, environment, watch, *communicators, executor.groups());
  loaded_.reset();
  if (goes_on || environment.joins)
    agree(run, executor, *communicators, environment.joins);
  else
    load(run, executor, *communicators, checkpoints);
  sampler_.restore(now_.sampler);
  if (first_rank) remove_half_written(options_.folder);
  const auto peak = first_rank ? peak_flops(device_facts(clock_->device()).at("device"), run.precision) : std::nullopt;
  Recorder recorder(run, options_.folder, environment.rank, now_.done, peak, last_line_);
  if (first_rank) start_trackers(run, recorder);
  const auto leave = [&](const std::optional<Membership>& next) {
    groups_ = std::move(executor.groups());
    last_line_ = recorder.last_line();
    return RankEnd{false, next};
  };
  recorder.started(watch.generation(), connected_unix_s, clock_s(CLOCK_REALTIME), loaded_);
  executor.ask_what_follows([&] {
    return stop_requested() != 0 ? AfterStep::end : watch.next() ? AfterStep::regroup : AfterStep::go_on;
  });
  if (environment.regroups) note_training(watch.store(), now_.done);
  AfterStep after = AfterStep::go_on;
  try {
    after = train_steps(run, work, executor, *communicators, checkpoints, recorder, watch);
    if (after == AfterStep::regroup) communicators->barrier();
  } catch (const Error& e) {
    if (const auto* lost = dynamic_cast<const Diverged*>(&e)) recorder.diverged(lost->step());
    if (now_.done == run.steps || (!watch.broken_up() && !dynamic_cast<const PeerLost*>(&e))) throw;
    const auto next = watch.wait_for_next(/*planned=*/false);
    if (!next) throw;
    return leave(next);
  }
  if (after == AfterStep::regroup) {
    const auto next = watch.wait_for_next(/*planned=*/true);
    if (!next) throw_runtime("rank {}: no membership follows that others know of", environment.rank);
    return leave(next);
  }
  if (after == AfterStep::end) return end_on_request(run, *communicators, checkpoints);
  watch.at(0, "writing the summary");
  recorder.finish(executor, *communicators);
  if (!run.export_path.empty()) export_weights(run, executor, *communicators);
  checkpoints.finish_uploads();
  communicators->barrier();
  checkpoints.give_back_memory();
  end_trackers(TrackedEnd::finished);
  return {};
}

RankEnd Worker::end_on_request(const RunSpec& run, Communicators& communicators, CheckpointLevels& checkpoints) {
  if (communicators.rank() == 0)
    print_error(
        "asked to end: stopped after step {}, {}\n", now_.done,
        run.save ? "which is saved; the same command goes on from there" : "and nothing is saved (save: false)");
  checkpoints.finish_uploads();
  communicators.barrier();
  end_trackers(TrackedEnd::asked_to_end);
  return {false, {}};
}

void Worker::export_weights(const RunSpec& run, Executor& executor, Communicators& communicators) const {
  const bool remote = is_remote_address(run.export_path);
  const std::filesystem::path folder =
      remote ? options_.folder / kExportFolder : std::filesystem::path(run.export_path);
  if (run.lora)
    on_first_rank(communicators, "worker/adapter",
                  [&](const auto&) { export_adapter(folder, run, executor.groups()); });
  else
    export_pretrained(folder, run, executor.groups(), communicators);
  if (communicators.rank() == 0)
    print_error("{}\n", export_tokenizer(tokenizer_folders(run.dataset), run.model.vocab, folder));
  if (remote)
    on_first_rank(communicators, "worker/exported",
                  [&](const auto& moves) { upload_folder(folder, run.export_path, moves); });
}

}  // namespace wt
