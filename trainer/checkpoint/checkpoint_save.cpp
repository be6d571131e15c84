#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/checkpoint/earlier_run.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/faults/fault_point.hpp"
#include "trainer/pch.hpp"
#include "trainer/safetensors/sealed_document.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string key_of(std::int64_t step, const std::string& what) { return fmt::format("checkpoint/{}/{}", step, what); }
fs::path partial_folder(const fs::path& folder, std::int64_t step) {
  return step_folder(folder, step).string() + ".partial";
}

/// Whether the manifest can be read and the files have the sizes that it states. Other folders may not be ours, and are
/// not deleted. Bytes are not compared, because that would read whole checkpoints at every save.
bool is_checkpoint(const fs::path& folder) {
  try {
    const json manifest = read_manifest(folder);
    for (const json& file : manifest.at("files")) {
      const fs::path path = folder / file.at("name").get<std::string>();
      const bool opens = std::ifstream(path, std::ios::binary).get() != std::ifstream::traits_type::eof();
      if (!opens || fs::file_size(path) != file.at("bytes").get<std::uintmax_t>()) return false;
    }
    return !manifest.at("files").empty();
  } catch (const std::exception&) {
    return false;
  }
}

/// Reads a written file back from storage and compares it with the checksums, which were computed in memory.
void check_written(const fs::path& path, const WrittenFile& file) {
  drop_cached(path);
  if (const std::string wrong = damage_of(path, file); !wrong.empty())
    throw_runtime("{}: reads back otherwise than it was written: {}; check the storage", path.parent_path().string(),
                  wrong);
}

/// Removes all but `keep` checkpoints (-1: keeps all); `newest` is always kept.
void remove_old(const fs::path& newest, std::int64_t keep) {
  std::int64_t kept = 0;
  for (const fs::path& step : checkpoint_folders(newest.parent_path()))
    if (keep >= 0 && step.filename() <= newest.filename() && is_checkpoint(step) && ++kept > keep) fs::remove_all(step);
}

}  // namespace

void StagedState::copy(const std::vector<ShardedGroup>& groups, std::int64_t step, std::int64_t rank) {
  std::size_t needed = 1;
  for (const ShardedGroup& g : groups) needed += g.states().size() * static_cast<std::size_t>(g.layout.state_elements);
  const at::Device device = groups.front().master.device();
  values_.reserve(needed, device);
  files_.clear();
  const auto add = [&](std::size_t file, OutgoingTensor tensor) {
    if (files_.size() <= file) files_.resize(file + 1);
    files_[file].push_back(std::move(tensor));
  };
  values_.data()[0] = static_cast<float>(step);
  float* next = values_.data() + 1;
  for (const ShardedGroup& g : groups) {
    if (g.layout.copied && rank != 0) continue;
    g.layout.for_state_parts([&](const ParameterInfo& p, std::int64_t first, std::int64_t count, std::int64_t at) {
      if (p.further_copy) return;  // the copy in the lowest slot is saved for all
      const auto parts = rectangles(p.shape, first, count);
      for (const auto& [key, tensor] : states(g, p.name)) {
        at::from_blob(next, {count}, at::kFloat).copy_(tensor->narrow(0, at, count), /*non_blocking=*/true);
        for (std::size_t i = 0; i < parts.size(); ++i)
          add(i, {key, "F32", parts[i].shape, next + (parts[i].begin - first), parts[i].offsets});
        next += count;
      }
      if (first == 0 && !g.frozen())
        add(0, {state_key(p.name, "step"), "F32", {}, values_.data(), {}});  // PyTorch's AdamW needs it
    });
  }
  wait_for_device(device);
}

std::int64_t StagedState::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& file : files_)
    for (const OutgoingTensor& tensor : file) bytes += tensor.bytes();
  return bytes;
}

CheckpointSaver::CheckpointSaver(fs::path folder, const RunSpec& run, Communicators& communicators, Beginning beginning,
                                 std::vector<PassedOver> passed_over, Done done, const StoreLease* lease)
    : folder_(std::move(folder)),
      run_(run),
      communicators_(communicators),
      passed_over_(std::move(passed_over)),
      done_(std::move(done)),
      lease_(lease) {
  if (run.save_folder.empty() || !run.save || communicators.rank() >= state_ranks(run.layout)) return;
  upload_ = std::make_unique<CheckpointUpload>(run, communicators.store(), communicators.rank());
  upload_->prepare(beginning.done, beginning.checkpoint);
}

CheckpointSaver::~CheckpointSaver() {
  given_up_ = true;
  if (upload_) upload_->give_up();  // the thread may be waiting for the upload
  if (thread_.joinable()) thread_.join();
}

void CheckpointSaver::save(std::int64_t step, const SamplerState& sampler, const std::vector<ShardedGroup>& groups) {
  const double begin = Clocks::now().wall_s;
  finish();
  under_way_ = true, step_ = step, sampler_ = sampler, begun_at_s_ = begin;
  written_at_s_ = begin;
  if (communicators_.rank() < state_ranks(run_.layout)) {
    staged_.copy(groups, step, communicators_.rank());
    if (!store_) {
      store_ = communicators_.store().reconnect();
      progress_.emplace(*store_, communicators_.rank());
    }
    thread_ = std::thread([this] { write(); });
  }
  blocking_s_ = Clocks::now().wall_s - begin;
}

void CheckpointSaver::finish() {
  if (!under_way_) return;
  under_way_ = false;
  if (thread_.joinable()) thread_.join();
  if (const std::string verdict = wt::wait_for(communicators_.store(), key_of(step_, "verdict")); verdict != "ok")
    throw_runtime("checkpoint of step {} was not written: {}; nothing of it is left behind", step_, verdict);
  done_(step_, {blocking_s_, written_at_s_ - begun_at_s_, bytes_});
}

void CheckpointSaver::finish_upload(const fs::path& output) {
  const std::string key = key_of(step_, "uploaded");
  if (upload_) upload_->wait();
  if (communicators_.rank() == 0) {
    std::string wrong = upload_->failure();
    try {
      upload_->upload_results(output);
    } catch (const std::exception& e) {
      if (wrong.empty()) wrong = fmt::format("its records: {}", e.what());
    }
    communicators_.store().set(key, wrong);
  }
  if (const std::string wrong = wt::wait_for(communicators_.store(), key); !wrong.empty())
    throw_runtime(
        "the last checkpoint is in {}, but not all of it at {}: {}; fix that, and start the run again, which uploads "
        "it",
        folder_.string(), run_.save_folder, wrong);
}

void CheckpointSaver::write() {
  const std::int64_t rank = communicators_.rank();
  std::string result;
  std::vector<std::string> names;
  try {
    if (upload_) upload_->wait();  // for the previous checkpoint, which must not be removed while it is read
    begin_folder();
    const json written = write_own_files();
    for (const json& file : written.at("files")) names.push_back(file.at("name"));
    result = written.dump();
  } catch (const std::exception& e) {
    result = json{{"error", e.what()}}.dump();
  }
  written_at_s_ = Clocks::now().wall_s;
  try {
    store_->set(key_of(step_, std::to_string(rank)), result);
    if (rank == 0) store_->set(key_of(step_, "verdict"), publish());
    if (upload_) upload_->begin(step_, step_folder(folder_, step_), names, key_of(step_, "verdict"));
  } catch (const std::exception& e) {  // the store has ended, and with it the run
    print_error("rank {}: checkpoint of step {}: {}\n", rank, step_, e.what());
  }
  if (rank == 0) written_at_s_ = Clocks::now().wall_s;
}

void CheckpointSaver::begin_folder() {
  const fs::path partial = partial_folder(folder_, step_);
  std::string wrong;
  if (communicators_.rank() == 0) {
    std::error_code error;
    fs::remove_all(partial, error);
    if (!error) fs::create_directories(partial, error);
    if (error)
      wrong = fmt::format("{}: could not be made: {}; free space or choose another folder", partial.string(),
                          error.message());
    store_->set(key_of(step_, "begin"), wrong);
  } else {
    wrong = wt::wait_for(*store_, key_of(step_, "begin"), &given_up_);
  }
  if (!wrong.empty()) throw Error(Code::runtime, wrong);
}

json CheckpointSaver::write_own_files() {
  const std::int64_t total = staged_.bytes();
  const auto& files = staged_.files();
  json written = json::array();
  std::int64_t before = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = shard_file_name(communicators_.rank(), i, files.size());
    const WrittenFile file = write_safetensors(partial_folder(folder_, step_) / name, files[i], [&](std::int64_t done) {
      pass_checkpoint_bytes(step_, before + done, total);
      progress_->moves();
      if (given_up_) throw_runtime("{}: given up, because the run ended", name);
    });
    if (run_.resilience.verify_saves) check_written(partial_folder(folder_, step_) / name, file);
    before += file.bytes;
    written.push_back({{"name", name}, {"bytes", file.bytes}, {"header_xxh3", file.header_xxh3}});
  }
  bytes_ = static_cast<double>(before);
  return {{"files", written}};
}

std::string CheckpointSaver::publish() {
  const fs::path target = step_folder(folder_, step_), partial = partial_folder(folder_, step_);
  json manifest = {{"schema", kCheckpointSchema},
                   {"step", step_},
                   {"run", run_.name},
                   {"settings", run_settings(run_)},
                   {"layout", run_.layout.name()},
                   {"sampler", to_json(sampler_)},
                   {"files", json::array()}};
  if (run_.lora) manifest["adapter"] = adapter_json(run_);
  std::string wrong;
  try {
    for (std::int64_t rank = 0; rank < state_ranks(run_.layout);
         ++rank) {  // wait for all: no rank may still write when the folder is removed
      const json result = json::parse(wt::wait_for(*store_, key_of(step_, std::to_string(rank)), &given_up_));
      if (result.contains("error"))
        wrong = wrong.empty() ? result["error"].get<std::string>() : wrong;
      else
        manifest["files"].insert(manifest["files"].end(), result["files"].begin(), result["files"].end());
    }
    if (wrong.empty() && lease_) wrong = lease_->lost();
    if (!wrong.empty()) throw Error(Code::runtime, wrong);
    write_file_atomically(partial / "manifest.json", sealed(manifest).dump(1));
    for (const auto& [path, renamed] : std::exchange(passed_over_, {}))
      fs::rename(path, free_name(fmt::format("{}.{}", path.string(), renamed)));
    fs::rename(partial, target);
  } catch (const std::exception& e) {
    std::error_code none;
    fs::remove_all(partial, none);
    return e.what();
  }
  try {  // the checkpoint is already valid; errors from here on are only reported
    pass_fault_point(FaultTime::Place::manifest, step_);
    write_file_atomically(trace_of_saves(folder_.parent_path()), "");
    name_latest(target);
    remove_old(target, run_.keep_checkpoints);
  } catch (const std::exception& e) {
    print_error("checkpoint of step {} is written, but tidying up failed: {}\n", step_, e.what());
  }
  return "ok";
}

}  // namespace wt
