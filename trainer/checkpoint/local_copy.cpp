#include "trainer/checkpoint/local_copy.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <random>
#include <set>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/linked_folder.hpp"
#include "trainer/checkpoint/agreement.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/safetensors/sealed_document.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kCopySchema = "windtunnel.local_copy/3";
constexpr const char* kTensor = "state";

fs::path part_file(const fs::path& level, std::int64_t step, std::int64_t shard) {
  return step_folder(level, step) / fmt::format("shard-{:05}.safetensors", shard + 1);
}
fs::path record_of(const fs::path& file) { return fs::path(file).replace_extension(".json"); }

/// The settings that determine which values a rank holds.
json cut_json(const Layout& layout) {
  return {{"shard", layout.shard},
          {"expert", layout.expert},
          {"optimizer_shard", layout.optimizer_shard},
          {"placement", layout.placement}};
}

/// Removes the record first, because a part without a record does not count.
void remove_copy(const fs::path& file) {
  fs::remove(record_of(file));
  fs::remove(file);
  ::rmdir(file.parent_path().c_str());  // fails while the folder still has other copies
}

std::string random_word() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// Newest first. Empty if the path is not a folder; a later save reports that.
std::vector<fs::path> steps_in(const fs::path& level) {
  return fs::is_directory(level) ? checkpoint_folders(level) : std::vector<fs::path>();
}

/// Creates OUT/nodes/NODE, or creates it again if it points to memory that no longer exists.
void make_folder(const fs::path& folder, const fs::path& memory) {
  fs::create_directories(folder.parent_path());
  if (fs::is_symlink(folder)) {
    fs::create_directories(fs::read_symlink(folder));
  } else if (memory.empty() || fs::exists(folder)) {
    fs::create_directories(folder);
  } else {
    fs::create_directories(memory);
    std::string name = (fs::absolute(memory) / "windtunnel-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw fs::filesystem_error("mkdtemp", name, std::error_code(errno, std::system_category()));
    fs::create_symlink(name, folder);
  }
}

}  // namespace

CopySite make_copy_site(const fs::path& output, const RunSpec& run, const std::string& node, const std::string& rack,
                        Communicators& communicators) {
  CopySite site;
  site.rank = communicators.rank();
  site.folder = output / kNodesFolder / node;
  const std::int64_t world = run.layout.world();
  const json places = json::parse(
      agree(communicators, world, "places", json{node, rack}.dump(), [](const std::vector<std::string>& of_ranks) {
        json all = json::array();
        for (const std::string& place : of_ranks) all.push_back(json::parse(place));
        return all.dump();
      }));
  for (std::int64_t rank = 0; rank < world; ++rank)
    site.places.push_back({places[static_cast<std::size_t>(rank)][0], places[static_cast<std::size_t>(rank)][1],
                           rank % state_ranks(run.layout)});
  site.leaders = node_leaders(site.places);
  site.plan = plan_copies(site.places, run.resilience.local.peer);
  std::string wrong;
  try {
    if (site.leads()) make_folder(site.folder, run.resilience.local.folder);
  } catch (const fs::filesystem_error& e) {
    wrong = e.what();
  }
  const json made =
      json::parse(agree(communicators, world, "folders of nodes", wrong, [](const std::vector<std::string>& results) {
        for (const std::string& result : results)
          if (!result.empty()) return json{{"wrong", result}}.dump();
        return json{{"history", random_word()}}.dump();
      }));
  if (made.contains("wrong"))
    throw_usage("local_checkpoints: {}; needs a folder that every node may write to; choose another",
                made.at("wrong").get<std::string>());
  site.history = made.at("history");
  return site;
}

std::int64_t packed_elements(const std::vector<ShardedGroup>& groups) {
  std::int64_t elements = 0;
  for (const ShardedGroup& g : groups)
    elements += static_cast<std::int64_t>(g.states().size()) * g.layout.state_elements;
  return elements;
}

namespace {

void for_packed(const std::vector<ShardedGroup>& groups, float* values,
                const std::function<void(const at::Tensor& state, const at::Tensor& packed)>& visit) {
  for (const ShardedGroup& g : groups)
    for (const at::Tensor& state : g.states()) {
      visit(state, at::from_blob(values, {state.numel()}, at::kFloat));
      values += state.numel();
    }
}

}  // namespace

void pack_state(const std::vector<ShardedGroup>& groups, float* values) {
  for_packed(groups, values,
             [](const at::Tensor& state, const at::Tensor& packed) { packed.copy_(state, /*non_blocking=*/true); });
  wait_for_device(groups.front().master.device());
}

void unpack_state(const float* values, const std::vector<ShardedGroup>& groups) {
  for_packed(groups, const_cast<float*>(values),
             [](const at::Tensor& state, const at::Tensor& packed) { state.copy_(packed); });
}

void write_copy(const fs::path& level, const CopyRecord& record, const RunSpec& run, std::span<const float> values) {
  const fs::path file = part_file(level, record.step, record.shard);
  try {
    fs::create_directories(file.parent_path());
    fs::remove(record_of(file));  // left by another start
  } catch (const fs::filesystem_error& e) {
    throw_runtime("{}", e.what());
  }
  const WrittenFile written =
      write_safetensors(file, {{kTensor, "F32", {static_cast<std::int64_t>(values.size())}, values.data()}});
  json out = {{"settings", run_settings(run)}, {"cut", cut_json(run.layout)}};
  if (run.lora) out["adapter"] = adapter_json(run);
  out.update({{"schema", kCopySchema},
              {"step", record.step},
              {"history", record.history},
              {"shard", record.shard},
              {"sampler", to_json(record.sampler)},
              {"bytes", written.bytes},
              {"header_xxh3", written.header_xxh3}});
  write_file_atomically(record_of(file), sealed(out).dump());
}

void remove_older_copies(const fs::path& level, std::int64_t shard, std::int64_t step, std::int64_t keep) {
  std::int64_t kept = 0;
  for (const fs::path& folder : checkpoint_folders(level)) {  // newest first
    const fs::path file = folder / part_file(level, step, shard).filename();
    if (folder < step_folder(level, step) && fs::exists(file) && ++kept > keep) remove_copy(file);
  }
}

namespace {

class OfAnotherRun : public Error {
  using Error::Error;
};

/// Throws OfAnotherRun, or Error{usage} if the part does not match the run's present division of the state.
FoundCopy read_record(const fs::path& file, const RunSpec& run) {
  json record = read_json(file);
  if (record.at("schema") != kCopySchema) throw_usage("another schema");
  record = unsealed(record);
  if (const json cut = cut_json(run.layout); record.at("cut") != cut)
    throw_usage("of another cut: {}", differing_keys(record.at("cut"), cut));
  SettingsCheck check = check_settings(record.at("settings").get<RunSettings>(), run);
  if (!check.wrong.empty()) throw OfAnotherRun(Code::usage, fmt::format("of another run: {}", check.wrong));
  const json adapter = record.value("adapter", json());
  if (!is_of_adapter(adapter, run) || (run.lora && adapter.value("base_model_name_or_path", "") != run.adapter_base))
    throw_usage("of another adapter: {}", adapter.dump());
  const JsonReader at(record, file.string());
  FoundCopy found{{at.at("step").integer(), at.at("history").string(), at.at("shard").integer(),
                   sampler_state_from_json(record.at("sampler"), file.string())},
                  fs::path(file).replace_extension(".safetensors"),
                  at.at("bytes").integer(),
                  at.at("header_xxh3").string(),
                  std::move(check.notes)};
  const fs::path level = file.parent_path().parent_path();
  if (found.record.shard < 0 || found.record.shard >= state_ranks(run.layout) ||
      record_of(part_file(level, found.record.step, found.record.shard)) != file)
    throw_usage("of another step or part than its name says");
  return found;
}

}  // namespace

std::vector<FoundCopy> find_copies(const fs::path& folder, const RunSpec& run,
                                   std::vector<PassedOverCopy>& passed_over) {
  std::vector<FoundCopy> out;
  for (const char* level : {"local", "peer"})
    for (const fs::path& step : steps_in(folder / level))
      for (const auto& entry : fs::directory_iterator(step))
        if (entry.path().extension() == ".json") try {
            out.push_back(read_record(entry.path(), run));
          } catch (const std::exception& e) {
            passed_over.push_back({fmt::format("{}: {}", entry.path().string(), e.what()),
                                   dynamic_cast<const OfAnotherRun*>(&e) != nullptr});
          }
  return out;
}

void clean_node_folder(const fs::path& folder, std::int64_t step, const RunSpec& run) {
  std::vector<PassedOverCopy> none;
  std::set<fs::path> kept;
  for (const FoundCopy& copy : find_copies(folder, run, none))
    if (copy.record.step <= step) kept.insert({copy.file, record_of(copy.file)});
  for (const char* level : {"local", "peer"})
    for (const fs::path& each : steps_in(folder / level)) {
      std::vector<fs::path> gone;
      for (const auto& entry : fs::directory_iterator(each))
        if (!kept.count(entry.path())) gone.push_back(entry.path());
      for (const fs::path& path : gone) fs::remove_all(path);
      ::rmdir(each.c_str());  // fails while some are left
    }
}

void remove_other_nodes(const CopySite& site) {
  std::set<std::string> in_use;
  for (const CopyPlace& place : site.places) in_use.insert(place.node);
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(site.folder.parent_path()))
    if (!in_use.count(entry.path().filename().string()) && fs::exists(entry.path())) gone.push_back(entry.path());
  for (const fs::path& folder : gone) remove_linked_folder(folder);
}

void read_copy(const FoundCopy& copy, std::span<float> values) {
  if (const std::string wrong = damage_of(copy.file, {copy.bytes, copy.header_xxh3}); !wrong.empty())
    throw_usage("{}: {}", copy.file.parent_path().string(), wrong);
  const StoredFile stored = read_safetensors(copy.file);
  const auto it = stored.tensors.find(kTensor);
  if (it == stored.tensors.end() || it->second.dtype != "F32" ||
      it->second.elements() != static_cast<std::int64_t>(values.size()))
    throw_usage("{}: does not hold {} numbers of F32", copy.file.string(), values.size());
  read_values(it->second, 0, static_cast<std::int64_t>(values.size()), values.data());
}

}  // namespace wt
