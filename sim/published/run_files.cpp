#include "sim/published/run_files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/files/data_sheet.hpp"
#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/fit/expert_loads.hpp"
#include "sim/measurements/run_layout.hpp"

namespace wt {
namespace {

constexpr std::int64_t kMostGpus = 16384;

}  // namespace

ClusterSpec cluster_of(const RunRow& row) {
  const auto sheet = data_sheet(row.gpu);
  if (!sheet) throw_usage("no data sheet of '{}'", row.gpu);
  ClusterSpec c;
  c.name = row.name;
  c.gpu_name = row.gpu;
  c.gpus_per_node = std::min(row.gpus, row.interconnect.nvlink_domain);
  c.nodes = (row.gpus + c.gpus_per_node - 1) / c.gpus_per_node;
  if (c.gpus_per_node > row.gpus_per_node && row.gpus % c.nodes == 0)
    c.gpus_per_node = row.gpus / c.nodes;  // racks, filled evenly
  c.nvswitch_Bps = sheet->link_Bps;
  c.nodes_per_leaf = c.nodes;
  c.nic_count = c.gpus_per_node;
  c.nic_Bps = 1;  // of one node nothing travels over it
  const Provenance published{Evidence::published, row.source.empty() ? row.name : row.source};
  for (const char* section : {"gpu", "nvswitch", "nic", "leaf"}) c.sources[section] = {published};
  if (c.nodes == 1) return c;
  c.nic_Bps = machine_of(row.gpu, row.interconnect).nic_Bps;
  c.transport = row.interconnect.transport;
  c.fabric = row.interconnect.fabric;
  if (!CollectiveEstimator::published().knows_fabric(c.fabric)) c.fabric.clear();
  return c;
}

RunFiles run_files(const RunRow& row, const StackSpec& stack) {
  if (!row.unusable.empty()) throw_usage("{}", row.unusable);
  if (row.gpus > kMostGpus) throw_usage("more than {} GPUs: not simulated", kMostGpus);
  RunFiles out;
  out.stack = stack;
  out.stack_option = stack.frameworks.empty() ? kTypicalStack : stack.name;
  out.cluster = cluster_of(row);
  out.run = run_spec_of(row);
  if (row.experts_beside_shards && row.ep > 1)
    out.unsaid.emplace_back("copies of dense weights on the ranks of other experts");
  check_run(out.run, "run file");
  const ExpertLoads loads = expert_loads(row);
  out.routing = {loads.routing.empty() ? "balanced" : loads.routing};
  return out;
}

void write_run_files(const RunFiles& files, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "run.yaml", run_to_yaml(files.run));
  write_file_atomically(folder / "cluster.yaml", cluster_to_yaml(files.cluster));
  std::string command =
      fmt::format("windtunnel simulate run.yaml --cluster cluster.yaml --stack {}", files.stack_option);
  for (const std::string& name : files.routing) command += " --routing " + name;
  for (const std::string& what : files.unsaid) command += "\n# not said: " + what;
  write_file_atomically(folder / "command.txt", command + "\n");
}

}  // namespace wt
