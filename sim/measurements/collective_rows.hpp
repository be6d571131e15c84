// Measured collectives: one row a size. Columns of the CSV (docs/validate.md): source, gpu, nodes, gpus, fabric,
// collective, bytes, time_us, algbw_GBps, busbw_GBps, note; transport, node_GBps, reduction, timer, shared,
// evidence, fewest_on_node. Bytes by the convention of nccl-tests (the full buffer of a gather or scatter).
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"
#include "sim/cost/collectives/collective_algorithm.hpp"
#include "sim/cost/collectives/interconnect.hpp"
#include "sim/program/program.hpp"

namespace wt {

struct CollectiveRow {
  std::int64_t line = 0;
  std::string source, gpu, collective, note;  ///< for people
  std::string origin;                         ///< who published it (Origins)
  std::optional<OpKind> kind;                 ///< empty where it is no collective of ours
  std::int64_t nodes = 1, gpus = 1;           ///< hosts, as the table counts them
  std::int64_t fewest_on_node = 0;            ///< ranks of the domain with fewest; 0 = as many on each
  Interconnect interconnect;
  bool ring_only = false;               ///< NVLink SHARP was switched off
  bool reduced_in_network = false;      ///< by the network's switches
  bool timed_from_python = false;       ///< torch.distributed's calls cost host time that nccl-tests do not count
  bool shared_with_other_jobs = false;  ///< a median over the jobs of a fleet
  Evidence evidence = Evidence::published;
  double bytes = 0;  ///< kPlateauBytes where the file gives a plateau and no size
  bool bytes_assumed = false;
  double seconds = 0;         ///< from the bandwidth where the file gives no time; 0 where it gives neither
  std::string unusable = {};  ///< why nothing can be predicted of this row

  /// NVLink domains that the GPUs are in: the hosts, or racks filled one after the other where the fabric names them.
  std::int64_t domains() const;
  /// What was measured on one cluster: source, GPU, nodes, GPUs, fabric.
  std::string cluster() const;
};
constexpr double kPlateauBytes = 16.0 * (1 << 30);  // where published sweeps end

/// Ranks of the node with fewest where GPUs do not divide into nodes: what the last node has after full ones, or of an
/// even spread.
std::int64_t fewest_on_node(std::int64_t nodes, std::int64_t gpus, std::int64_t gpus_per_node);

/// Every row of the table, in order; one with fewer than 2 GPUs, more nodes than GPUs, or a number below 0 says so in
/// `unusable`. Throws Error{usage} as read_csv does.
std::vector<CollectiveRow> read_collective_rows(const std::filesystem::path& file);

}  // namespace wt
