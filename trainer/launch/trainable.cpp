#include "trainer/launch/trainable.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/files/find.hpp"
#include "sim/program/memory/choose_microbatch.hpp"
#include "trainer/communication/rank_environment.hpp"
#include "trainer/device/device.hpp"
#include "trainer/parameters/starting_weights.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/storage/store.hpp"
#include "trainer/trackers/trackers.hpp"

namespace wt {
namespace {

/// What only training needs, beyond read_run's checks.
void check_trainable(const RunSpec& run, const std::string& where) {
  if (run.dataset.empty() || run.steps < 1)
    throw_usage("{}: needs train_loader.dataset.local and max_duration of at least 1ba to train", where);
  check_model(run, where);
  if (run.lora && run.load_path.empty())
    throw_usage(
        "{}: model.peft_config: found an adapter and no load_path; needs the weights that it is put on: set load_path "
        "to their folder, or leave peft_config out to train all weights",
        where);
  if (!run.export_path.empty() && !is_remote_address(run.export_path)) {
    // A folder that holds both is base and adapter in one, of which nobody can say what was trained on what.
    const std::filesystem::path folder = run.export_path;
    const char* const other = run.lora ? "config.json" : "adapter_config.json";
    if (std::error_code none; std::filesystem::exists(folder / other, none))
      throw_usage("{}: callbacks.hf_checkpointer.save_folder: found {} in {}, needs a folder without {}; name another",
                  where, other, folder.string(), run.lora ? "weights" : "an adapter");
  }
  check_loggers(run.loggers);
}

/// What the tensors of a rank may take: nine tenths of its device's memory, or of its part of the host's.
double memory_of_rank(const RunSpec& run) {
  const char* const local = std::getenv("LOCAL_WORLD_SIZE");
  const std::int64_t sharing = local != nullptr ? std::max(1, std::atoi(local)) : run.layout.world();
  if (run.device == DeviceKind::cpu)
    return kForTensors * as_double(sysconf(_SC_PHYS_PAGES)) * as_double(sysconf(_SC_PAGE_SIZE)) / as_double(sharing);
  const char* const rank = std::getenv("LOCAL_RANK");
  const Fingerprint facts = device_facts(open_device(to_string(run.device), rank != nullptr ? std::atoi(rank) : 0));
  return kForTensors * std::stod(facts.at("device_memory_GiB")) * kGiB_bytes;
}

/// A run that goes on keeps the microbatch that was found at its beginning, whatever the machine now.
RunSpec with_earlier_microbatch(RunSpec run, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kRunFile;
  if (!run.autoresume || !std::filesystem::exists(file)) return run;
  try {
    const RunSpec earlier = read_run(file);
    if (earlier.microbatch_auto || earlier.layout.name() != run.layout.name() ||
        earlier.global_batch != run.global_batch || earlier.seq != run.seq)
      return run;
    run.layout.microbatch = earlier.layout.microbatch;
    run.microbatch_auto = false;
  } catch (const Error&) {  // then it is found anew
  }
  return run;
}

}  // namespace

void check_model(const RunSpec& run, const std::string& where) {
  const ModelSpec& m = run.model;
  if (const auto lacks = m.untrainable(); !lacks.empty())
    throw_usage(
        "{}: model {}: found {}, which the trainer has not; allowed is a model without; windtunnel simulate and plan "
        "take this one",
        where, m.name, fmt::format("{}", fmt::join(lacks, ", ")));
  if (const auto lacks = untrainable(run); !lacks.empty())
    throw_usage(
        "{}: layout {}: found {}, simulated alone; allowed in training are replicas, shards, expert and context "
        "parallelism with AdamW on the GPU; windtunnel simulate takes this file",
        where, run.layout.name(), fmt::format("{}", fmt::join(lacks, ", ")));
  if (m.experts == 0) return;
  const std::int64_t unit = run.precision == Precision::fp32 ? 4 : 8;  // LibTorch's grouped GEMM wants rows of 16 bytes
  for (const auto& [key, width] : {std::pair{"d_model", m.d_model}, {"ffn_hidden_size", m.ffn}})
    if (width % unit != 0)
      throw_usage("{}: {}: found {}, training in {} needs a multiple of {}", where, key, width,
                  to_string(run.precision), unit);
}

RunSpec read_trainable(const std::string& run_file, const std::filesystem::path& folder) {
  RunSpec run = read_run(find_config("runs", run_file));
  check_trainable(run, run_file);
  if (run.lora) run.adapter_base = base_of_adapter(run.load_path);
  if (run.microbatch_auto) run = with_earlier_microbatch(std::move(run), folder);
  if (run.microbatch_auto && (run.device == DeviceKind::cpu || RankEnvironment::present()))
    return choose_microbatch(run, memory_of_rank(run), run_file);
  return run;
}

void check_save_folder(const std::string& address, const std::filesystem::path& output) {
  open_store(address);
  if (is_remote_address(address)) return;
  namespace fs = std::filesystem;
  const fs::path place = fs::weakly_canonical(address), checkpoints = fs::weakly_canonical(output / kCheckpointsFolder);
  const auto inside = [](const fs::path& a, const fs::path& b) {
    return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
  };
  if (inside(place, checkpoints) || inside(checkpoints, place))
    throw_usage("save_folder: found {}, where the run's own checkpoints are; needs another place, or none", address);
}

}  // namespace wt
