#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/checkpoint/agreement.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/checkpoint/earlier_run.hpp"
#include "trainer/checkpoint/local_load.hpp"
#include "trainer/checkpoint/store_checkpoints.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What is wrong with the manifest or with this reader's share of the files; "" = nothing.
std::string damage(const fs::path& checkpoint, std::int64_t reader, std::int64_t readers) {
  try {
    const json files = read_manifest(checkpoint).at("files");
    for (std::size_t i = static_cast<std::size_t>(reader); i < files.size(); i += static_cast<std::size_t>(readers))
      if (const std::string wrong =
              damage_of(checkpoint / files[i].at("name").get<std::string>(),
                        {files[i].at("bytes").get<std::int64_t>(), files[i].at("header_xxh3").get<std::string>()});
          !wrong.empty())
        return wrong;
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

struct Found {
  fs::path newest;                      ///< the newest valid checkpoint in storage; empty: none
  const CopyCandidate* copy = nullptr;  ///< in the memory of nodes, as new or newer; null: none
  std::vector<PassedOver> passed_over;  ///< newer ones in storage, newest first
  std::string wrong;                    ///< why none is valid; "" if the folder is empty
};

/// Called on rank 0: the names of checkpoints in the folder, and what is wrong with the folder as a whole.
json names_in(const fs::path& folder) {
  json names = json::array();
  std::string wrong;
  bool listed = true;
  try {
    for (const fs::path& path : checkpoint_folders(folder)) names.push_back(path.filename().string());
    if (names.empty() && fs::exists(folder / "latest"))
      wrong = (folder / "latest").string() + " names a checkpoint that is not there";
  } catch (const std::exception& e) {
    wrong = e.what(), listed = false;
  }
  return {{"names", names}, {"wrong", wrong}, {"listed", listed}};
}

/// The reason for which the checkpoint cannot be read, the same on every rank; "" = it can. Rank 0 reports on stderr
/// what is passed over. `about` names the question; each name may be used once.
std::string damage_of_checkpoint(const fs::path& path, Communicators& communicators, std::int64_t readers,
                                 const std::string& about) {
  const std::string own = communicators.rank() < readers ? damage(path, communicators.rank(), readers) : "";
  return agree(communicators, readers, about, own, [&](const std::vector<std::string>& results) {
    for (const std::string& result : results)
      if (!result.empty()) {
        print_error("checkpoint {} cannot be read and is passed over: {}\n", path.string(), result);
        return result;
      }
    return std::string();
  });
}

/// The reason for which the run cannot continue from an undamaged checkpoint; "" = it can.
struct Unfitness {
  std::string why;
  bool readable = true;  ///< false: its state could not be judged at all
};

Unfitness judge_state(const fs::path& path, const UnfitState& unfit) try {
  const json manifest = read_manifest(path);
  return {unfit(manifest.at("step"), sampler_state_from_json(manifest.at("sampler"), path.string()))};
} catch (const std::exception& e) {
  return {e.what(), false};
}

/// The same on every rank, like damage_of_checkpoint().
Unfitness unfitness_of(const fs::path& path, Communicators& communicators, const UnfitState& unfit) {
  const json verdict =
      json::parse(agree(communicators, 1, "fitness of " + path.filename().string(), "", [&](const auto&) {
        const auto [why, readable] = judge_state(path, unfit);
        if (!why.empty())
          print_error("checkpoint {} {}is passed over: {}\n", path.string(), readable ? "" : "cannot be read and ",
                      why);
        return json{{"why", why}, {"readable", readable}}.dump();
      }));
  return {verdict.at("why"), verdict.at("readable")};
}

/// Iterates over copies in the memory of nodes, newest first, in step with the search of storage.
class CopyChoice {
 public:
  CopyChoice(LocalLoader* copies, const UnfitState& unfit) : copies_(copies), unfit_(unfit) {}
  /// The newest usable copy that is not older than `step`; null: none.
  const CopyCandidate* take(std::int64_t step) {
    while (copies_ && next_ < copies_->candidates().size() && copies_->candidates()[next_].step >= step)
      if (const CopyCandidate& candidate = copies_->candidates()[next_++];
          fits(candidate) && copies_->verify(candidate))
        return &candidate;
    return nullptr;
  }

 private:
  /// The same on every rank, because all judge the same numbers.
  bool fits(const CopyCandidate& candidate) const try {
    return unfit_(candidate.step, candidate.sampler).empty();
  } catch (const std::exception&) {
    return false;
  }

  LocalLoader* copies_;
  const UnfitState& unfit_;
  std::size_t next_ = 0;
};

struct Candidate {
  std::int64_t step = 0;
  std::string name;   ///< in the folder
  bool here = false;  ///< in the folder; otherwise only at the store
};

/// "step-00000012" -> 12; -1 where the name has no number, or one with too many digits.
std::int64_t step_of(const std::string& name) {
  const std::string digits = name.substr(kStepPrefix.size());
  return digits.empty() || digits.size() > 18 ? -1 : std::stoll(digits);
}

/// Newest first.
std::vector<Candidate> candidates_of(const json& names, const StoreCheckpoints* at_store) {
  std::vector<Candidate> all;
  for (const json& name : names) all.push_back({step_of(name), name, true});
  for (const std::int64_t step : at_store ? at_store->steps() : std::vector<std::int64_t>())
    if (std::ranges::none_of(all, [&](const Candidate& c) { return c.name == step_name(step); }))
      all.push_back({step, step_name(step), false});
  std::ranges::stable_sort(all, std::ranges::greater{}, &Candidate::step);
  return all;
}

/// Finds the checkpoint from which a run continues. Collective; the result is the same on every rank.
class CheckpointSearch {
 public:
  CheckpointSearch(const fs::path& folder, const RunSpec& run, Communicators& communicators, const UnfitState& unfit,
                   StoreCheckpoints* at_store)
      : folder_(folder), run_(run), communicators_(communicators), unfit_(unfit), at_store_(at_store) {}

  Found newest(LocalLoader* copies) {
    const json in_folder =
        json::parse(agree(communicators_, 1, "candidates", "", [&](const auto&) { return names_in(folder_).dump(); }));
    found_.wrong = in_folder.at("wrong").get<std::string>();
    const std::vector<Candidate> candidates = candidates_of(in_folder.at("names"), at_store_);
    if (!found_.wrong.empty() && (candidates.empty() || !in_folder.at("listed").get<bool>())) return found_;
    CopyChoice choice(copies, unfit_);
    for (const Candidate& candidate : candidates) {
      found_.copy = choice.take(candidate.step);
      // Storage must have the run's last step, too, because no other save follows.
      if (found_.copy && (found_.copy->step != candidate.step || candidate.step != run_.steps)) return found_;
      if (take(candidate) || found_.copy) return found_;
    }
    found_.copy = choice.take(0);
    if (!found_.copy) check_store();
    return found_;
  }

 private:
  /// Whether the run can continue from the candidate. If it is missing from the folder or damaged, it is fetched from
  /// the store.
  bool take(const Candidate& candidate) {
    const fs::path path = folder_ / candidate.name;
    Unfitness wrong{"", false};
    if (candidate.here) wrong.why = damage_in(path, candidate.name);
    if ((!candidate.here || !wrong.why.empty()) && is_at_store(candidate)) {
      const std::string why = at_store_->fetch(candidate.step);
      if (wrong_at_store_.empty()) wrong_at_store_ = why;
      if (!why.empty() && !candidate.here) return false;
      // A node may still see the previous folder, even after the wait in fetch().
      if (why.empty()) wrong.why = candidate.here ? damage_in(path, candidate.name + " in its place") : "";
    }
    if (wrong.why.empty()) wrong = unfitness_of(path, communicators_, unfit_);
    if (wrong.why.empty()) {
      found_.newest = path;
      return true;
    }
    found_.passed_over.push_back({path, wrong.readable ? "skipped-batches" : "unreadable"});
    if (!found_.copy && found_.wrong.empty()) found_.wrong = path.string() + ": " + wrong.why;
    return false;
  }

  std::string damage_in(const fs::path& path, const std::string& about) {
    return damage_of_checkpoint(path, communicators_, state_ranks(run_.layout), about);
  }

  bool is_at_store(const Candidate& candidate) const {
    return at_store_ && at_store_->has(candidate.step) && candidate.name == step_name(candidate.step);
  }

  void check_store() const {
    if (!found_.newest.empty() || !found_.wrong.empty() || wrong_at_store_.empty()) return;
    throw_usage(
        "{}: found checkpoints and none that is whole ({}); needs one to go on from; choose another save_folder, or "
        "set autoresume: false",
        at_store_->address(), wrong_at_store_);
  }

  const fs::path folder_;
  const RunSpec& run_;
  Communicators& communicators_;
  const UnfitState& unfit_;
  StoreCheckpoints* at_store_;
  Found found_;
  std::string wrong_at_store_;
};

/// Throws Error{usage} where the checkpoint is of another run; returns lines for the log.
std::vector<std::string> check_manifest(const json& manifest, const RunSpec& run, const std::string& chosen) {
  if (const json saved = manifest.value("adapter", json()); !is_of_adapter(saved, run))
    throw_usage(
        "{}: the adapter was {} when the checkpoint was saved, the run says {}; set peft_config and load_path back, "
        "choose another output folder, or set autoresume: false",
        chosen, saved.dump(), adapter_json(run).dump());
  if (!manifest.contains("settings"))
    return {
        fmt::format("{} was saved by an older build, which kept neither settings nor what the data were: that model, "
                    "optimizer and data are the same was not checked, but for the shapes of its tensors",
                    chosen)};
  SettingsCheck check = check_settings(manifest.at("settings").get<RunSettings>(), run);
  if (!check.wrong.empty())
    throw_usage("{}: checkpoint of another {}: {}; set {}back, choose another output folder, or set autoresume: false",
                chosen, check.model ? "model" : "run", check.wrong, check.model ? "the run's model " : "it ");
  return std::move(check.notes);
}

/// Fills the slices that this rank owns. Returns a '1' for each of stored.keys() that it needed.
std::string read_owned(const StoredTensors& stored, const std::vector<ShardedGroup>& groups) {
  const std::vector<std::string> keys = stored.keys();
  std::string needed(keys.size(), '0');
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (is_optimizer_key(keys[i]) && keys[i].ends_with(".step"))
      needed[i] = '1';  // only PyTorch reads it; ours is in the manifest
  for (const ShardedGroup& g : groups)
    g.layout.for_state_parts([&](const ParameterInfo& p, std::int64_t first, std::int64_t count, std::int64_t at) {
      for (const auto& [key, tensor] : states(g, p.name)) {
        if (stored.shape(key) != p.shape)
          throw_usage("{}: found shape {}, the model has {}; the checkpoint is of another model", key,
                      json(stored.shape(key)).dump(), json(p.shape).dump());
        fill_from_host(tensor->narrow(0, at, count),
                       [&, name = key](float* values) { stored.read(name, first, count, values); });
        needed[static_cast<std::size_t>(std::ranges::lower_bound(keys, key) - keys.begin())] = '1';
      }
    });
  return needed;
}

/// An error if no rank needed some tensor, which is as wrong as a missing one; otherwise "".
std::string unknown_tensors(const StoredTensors& stored, const std::vector<std::string>& needed) {
  const std::vector<std::string> keys = stored.keys();
  std::string names;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (std::ranges::none_of(needed, [&](const std::string& n) { return n[i] == '1'; }) && names.size() < 100)
      names += (names.empty() ? "" : ", ") + keys[i];
  return names.empty() ? "" : "tensors that the model does not have: " + names + "; the checkpoint is of another model";
}

}  // namespace

std::optional<LoadedCheckpoint> load_newest_checkpoint(const fs::path& folder, const RunSpec& run,
                                                       std::vector<ShardedGroup>& groups, Communicators& communicators,
                                                       LocalLoader* copies, const UnfitState& unfit,
                                                       StoreCheckpoints* at_store) {
  const std::int64_t readers = state_ranks(run.layout);
  const Found found = CheckpointSearch(folder, run, communicators, unfit, at_store).newest(copies);
  if (found.copy)
    return LoadedCheckpoint{found.copy->step,  found.copy->sampler, copies->load(),   found.newest,
                            found.passed_over, run.adapter_base,    found.copy->notes};
  if (found.newest.empty() && found.wrong.empty()) {
    if (copies && !copies->another_run().empty())  // they would be removed
      throw_usage(
          "{}; there is no other checkpoint: set it back, choose another output folder, or set autoresume: false",
          copies->another_run());
    return std::nullopt;
  }
  if (found.newest.empty()) throw_nothing_to_resume(folder, found.wrong);
  const std::string chosen = found.newest.string();
  const json manifest =
      json::parse(agree(communicators, 1, "manifest", "", [&](const auto&) { return read_manifest(chosen).dump(); }));
  std::vector<std::string> notes = check_manifest(manifest, run, chosen);

  std::optional<StoredTensors> stored;
  json own = {{"error", ""}, {"needed", ""}};
  if (communicators.rank() < readers) try {
      stored = StoredTensors::of_checkpoint(chosen);
      own["needed"] = read_owned(*stored, groups);
    } catch (const std::exception& e) {
      own["error"] = e.what();
    }
  const std::string wrong =
      agree(communicators, readers, "read", own.dump(), [&](const std::vector<std::string>& results) {
        std::vector<std::string> needed;
        for (const std::string& text : results) {
          const json result = json::parse(text);
          if (result["error"] != "") return result["error"].get<std::string>();
          needed.push_back(result["needed"]);
        }
        return unknown_tensors(*stored, needed);
      });
  if (!wrong.empty()) throw_usage("{}: {}", chosen, wrong);
  if (const Axis replicas = state_copies_axis(run.layout); Mesh(run.layout).size(replicas) > 1)
    for (const ShardedGroup& g : groups)
      for (const at::Tensor& t : g.states()) communicators.broadcast(replicas, t)->wait();
  return LoadedCheckpoint{manifest.at("step").get<std::int64_t>(),
                          sampler_state_from_json(manifest.at("sampler"), chosen),
                          CopyLevel::storage,
                          chosen,
                          found.passed_over,
                          manifest.contains("adapter") ? manifest["adapter"].value("base_model_name_or_path", "") : "",
                          std::move(notes)};
}

}  // namespace wt
