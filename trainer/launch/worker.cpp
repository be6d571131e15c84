#include "trainer/launch/worker.hpp"

#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "trainer/checkpoint/earlier_run.hpp"
#include "trainer/checkpoint/levels.hpp"
#include "trainer/data/mds_reader.hpp"
#include "trainer/data/sample_order.hpp"
#include "trainer/data/skipped_batches.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/device/device.hpp"
#include "trainer/device/memory_counter.hpp"
#include "trainer/executor/executor.hpp"
#include "trainer/executor/recorder.hpp"
#include "trainer/executor/replica_check.hpp"
#include "trainer/executor/run_metrics.hpp"
#include "trainer/launch/notice.hpp"
#include "trainer/parameters/hugging_face.hpp"
#include "trainer/parameters/schedule.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// cuBLAS keeps a workspace for every thread that calls it, out of the allocator that tensors come from.
void make_workspaces(at::Device device) {
  const at::AutoGradMode recording(true);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor a = at::ones({16, 16}, at::TensorOptions(device).dtype(type)).requires_grad_(true);
    const at::Tensor bias = at::ones({16}, at::TensorOptions(device).dtype(type));
    at::addmm(bias, a, a).sum().backward();  // this thread's, and that of the device's autograd thread
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

}  // namespace

at::Device prepare_rank_process(const RunSpec& run, std::int64_t local_rank) {
  const at::Device device = open_device(to_string(run.device), local_rank);
  at::set_num_threads(1);  // ranks share cores; one thread each keeps op times and sums reproducible
  at::globalContext().setDeterministicAlgorithms(true,
                                                 /*warn_only=*/false);  // warning only would also choose other kernels
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  if (!device.is_cpu()) make_workspaces(device);
  install_memory_counter(device);
  return device;
}

bool train_as_rank(const RunSpec& run, const RankEnvironment& environment, const WorkerOptions& options,
                   RankWatch& watch) {
  if (environment.world != run.layout.world())
    throw_error(Code::usage, "world size: launched with {} ranks, the run's layout {} needs replicate x shard = {}",
                environment.world, run.layout.name(), run.layout.world());
  const MdsReader data(run.data);
  std::filesystem::create_directories(options.folder);
  if (environment.rank == 0)
    make_way(options.folder, run.autoresume, launch_name(), watch.generation() > 0 || is_restart());
  const auto clock = make_step_clock(prepare_rank_process(run, environment.local_rank));
  if (options.faults)
    arm_faults(*options.faults, {environment.rank, run.layout.world() / run.layout.replicate, watch.generation(),
                                 options.folder, run.save_interval, environment.master_port, environment.agent_store});
  pass_fault_point(FaultTime::Place::restart, 0);

  SamplerOptions order;
  order.shuffle_seed = run.shuffle_seed;
  Sampler sampler(data.shard_sizes(), order);
  const auto communicators = make_communicators(environment, Mesh(run.layout), watch, *clock);
  Executor executor(run, *communicators, *clock);
  std::int64_t done = 0;
  const double connected_unix_s = clock_s(CLOCK_REALTIME);
  watch.at(0, "loading the checkpoint");
  pass_fault_point(FaultTime::Place::reload, 0);
  CheckpointLevels checkpoints(options.folder, run, environment, watch, *communicators, executor.groups());
  const auto skips = [&](std::int64_t batch) { return run.resilience.skips(batch); };
  const auto loaded = checkpoints.load([&](std::int64_t step, const SamplerState& state) {
    const std::int64_t batch = trained_although_skipped(step, sampler.batches_drawn(state, run.global_batch), skips);
    return batch == 0 ? std::string() : fmt::format("it was trained on batch {}, which skip_batches leaves out", batch);
  });
  if (loaded) {
    done = loaded->step;
    sampler.restore(loaded->sampler);
    if (environment.rank == 0) fmt::print(stderr, "continuing after step {} from {}\n", done, origin(*loaded));
  } else {
    if (environment.rank == 0) check_nothing_was_saved(options.folder);
    if (!run.load_path.empty()) PretrainedWeights(run.load_path, run.model).load(executor.groups());
  }
  if (environment.rank == 0) {
    remove_half_written(options.folder);
    write_file_atomically(options.folder / "run.yaml", run_to_yaml(run));
  }
  const auto positions = context_positions(run.seq, run.layout.context, environment.rank % run.layout.context);
  const auto peak =
      environment.rank == 0 ? peak_flops(device_facts(clock->device()).at("device"), run.precision) : std::nullopt;
  Recorder recorder(run, options.folder, environment.rank, done, peak);
  recorder.started(watch.generation(), connected_unix_s, clock_s(CLOCK_REALTIME), loaded);
  checkpoints.start(
      done, [&](std::int64_t step, const SaveTimes& times) { recorder.checkpoint(step, times); },
      [&](const SaveTimes& times) { recorder.local_copy(times); });
  ReplicaCheck replicas(run, *communicators, executor.groups());
  executor.check_gradients([&](std::int64_t step) { return !replicas.due(step) || replicas.gradients_agree(step); });
  executor.ask_for_stop([] { return stop_requested() != 0; });
  bool stopped = false;
  for (std::int64_t step = done + 1; step <= run.steps && !stopped; ++step) {
    const DrawnBatch batch = next_trained_batch(sampler, run.global_batch, skips);
    const auto own = rank_samples(batch.samples, environment.rank / run.layout.context, run.layout.data_ranks());
    const double lr = learning_rate(run.optimizer, step, run.steps);
    StepResult result = executor.run_step(step, lr, [&](int microbatch) {
      return load_microbatch(data, run, microbatch_samples(run, own, microbatch), positions);
    });
    result.repeated = replicas.repeated_for();
    recorder.step(result, lr, batch.samples, to_json(batch.skipped));
    stopped = result.stop && step < run.steps;
    const bool ends = stopped || step == run.steps;
    watch.at(step, "checkpoint");
    if (replicas.due(step) || (replicas.on() && checkpoints.due(step, ends))) replicas.check_state(step);
    checkpoints.after_step(step, sampler.state(), ends);
    done = step;
  }
  checkpoints.finish();
  if (stopped) {
    if (environment.rank == 0)
      fmt::print(
          stderr, "asked to end: stopped after step {}, {}\n", done,
          run.save ? "which is saved; the same command goes on from there" : "and nothing is saved (save: false)");
    communicators->barrier();
    return false;
  }
  watch.at(0, "writing the summary");
  recorder.finish(executor, *communicators);
  if (!run.export_path.empty()) export_pretrained(run.export_path, run, executor.groups(), *communicators);
  communicators->barrier();
  checkpoints.give_back_memory();
  return true;
}

}  // namespace wt
