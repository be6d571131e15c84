#include "trainer/checkpoint.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/spec/atomic_file.hpp"
#include "configs/spec/error.hpp"
#include "configs/spec/json_reader.hpp"
#include "trainer/clocks.hpp"
#include "trainer/fault_point.hpp"
#include "trainer/pch.hpp"
#include "trainer/safetensors.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSchema = "windtunnel.checkpoint/1";

json model_json(const ModelSpec& m) {
  return {{"layers", m.layers}, {"d_model", m.d_model}, {"heads", m.heads}, {"kv_heads", m.kv_heads}, {"head_dim", m.head_dim},
          {"ffn", m.ffn}, {"experts", m.experts}, {"top_k", m.top_k}, {"vocab", m.vocab}};
}

/// What must not change silently between a save and its resume: the order of samples and what a step is.
json data_json(const RunSpec& run) {
  return {{"max_seq_len", run.seq}, {"global_train_batch_size", run.global_batch}, {"seed", run.seed}, {"shuffle_seed", run.shuffle_seed}};
}

fs::path step_folder(const fs::path& folder, std::int64_t step) { return folder / fmt::format("step-{:08}", step); }

/// The states of a group, by the name they have in a checkpoint.
std::vector<std::pair<const char*, const at::Tensor*>> states(const ShardedGroup& g) {
  return {{"master", &g.master}, {"exp_avg", &g.exp_avg}, {"exp_avg_sq", &g.exp_avg_sq}};
}

/// Calls visit(parameter, first element of it, count, position in this rank's slice) for every parameter part owned here.
template <typename Visit>
void for_owned_parts(const GroupLayout& layout, Visit&& visit) {
  const std::int64_t begin = layout.state_begin(), end = begin + layout.state_elements;
  for (const ParameterInfo& p : layout.parameters) {
    const std::int64_t first = std::max(begin, p.offset), last = std::min(end, p.offset + p.elements());
    if (first < last) visit(p, first - p.offset, last - first, first - begin);
  }
}

std::vector<SafetensorsSlice> slices_of(const std::vector<ShardedGroup>& groups) {
  std::vector<SafetensorsSlice> out;
  for (const ShardedGroup& g : groups)
    for (const auto& [state, tensor] : states(g))
      for_owned_parts(g.layout, [&, state = state, tensor = tensor](const ParameterInfo& p, std::int64_t first, std::int64_t count, std::int64_t at) {
        out.push_back({fmt::format("{}/{}", p.name, state), tensor->data_ptr<float>() + at, count, first, p.shape});
      });
  return out;
}

/// Keeps so many, `newest` among them. What is newer was passed over as damaged: it does not count, and stays until its
/// step comes again.
void remove_old(const fs::path& newest, std::int64_t keep) {
  std::vector<fs::path> steps;
  for (const auto& entry : fs::directory_iterator(newest.parent_path())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".partial")) fs::remove_all(entry.path());
    else if (name.starts_with("step-") && name <= newest.filename().string()) steps.push_back(entry.path());
  }
  std::sort(steps.begin(), steps.end());
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < steps.size(); ++i) fs::remove_all(steps[i]);
}

/// Empty when the folder holds a whole checkpoint, else what is wrong with it.
std::string damage(const fs::path& folder) {
  try {
    const json manifest = read_json(folder / "manifest.json");
    if (manifest.value("schema", "") != kSchema) return "manifest.json has another schema";
    for (const json& file : manifest.at("files")) {
      const fs::path path = folder / file.at("name").get<std::string>();
      if (!fs::exists(path)) return path.filename().string() + " is missing";
      const WrittenFile found = checksum_file(path);
      if (found.bytes != file.at("bytes").get<std::int64_t>()) return path.filename().string() + " has another size";
      if (found.xxh3 != file.at("xxh3").get<std::string>()) return path.filename().string() + " has another checksum";
    }
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// Newest valid checkpoint, or "". Names damaged ones on stderr.
std::string newest_valid(const fs::path& folder) {
  std::vector<fs::path> steps;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.starts_with("step-") && !name.ends_with(".partial")) steps.push_back(entry.path());
  }
  std::sort(steps.rbegin(), steps.rend());
  for (const fs::path& path : steps) {
    const std::string wrong = damage(path);
    if (wrong.empty()) return path.string();
    fmt::print(stderr, "checkpoint {} is damaged and passed over: {}\n", path.string(), wrong);
  }
  return "";
}

}  // namespace

SaveTimes save_checkpoint(const fs::path& folder, std::int64_t step, const RunSpec& run, const SamplerState& sampler,
                                const std::vector<ShardedGroup>& groups, Communicators& communicators) {
  const double begin = Clocks::now().wall_s;
  const Mesh mesh(run.layout);
  const std::int64_t rank = communicators.rank();
  const fs::path target = step_folder(folder, step), partial = target.string() + ".partial";
  const std::string key = fmt::format("checkpoint/{}", step);
  SharedStore& store = communicators.store();
  if (rank == 0) {
    fs::remove_all(partial);
    fs::create_directories(partial);
    store.set(key + "/begin", "1");
  }
  store.get(key + "/begin");

  SaveTimes times;
  const bool writer = mesh.coordinate(state_copies_axis(run.layout), rank) == 0;
  if (writer) {
    const std::string name = fmt::format("shard-{:05}-of-{:05}.safetensors", rank + 1, mesh.size(Axis::state));
    try {
      const auto fault = checkpoint_fault(step);
      const WrittenFile file = write_safetensors(partial / name, slices_of(groups), [&](double share) {
        if (fault && share >= *fault) die_now();
      });
      times.bytes = static_cast<double>(file.bytes);
      store.set(fmt::format("{}/{}", key, rank), json{{"name", name}, {"bytes", file.bytes}, {"xxh3", file.xxh3}}.dump());
    } catch (const std::exception& e) {
      store.set(fmt::format("{}/{}", key, rank), json{{"error", e.what()}}.dump());
    }
  }
  if (rank == 0) {
    std::string verdict = "ok";
    try {
      json manifest = {{"schema", kSchema}, {"step", step}, {"run", run.name}, {"data", data_json(run)}, {"model", model_json(run.model)},
                       {"layout", {{"replicate", run.layout.replicate}, {"shard", run.layout.shard}, {"expert", run.layout.expert}}},
                       {"sampler", to_json(sampler)}, {"files", json::array()}};
      for (std::int64_t writer_rank = 0; writer_rank < mesh.size(Axis::state); ++writer_rank) {
        const json file = json::parse(store.get(fmt::format("{}/{}", key, writer_rank)));
        if (file.contains("error")) throw Error(Code::runtime, file["error"].get<std::string>());
        manifest["files"].push_back(file);
      }
      write_file_atomically(partial / "manifest.json", manifest.dump(1));
      fs::remove_all(target);
      fs::rename(partial, target);
    } catch (const std::exception& e) {
      verdict = e.what();
      std::error_code none;
      fs::remove_all(partial, none);
    }
    if (verdict == "ok") try {  // the checkpoint is valid already; what follows is convenience
      write_file_atomically(folder / "latest", target.filename().string() + "\n");
      remove_old(target, run.keep_checkpoints);
    } catch (const std::exception& e) {
      fmt::print(stderr, "checkpoint of step {} is written, but tidying up failed: {}\n", step, e.what());
    }
    store.set(key + "/verdict", verdict);
  }
  if (const std::string verdict = store.get(key + "/verdict"); verdict != "ok")
    throw_error(Code::runtime, "checkpoint of step {} was not written: {}; nothing of it is left behind", step, verdict);
  times.blocking_s = times.total_s = Clocks::now().wall_s - begin;
  return times;
}

std::optional<LoadedCheckpoint> load_newest_checkpoint(const fs::path& folder, const RunSpec& run,
                                                       std::vector<ShardedGroup>& groups, Communicators& communicators) {
  SharedStore& store = communicators.store();
  if (communicators.rank() == 0) store.set("resume", newest_valid(folder));
  const std::string chosen = store.get("resume");
  if (chosen.empty()) return std::nullopt;
  const json manifest = read_json(fs::path(chosen) / "manifest.json");
  if (manifest.at("model") != model_json(run.model))
    throw_error(Code::usage, "{}: checkpoint of another model: found {}, the run has {}; choose another output folder",
                chosen, manifest.at("model").dump(), model_json(run.model).dump());
  const json expected = data_json(run);
  for (const auto& [key, value] : expected.items())
    if (manifest.at("data").at(key) != value)
      throw_error(Code::usage, "{}: {} was {} when the checkpoint was saved, the run says {}; samples would not continue: set it back or choose another output folder",
                  chosen, key, manifest.at("data").at(key).dump(), value.dump());

  std::multimap<std::string, StoredSlice> stored;
  for (const json& file : manifest.at("files"))
    for (auto& [key, slice] : read_safetensors_header(fs::path(chosen) / file.at("name").get<std::string>()))
      stored.emplace(key, slice);
  for (ShardedGroup& g : groups)
    for (const auto& [state, tensor] : states(g))
      for_owned_parts(g.layout, [&, state = state, tensor = tensor](const ParameterInfo& p, std::int64_t first, std::int64_t count, std::int64_t at) {
        const std::string key = fmt::format("{}/{}", p.name, state);
        std::int64_t filled = 0;
        const auto [low, high] = stored.equal_range(key);
        for (auto it = low; it != high; ++it) {
          const StoredSlice& s = it->second;
          const std::int64_t from = std::max(first, s.begin), to = std::min(first + count, s.begin + s.count);
          if (from >= to) continue;
          read_slice(s, from - s.begin, to - from, tensor->data_ptr<float>() + at + (from - first));
          filled += to - from;
        }
        if (filled != count)
          throw_error(Code::usage, "{}: {}: found {} of {} values; the checkpoint is incomplete", chosen, key, filled, count);
      });
  return LoadedCheckpoint{manifest.at("step").get<std::int64_t>(), sampler_state_from_json(manifest.at("sampler"), chosen), chosen};
}

}  // namespace wt
