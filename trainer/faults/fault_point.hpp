// Real faults at named places. A scenario says what strikes whom and when; the trainer passes every place where
// something can strike, and hands out the tensors that can be corrupted. Costs a comparison a place where nothing is
// armed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "configs/files/scenario.hpp"

namespace wt {

/// The process that passes the places.
struct FaultedRank {
  std::int64_t rank = 0;
  std::int64_t ranks_per_replica = 1;
  int generation = 0;
  std::filesystem::path folder;  ///< the run's output: strikes.jsonl, checkpoints, nodes
  std::int64_t save_interval = 0;
  int store_port = 0;                     ///< connections to it are not between ranks
  bool agent_store = false;               ///< its host is this process's parent, else rank 0
  std::optional<std::int64_t> node = {};  ///< none: ranks fill nodes in their order
};

/// Generations of earlier launches that belong to the same run: WINDTUNNEL_GENERATIONS_BEFORE, which a drill sets.
int generations_before();

/// Arms the events that strike this rank in this generation, once per process. Not those that strikes.jsonl tells of: a
/// launch that goes on in the folder of another is not struck again. Rank 0 carries out what strikes storage, store
/// and agent.
void arm_faults(const Scenario& scenario, const FaultedRank& rank);
/// Where the ranks may regroup: the process ids of this membership by rank.
void name_members(const std::vector<std::int64_t>& processes);

/// A place outside of ops; step 0 where it belongs to none. Throws what an injected exception is.
void pass_fault_point(FaultTime::Place place, std::int64_t step);
/// An op of the step program.
void pass_fault_point(std::int64_t step, std::string_view op, FaultTime::Phase phase);
/// While a checkpoint is written: so many of this rank's bytes are.
void pass_checkpoint_bytes(std::int64_t step, std::int64_t done, std::int64_t total);
/// An op has computed for so long: waits where the rank is slow.
void pass_computation(double seconds);

/// Numbers in host memory, `width` bytes each.
struct HostNumbers {
  void* data = nullptr;
  std::int64_t count = 0;
  int width = 4;
};
/// Calls the second argument with the tensor that the first names, and keeps what that changes.
using TensorAccess = std::function<void(const FaultEffect&, const std::function<void(HostNumbers)>&)>;
void give_tensors_to_faults(TensorAccess access);

}  // namespace wt
