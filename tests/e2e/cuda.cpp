// The trainer on CUDA devices beside the same training on the CPU. Built only with WT_CUDA; without a GPU the cases say
// so and ctest reports the test as skipped (SKIP_REGULAR_EXPRESSION). What needs several GPUs is left out where there
// is one.
#include <cuda_runtime.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "bench/health/observation.hpp"
#include "configs/base/atomic_file.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/families.hpp"
#include "tests/fixtures/replayed_memory.hpp"
#include "trainer/run_folder/run_metrics.hpp"

using namespace wt;
using namespace wt::test;

namespace {

int gpus() {
  int found = 0;
  if (cudaGetDeviceCount(&found) == cudaSuccess && found > 0) return found;
  WARN("SKIPPED: no CUDA device");
  return 0;
}

RunSpec on_gpu(RunSpec run) {
  run.device = DeviceKind::cuda;
  return run;
}

/// Worst relative distance of losses over the first `steps` steps.
double worst_loss(const std::vector<Step>& expected, const std::vector<Step>& found, std::size_t steps) {
  REQUIRE(found.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < std::min(steps, expected.size()); ++i) {
    CHECK(found[i].samples == expected[i].samples);
    for (double off :
         {found[i].loss / expected[i].loss - 1, (found[i].aux_loss - expected[i].aux_loss) / expected[i].loss})
      worst = std::isnan(off) ? INFINITY : std::max(worst, std::abs(off));  // std::max would drop what is no number
  }
  return worst;
}

void check_as_on_cpu(const RunSpec& run) {
  INFO(run.name << " " << run.layout.name() << " " << to_string(run.precision));
  const auto expected = steps_of(trained(run)), found = steps_of(trained(on_gpu(run)));
  const double first = run.precision == Precision::fp32 ? 1e-5 : 1e-2;
  CHECK(worst_loss(expected, found, 1) <= first);
  CHECK(std::abs(found[0].grad_norm / expected[0].grad_norm - 1) <= 10 * first);
  CHECK(worst_loss(expected, found, 10) <= 3 * first);
}

void check_peak(const RunSpec& run) {
  const double step = step_memory_error(run), peak = timelines_of(trained(run)).at(0).peak_bytes;
  INFO(run.name << " " << run.layout.name() << ": replayed over measured peak " << 100 * step << " %");
  CHECK(std::abs(step) * peak <= std::max(0.02 * peak, 4.0 * 1024 * 1024));
}

}  // namespace

TEST_CASE("a device trains as the CPU does") {
  if (gpus() == 0) return;
  check_as_on_cpu(small_run());
  RunSpec half = small_run();
  half.precision = Precision::bf16;
  check_as_on_cpu(half);
  RunSpec wide = small_run();  // heads of 32: flash attention takes them as they are
  wide.model.d_model = 64, wide.model.heads = 2, wide.model.kv_heads = 1, wide.model.head_dim = 32,
  wide.precision = Precision::bf16;
  check_as_on_cpu(wide);
  for (RunSpec run : family_runs()) {
    check_as_on_cpu(run);
    run.precision = Precision::bf16;
    check_as_on_cpu(run);
  }
}

TEST_CASE("recompute and packed inputs train on a device") {
  if (gpus() == 0) return;
  CHECK(worst_loss(steps_of(trained(on_gpu(small_run()))),
                   steps_of(trained(on_gpu(with_layout(small_run(), 1, 1, 1, Recompute::block)))), 20) <= 1e-5);
  RunSpec packed = with_layout(small_run(), 1, 1, 1, Recompute::block);
  packed.layout.recompute.compression = Compression::fp8;
  check_as_on_cpu(packed);
}

TEST_CASE("the replayed peak is the one that the device's allocator counted") {
  if (gpus() == 0) return;
  RunSpec half = small_run();
  half.precision = Precision::bf16;
  for (const RunSpec& run : {small_run(), with_layout(small_run(), 1, 1, 1, Recompute::block), half})
    check_peak(on_gpu(run));
}

TEST_CASE("a run on a device resumes to the same bits") {
  if (gpus() == 0) return;
  const Precision precision = GENERATE(Precision::fp32, Precision::bf16);
  RunSpec run = on_gpu(small_run());
  run.precision = precision, run.save = true, run.save_interval = 5, run.steps = 10;
  const auto whole = trained(run), folder = scratch("resumed-" + to_string(precision));
  std::filesystem::copy(whole, folder, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(checkpoint_of(folder, 10));
  write_file_atomically(folder / "checkpoints" / "latest", checkpoint_of(folder, 5).filename().string() + "\n");
  REQUIRE(train(run, folder).status == 0);
  CHECK(steps_of(folder) == steps_of(whole));
  CHECK(state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(whole)));
}

TEST_CASE("the summary names the attention kernel and the profile the device") {
  if (gpus() == 0) return;
  RunSpec run = on_gpu(small_run());
  run.precision = Precision::bf16;
  const auto summary = read_json(trained(run) / "summary.json"), profile = read_json(trained(run) / "profile.json");
  CHECK(summary.at("device") == "cuda");
  CHECK(summary.at("attention") != "unknown");
  CHECK(summary.at("reserved_bytes").get<double>() > 0);
  const std::string uuid = profile.at("fingerprint").at("gpu_uuid");
  CHECK(uuid.substr(0, 4) == "GPU-");  // as NVML writes it
  CHECK(uuid.size() == 40);
  CHECK(profile.at("measurements").at(0).at("clock") == "device");
}

TEST_CASE("one rank of a larger mesh is rehearsed on a device") {
  if (gpus() == 0) return;
  RunSpec run = with_layout(small_run(), 2, 4, 4);
  run.global_batch = 16, run.layout.microbatch = 1, run.precision = Precision::bf16;
  run.rehearsal.device = DeviceKind::cuda;
  const auto folder = scratch("rehearsed"), file = scratch("rehearsed.yaml");
  write_file_atomically(file, run_to_yaml(run));
  const Ended ended = wait_for(start_trainer({"train", "--rehearse", file.string(), "-o", folder.string()}));
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const auto document = read_json(folder / "rehearsal.json");
  CHECK(document.at("device") == "cuda");
  CHECK(document.at("steps").size() == static_cast<std::size_t>(run.rehearsal.steps));
  for (const auto& step : document.at("steps")) CHECK(step.at("timeline").at("peak_bytes").get<double>() > 0);
}

TEST_CASE("a health check stresses every device, and reads its clock meanwhile") {
  if (gpus() == 0) return;
  const auto file = scratch("fleet.json");
  const Ended ended =
      wait_for(start_trainer({"health", "-o", file.string(), "--quick", "--storage", file.parent_path().string()}));
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const FleetObservation fleet = read_fleet({file});
  REQUIRE(fleet.nodes.size() == 1);
  int stressed = 0;
  for (const DeviceObservation& device : fleet.nodes[0].devices) {
    if (device.id.starts_with("core")) continue;
    ++stressed;
    CHECK_THAT(device.id, Catch::StartsWith("GPU-"));
    CHECK(device.stress_s.size() == 7);
    CHECK(device.memory_Bps.size() == 7);
    CHECK(device.wrong_results == 0);
    CHECK(device.sm_clock_MHz.has_value());
  }
  CHECK(stressed == gpus());
}

TEST_CASE("a run's metrics have the MFU where the device's peak is known") {
  if (gpus() == 0) return;
  RunSpec run = on_gpu(small_run());
  run.precision = Precision::bf16;
  cudaDeviceProp device{};
  REQUIRE(cudaGetDeviceProperties(&device, 0) == cudaSuccess);
  for (const TrainingStep& step : read_training(trained(run), 1e10).steps) {
    CHECK(step.mfu.has_value() == peak_flops(device.name, run.precision).has_value());
    if (step.mfu) CHECK((*step.mfu > 0 && *step.mfu < 1));
  }
}

TEST_CASE("ranks on several devices train as one does") {
  const std::int64_t devices = gpus();
  if (devices < 2) return;
  for (const RunSpec& run :
       {with_layout(small_run(), 1, 2, 1), with_layout(small_run(), 1, 2, 2), with_layout(small_run(), 2, 1, 1)})
    check_as_on_cpu(run);
  if (devices < 4) return;
  for (const auto& runs : {sharded_runs(small_run()), further_layouts(small_run()), replicated_experts(small_run()),
                           context_runs(small_run())})
    for (const RunSpec& run : runs) check_as_on_cpu(run);
}

TEST_CASE("more ranks than devices are refused by name") {
  const std::int64_t devices = gpus();
  if (devices == 0) return;
  RunSpec run = on_gpu(with_layout(small_run(), devices + 1, 1, 1));
  run.global_batch = devices + 1, run.layout.microbatch = 1;
  const Ended ended = train(run, scratch("too many"));
  CHECK(ended.status != 0);
  CHECK(ended.said.find("every rank needs one of its own") != std::string::npos);
}
