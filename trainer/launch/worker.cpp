#include "trainer/launch/worker.hpp"

#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/earlier_run.hpp"
#include "trainer/data/mds_reader.hpp"
#include "trainer/data/sample_order.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/device/device.hpp"
#include "trainer/device/memory_counter.hpp"
#include "trainer/executor/executor.hpp"
#include "trainer/executor/recorder.hpp"
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
  const auto checkpoints = options.folder / "checkpoints";
  std::int64_t done = 0;
  std::vector<std::filesystem::path> passed_over;
  const double connected_unix_s = clock_s(CLOCK_REALTIME);
  watch.at(0, "loading the checkpoint");
  pass_fault_point(FaultTime::Place::reload, 0);
  if (const auto loaded = load_newest_checkpoint(checkpoints, run, executor.groups(), *communicators)) {
    done = loaded->step;
    passed_over = loaded->passed_over;
    sampler.restore(loaded->sampler);
    if (environment.rank == 0) fmt::print(stderr, "continuing after step {} from {}\n", done, loaded->path.string());
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
  recorder.started(watch.generation(), connected_unix_s, clock_s(CLOCK_REALTIME));
  CheckpointSaver saver(checkpoints, run, *communicators, passed_over,
                        [&](std::int64_t step, const SaveTimes& times) { recorder.checkpoint(step, times); });
  executor.ask_for_stop([] { return stop_requested() != 0; });
  bool stopped = false;
  for (std::int64_t step = done + 1; step <= run.steps && !stopped; ++step) {
    const std::vector<std::int64_t> batch = sampler.next_batch(run.global_batch);
    const auto own = rank_samples(batch, environment.rank / run.layout.context, run.layout.data_ranks());
    const double lr = learning_rate(run.optimizer, step, run.steps);
    const StepResult result = executor.run_step(step, lr, [&](int microbatch) {
      return load_microbatch(data, run, microbatch_samples(run, own, microbatch), positions);
    });
    recorder.step(result, lr, batch);
    const bool due = run.save_interval > 0 && step % run.save_interval == 0;
    stopped = result.stop && step < run.steps;
    watch.at(step, "checkpoint");
    if (run.save && (due || stopped || step == run.steps)) saver.save(step, sampler.state(), executor.groups());
    done = step;
  }
  saver.finish();
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
  return true;
}

}  // namespace wt
