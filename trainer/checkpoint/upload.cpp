#include "trainer/checkpoint/upload.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/standard_error.hpp"
#include "configs/spec/support/text.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// What one file of a checkpoint may take on its way here.
constexpr double kFetch_s = 3600;

/// Records that a run that goes on elsewhere has need of, and what a report is made of.
constexpr std::array kRecords{"run.yaml",          "metrics.jsonl",     "replayed.jsonl", "generations.jsonl",
                              "checkpoints.jsonl", "evaluations.jsonl", "summary.json",   "profile.json"};
/// Longer ones are uploaded at the end alone.
constexpr std::uintmax_t kRecord_bytes = 64 << 20;

std::string record_name(const std::string& name) { return "results/" + name; }

std::string upload_key(std::int64_t step, const std::string& what) {
  return fmt::format("checkpoint-upload/{}/{}", step, what);
}

}  // namespace

CheckpointUpload::CheckpointUpload(const RunSpec& run, SharedStore& store, std::int64_t rank)
    : run_(run), rank_(rank), place_(open_store(run.save_folder)), mirror_(*place_), store_(store.reconnect()) {}

CheckpointUpload::~CheckpointUpload() {
  give_up();
  if (thread_.joinable()) thread_.join();
}

void CheckpointUpload::give_up() {
  given_up_ = true;
  place_->give_up();
}

void CheckpointUpload::prepare(std::int64_t goes_on_from, const std::filesystem::path& checkpoint) {
  if (rank_ != 0) return;
  mirror_.start(goes_on_from);
  if (checkpoint.empty()) return;
  const std::vector<std::int64_t> there = mirror_.steps();
  if (std::find(there.begin(), there.end(), goes_on_from) == there.end())
    thread_ = std::thread([this, goes_on_from, checkpoint] { upload_missing(goes_on_from, checkpoint); });
}

void CheckpointUpload::upload_missing(std::int64_t step, const std::filesystem::path& checkpoint) {
  try {
    std::vector<std::string> names;
    const nlohmann::json manifest = read_manifest(checkpoint);
    for (const auto& file : manifest.at("files")) names.push_back(file.at("name"));
    mirror_.upload(step, checkpoint, names);
    mirror_.commit(checkpoint);
  } catch (const std::exception& e) {
    failed(step, e.what());
  }
}

void CheckpointUpload::failed(std::int64_t step, const std::string& why) {
  failure_ = why;
  if (!why.empty() && !given_up_) print_error("checkpoint of step {} is not at {}: {}\n", step, place_->address(), why);
}

void CheckpointUpload::wait() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointUpload::begin(std::int64_t step, const std::filesystem::path& checkpoint, std::vector<std::string> names,
                             const std::string& published) {
  wait();
  thread_ = std::thread([this, step, checkpoint, names = std::move(names), published] {
    try {
      upload(step, checkpoint, names, published);
    } catch (const std::exception& e) {  // the store of ranks is gone, or a rank takes too long
      failed(step, e.what());
    }
  });
}

void CheckpointUpload::upload(std::int64_t step, const std::filesystem::path& checkpoint,
                              const std::vector<std::string>& names, const std::string& published) {
  if (wt::wait_for(*store_, published, &given_up_) != "ok") return;  // which ends the run
  std::string wrong;
  try {
    mirror_.upload(step, checkpoint, names);
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  store_->set(upload_key(step, std::to_string(rank_)), wrong);
  if (rank_ != 0) return;
  failed(step, commit(step, checkpoint));
}

std::string CheckpointUpload::commit(std::int64_t step, const std::filesystem::path& checkpoint) {
  std::string wrong;
  for (std::int64_t rank = 0; rank < state_ranks(run_.layout); ++rank)
    if (const std::string said = wt::wait_for(*store_, upload_key(step, std::to_string(rank)), &given_up_);
        wrong.empty())
      wrong = said;
  if (!wrong.empty()) return wrong;
  try {
    mirror_.commit(checkpoint);
  } catch (const std::exception& e) {
    return e.what();
  }
  try {  // the checkpoint is there; what follows is convenience
    mirror_.retain(step, run_.keep_checkpoints);
    const std::filesystem::path output = checkpoint.parent_path().parent_path();
    std::error_code absent;
    for (const char* name : kRecords)
      if (const auto bytes = std::filesystem::file_size(output / name, absent); !absent && bytes <= kRecord_bytes)
        place_->put(record_name(name), read_file((output / name).string(), "a record"));  // which grows meanwhile
  } catch (const std::exception& e) {
    if (!given_up_)
      print_error("checkpoint of step {} is at {}, but tidying up there failed: {}\n", step, place_->address(),
                  e.what());
  }
  return "";
}

void CheckpointUpload::upload_results(const std::filesystem::path& output) {
  for (const char* name : kRecords)
    if (std::filesystem::exists(output / name)) place_->upload(output / name, record_name(name));
}

void fetch_missing_checkpoint(const RunSpec& run, const std::filesystem::path& output) {
  const std::filesystem::path folder = output / "checkpoints";
  const std::unique_ptr<Store> place = open_store(run.save_folder);
  CheckpointMirror mirror(*place);
  const auto here = checkpoint_folders(folder);
  std::string wrong;
  for (const std::int64_t step : mirror.steps()) {
    if (!here.empty() && step_name(step) <= here.front().filename().string()) return;
    try {
      mirror.fetch(step, folder, kFetch_s);
      for (const char* name : kRecords)
        if (const std::string there = record_name(name); !std::filesystem::exists(output / name) && place->size(there))
          place->fetch(there, output / name, kFetch_s);
      print_error("fetched {} from {}\n", step_name(step), place->address());
      return;
    } catch (const Error& e) {
      const auto* failed = dynamic_cast<const StoreFailed*>(&e);
      const bool of_checkpoint =
          failed ? failed->kind() == StoreFailed::Kind::damaged || failed->kind() == StoreFailed::Kind::not_found
                 : e.code() == Code::usage;  // its manifest is none of ours
      if (!of_checkpoint) throw;
      wrong = e.what();
      print_error("checkpoint of step {} at {} is passed over: {}\n", step, place->address(), wrong);
    }
  }
  if (!wrong.empty() && here.empty())
    throw_error(
        Code::usage,
        "{}: found checkpoints and none that is whole ({}); needs one to go on from; choose another save_folder, "
        "or set autoresume: false",
        place->address(), wrong);
}

}  // namespace wt
