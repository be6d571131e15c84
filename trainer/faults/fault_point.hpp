// Injects real faults at named places. The trainer calls these functions at every place where a scenario may inject
// one, and gives access to tensors that can be corrupted. Costs one comparison per place if nothing is armed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "configs/files/scenario.hpp"

namespace wt {

/// The process that executes the places.
struct FaultedRank {
  std::int64_t rank = 0;
  std::int64_t ranks_per_replica = 1;
  int generation = 0;
  std::filesystem::path folder;  ///< the run's output: strikes.jsonl, checkpoints, nodes
  std::int64_t save_interval = 0;
  int store_port = 0;                     ///< connections to it are not between ranks
  bool agent_store = false;               ///< the store is in this process's parent; otherwise in rank 0
  std::optional<std::int64_t> node = {};  ///< none: nodes are filled in the order of ranks
};

/// Generations of earlier launches of the same run: WINDTUNNEL_GENERATIONS_BEFORE, which a drill sets.
int generations_before();

/// Arms the events for this rank and generation, once per process. Events in strikes.jsonl are skipped, so that a new
/// launch in the same folder does not repeat them. Rank 0 injects faults of storage, store and agent.
void arm_faults(const Scenario& scenario, const FaultedRank& rank);
/// If ranks may regroup: the process ids of this membership, by rank.
void name_members(const std::vector<std::int64_t>& processes);

/// A place outside ops; step 0 if it belongs to no step. Throws an injected exception.
void pass_fault_point(FaultTime::Place place, std::int64_t step);
/// An op of the step program.
void pass_fault_point(std::int64_t step, std::string_view op, FaultTime::Phase phase);
/// During a save: `done` of this rank's bytes have been written.
void pass_checkpoint_bytes(std::int64_t step, std::int64_t done, std::int64_t total);
/// After an op's computation of `seconds`: waits if the rank is to be slow.
void pass_computation(double seconds);

/// Numbers in host memory, `width` bytes each.
struct HostNumbers {
  void* data = nullptr;
  std::int64_t count = 0;
  int width = 4;
};
/// Calls its second argument with the tensor that the first one names, and keeps the changes.
using TensorAccess = std::function<void(const FaultEffect&, const std::function<void(HostNumbers)>&)>;
void give_tensors_to_faults(TensorAccess access);

}  // namespace wt
