// Measured collectives: one row per message size. Columns of the CSV (docs/validate.md): source, gpu, nodes, gpus,
// fabric, collective, bytes, time_us, algbw_GBps, busbw_GBps, note; transport, node_GBps, node_gpus (GPUs of a host,
// not all of which need to take part), reduction, timer, shared, evidence, fewest_on_node. Bytes as nccl-tests count
// them (the full buffer of a gather or scatter).
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
  std::string source, gpu, collective, note;  ///< for reports
  std::string origin;                         ///< who published it (Origins)
  std::optional<OpKind> kind;                 ///< empty if we have no such collective
  std::int64_t nodes = 1, gpus = 1;           ///< nodes: hosts, as the table counts them
  std::int64_t fewest_on_node = 0;            ///< ranks of the domain with the fewest; 0 = equally many in each
  Interconnect interconnect;
  bool ring_only = false;               ///< NVLink SHARP was switched off
  bool reduced_in_network = false;      ///< by the network's switches
  bool timed_from_python = false;       ///< by torch.distributed, whose calls cost host time that nccl-tests do not
                                        ///< count
  bool shared_with_other_jobs = false;  ///< a median over the jobs of a fleet
  Evidence evidence = Evidence::published;
  double bytes = 0;  ///< kPlateauBytes if the file gives a plateau without a size
  bool bytes_assumed = false;
  double seconds = 0;         ///< from the bandwidth if the file gives no time; 0 if it gives neither
  std::string unusable = {};  ///< why the row cannot be predicted; empty = it can

  /// NVLink domains with GPUs of the run: the hosts, or racks filled one after the other if the fabric names racks.
  std::int64_t domains() const;
  /// Source, GPU, nodes, GPUs and fabric: equal for rows measured on one cluster.
  std::string cluster() const;
};
constexpr double kPlateauBytes = 16.0 * (1 << 30);  // where published sweeps end

/// Ranks of the node with the fewest if GPUs do not divide into nodes: the last one after full nodes, or the smallest
/// of an even spread.
std::int64_t fewest_on_node(std::int64_t nodes, std::int64_t gpus, std::int64_t gpus_per_node);

/// Every row of the table, in order. `unusable` says so if a row has fewer than 2 GPUs, more nodes than GPUs, or a
/// number below 0. Throws Error{usage} as read_csv does.
std::vector<CollectiveRow> read_collective_rows(const std::filesystem::path& file);

}  // namespace wt
