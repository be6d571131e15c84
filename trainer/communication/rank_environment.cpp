#include "trainer/communication/rank_environment.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <initializer_list>
#include <span>
#include <string_view>

#include "configs/base/error.hpp"
#include "trainer/faults/processes.hpp"

namespace wt {
namespace {

const char* first_set(std::span<const char* const> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value) return value;
  return nullptr;
}

const char* first_set(std::initializer_list<const char*> names) {
  return first_set(std::span<const char* const>(names.begin(), names.size()));
}

/// The first variable that is set; none: none is set.
std::optional<std::int64_t> number_in(std::span<const char* const> names) {
  for (const char* name : names) {
    const char* value = first_set({name});
    if (!value) continue;
    char* end = nullptr;
    const long long parsed = std::strtoll(value, &end, 10);
    if (*end != '\0' || parsed < 0) throw_usage("environment {}: found '{}', needs a whole number >= 0", name, value);
    return parsed;
  }
  return std::nullopt;
}

std::int64_t number(std::initializer_list<const char*> names, std::int64_t fallback) {
  return number_in({names.begin(), names.size()}).value_or(fallback);
}

/// From the ranks on this node, or from Slurm's nodes of the step and its tasks on each: "4(x2)", uneven "4,2".
std::int64_t nodes_of(std::int64_t world) {
  const std::int64_t here = number({"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, 0);
  const char* const tasks = first_set({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (here == 0 && tasks && std::string_view(tasks).find(',') != std::string_view::npos) return 0;
  const std::int64_t nodes = here > 0 ? world / here : number({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}, 1);
  return nodes > 0 && world % nodes == 0 && (here == 0 || nodes * here == world) ? nodes : 0;
}

}  // namespace

bool RankEnvironment::present() {
  return first_set({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) != nullptr &&
         first_set({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"}) != nullptr;
}

RankEnvironment RankEnvironment::read() {
  RankEnvironment e;
  e.rank = number({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}, 0);
  e.world = number({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"}, 1);
  if (e.rank >= e.world)
    throw_usage("environment RANK: found {}, WORLD_SIZE {} allows 0..{}; fix the launcher's settings", e.rank, e.world,
                e.world - 1);
  e.local_rank = number({"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"}, 0);
  e.nodes = nodes_of(e.world);
  const std::int64_t port = number({"MASTER_PORT"}, 29500);
  if (port > 65535) throw_usage("environment MASTER_PORT: found {}, needs 0..65535", port);
  e.master_port = static_cast<int>(port);
  e.restart_count = static_cast<int>(number({"TORCHELASTIC_RESTART_COUNT"}, 0));
  if (const char* address = first_set({"MASTER_ADDR"})) e.master_address = address;
  const char* agent = first_set({"TORCHELASTIC_USE_AGENT_STORE"});
  e.agent_store = agent && std::string(agent) == "True";
  e.joins = first_set({"WINDTUNNEL_JOINS"}) != nullptr;
  e.torchrun = first_set({"TORCHELASTIC_RUN_ID"}) != nullptr;
  return e;
}

std::string launch_name() {
  std::string name;
  for (const char* part : {"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"})
    if (const char* value = first_set({part})) name += (name.empty() ? "" : " ") + std::string(value);
  return name;
}

bool is_restart() { return number({"TORCHELASTIC_RESTART_COUNT"}, 0) > 0 || number({"SLURM_RESTART_COUNT"}, 0) > 0; }

std::string node_name(std::int64_t rank) {
  const char* node = first_set(kNodeVariables);
  if (!node) return std::to_string(rank);
  const std::string name = node;
  const bool word =
      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-' || c == '_'; });
  if (!word || name.starts_with('.'))
    throw_usage("environment WINDTUNNEL_NODE: found '{}', needs a word of letters, digits, '-' and '_'", name);
  return name;
}

std::optional<std::int64_t> node_number() { return number_in(kNodeVariables); }

std::string rack_name() {
  const char* rack = first_set({"WINDTUNNEL_RACK"});
  return rack ? rack : "";
}

}  // namespace wt
