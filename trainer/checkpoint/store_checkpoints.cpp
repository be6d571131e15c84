#include "trainer/checkpoint/store_checkpoints.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/standard_error.hpp"
#include "trainer/checkpoint/agreement.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/checkpoint/earlier_run.hpp"
#include "trainer/checkpoint/run_records.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Of one checkpoint alone: another one may be whole. Its manifest is none of ours, or a file is missing or damaged.
bool is_of_checkpoint(const Error& e) {
  const auto* failed = dynamic_cast<const StoreFailed*>(&e);
  return failed ? failed->kind() == StoreFailed::Kind::damaged || failed->kind() == StoreFailed::Kind::not_found
                : e.code() == Code::usage;
}

}  // namespace

StoreCheckpoints::StoreCheckpoints(const RunSpec& run, const fs::path& output, Communicators& communicators)
    : run_(run),
      output_(output),
      folder_(output / "checkpoints"),
      communicators_(communicators),
      progress_(communicators.store(), communicators.rank()),
      place_(open_store(run.save_folder)),
      mirror_(*place_) {
  place_->on_progress([this] { progress_.moves(); });
  const std::string steps =
      agree(communicators, 1, "steps at the store", "", [&](const auto&) { return json(mirror_.steps()).dump(); });
  steps_ = json::parse(steps).get<std::vector<std::int64_t>>();
}

bool StoreCheckpoints::has(std::int64_t step) const {
  return std::find(steps_.begin(), steps_.end(), step) != steps_.end();
}

std::string StoreCheckpoints::fetch(std::int64_t step) {
  const std::string name = step_name(step);
  if (std::string wrong = begin(step); !wrong.empty()) return wrong;
  const fs::path begun = CheckpointMirror::fetched_to(step, folder_);
  const std::int64_t readers = state_ranks(run_.layout);
  const std::string own = communicators_.rank() < readers ? bring_share(begun) : "";
  return agree(communicators_, readers, "fetched " + name, own, [&](const std::vector<std::string>& results) {
    std::string wrong;
    for (const std::string& text : results) {
      const json result = json::parse(text);
      if (wrong.empty()) wrong = result.at("wrong").get<std::string>();
      if (result.at("of_checkpoint").get<bool>()) continue;
      CheckpointMirror::abandon_fetch(begun);
      throw_error(Code::runtime, "{}", result.at("wrong").get<std::string>());
    }
    if (wrong.empty()) {
      publish(begun);
      print_error("fetched {} from {}\n", name, place_->address());
    } else {
      CheckpointMirror::abandon_fetch(begun);
      print_error("checkpoint of step {} at {} is passed over: {}\n", step, place_->address(), wrong);
    }
    return wrong;
  });
}

/// What is wrong with it, the same on every rank; "" = its files can be fetched.
std::string StoreCheckpoints::begin(std::int64_t step) {
  return agree(communicators_, 1, "fetch of " + step_name(step), "", [&](const auto&) {
    try {
      mirror_.begin_fetch(step, folder_);
      return std::string();
    } catch (const Error& e) {
      if (!is_of_checkpoint(e)) throw;
      print_error("checkpoint of step {} at {} is passed over: {}\n", step, place_->address(), e.what());
      return std::string(e.what());
    }
  });
}

std::string StoreCheckpoints::bring_share(const fs::path& folder) {
  json result = {{"wrong", ""}, {"of_checkpoint", true}};
  try {
    mirror_.fetch_files(folder, static_cast<std::uint64_t>(communicators_.rank()),
                        static_cast<std::uint64_t>(state_ranks(run_.layout)));
  } catch (const Error& e) {
    result = {{"wrong", e.what()}, {"of_checkpoint", is_of_checkpoint(e)}};
  } catch (const std::exception& e) {
    result = {{"wrong", e.what()}, {"of_checkpoint", false}};
  }
  return result.dump();
}

void StoreCheckpoints::publish(const fs::path& begun) {
  const fs::path target = folder_ / begun.filename();
  if (fs::exists(target)) fs::rename(target, free_name(target.string() + ".unreadable"));
  CheckpointMirror::end_fetch(begun);
  for (const char* name : kRunRecords) {
    if (fs::exists(output_ / name)) continue;
    if (const auto bytes = place_->size(record_name(name)))
      place_->fetch(record_name(name), output_ / name, fetch_limit_s(*bytes));
  }
}

}  // namespace wt
