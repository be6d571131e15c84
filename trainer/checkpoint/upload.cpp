#include "trainer/checkpoint/upload.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "configs/base/text.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/pch.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

/// Longer records are uploaded only at the end of the run.
constexpr std::uintmax_t kRecord_bytes = 64 << 20;

std::string upload_key(std::int64_t step, const std::string& what) {
  return fmt::format("checkpoint-upload/{}/{}", step, what);
}

}  // namespace

CheckpointUpload::CheckpointUpload(const RunSpec& run, SharedStore& store, std::int64_t rank)
    : run_(run),
      rank_(rank),
      place_(open_store(run.save_folder)),
      mirror_(*place_),
      store_(store.reconnect()),
      progress_(*store_, rank) {
  place_->on_progress([this] { progress_.moves(); });
}

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
  if (std::ranges::find(there, goes_on_from) == there.end())
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
    } catch (const std::exception& e) {  // the rendezvous store has ended, or a rank takes too long
      failed(step, e.what());
    }
  });
}

void CheckpointUpload::upload(std::int64_t step, const std::filesystem::path& checkpoint,
                              const std::vector<std::string>& names, const std::string& published) {
  if (wt::wait_for(*store_, published, &given_up_) != "ok") return;  // the failed save ends the run
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
  try {  // the checkpoint is uploaded; errors from here on are only reported
    mirror_.retain(step, run_.keep_checkpoints);
    const std::filesystem::path output = checkpoint.parent_path().parent_path();
    std::error_code absent;
    for (const char* name : kRunRecords)
      if (const auto bytes = std::filesystem::file_size(output / name, absent); !absent && bytes <= kRecord_bytes)
        place_->put(record_name(name), read_file((output / name).string(), "a record"));  // it may grow meanwhile
  } catch (const std::exception& e) {
    if (!given_up_)
      print_error("checkpoint of step {} is at {}, but tidying up there failed: {}\n", step, place_->address(),
                  e.what());
  }
  return "";
}

void CheckpointUpload::upload_results(const std::filesystem::path& output) {
  for (const char* name : kRunRecords)
    if (std::filesystem::exists(output / name)) place_->upload(output / name, record_name(name));
}

}  // namespace wt
