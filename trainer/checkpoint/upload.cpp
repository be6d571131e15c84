#include "trainer/checkpoint/upload.hpp"

#include <array>

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
  given_up_ = true;
  place_->give_up();
  if (thread_.joinable()) thread_.join();
}

void CheckpointUpload::prepare(std::int64_t goes_on_from) {
  if (rank_ == 0) mirror_.start(goes_on_from);
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
    } catch (const std::exception& e) {  // the store of ranks is gone, and the run with it
      failure_ = e.what();
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
  failure_ = commit(step, checkpoint);
  if (!failure_.empty() && !given_up_)
    print_error("checkpoint of step {} is not at {}: {}\n", step, place_->address(), failure_);
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
    mirror_.retain(step, run_.keep_checkpoints);
    const std::filesystem::path output = checkpoint.parent_path().parent_path();
    std::error_code absent;
    for (const char* name : kRecords)
      if (const auto bytes = std::filesystem::file_size(output / name, absent); !absent && bytes <= kRecord_bytes)
        place_->put(record_name(name), read_file((output / name).string(), "a record"));  // which grows meanwhile
  } catch (const std::exception& e) {
    return e.what();
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
    } catch (const StoreFailed& e) {
      if (e.kind() != StoreFailed::Kind::damaged && e.kind() != StoreFailed::Kind::not_found) throw;
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
