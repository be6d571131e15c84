// A published run as the files that a user would write: a run file, a cluster, a stack and the routing. Steps are
// judged by what `windtunnel simulate` makes of these, which knows no more of the run than they say.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/run.hpp"
#include "configs/files/stack.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

struct RunFiles {
  RunSpec run;
  ClusterSpec cluster;
  StackSpec stack;
  std::string stack_option;          ///< as `simulate --stack` takes it: a preset, or a file
  std::vector<std::string> routing;  ///< as read_routing() takes it
  std::vector<std::string> unsaid;   ///< what the source says of the run and no file of ours can
};

/// Throws Error{usage} with the reason where a run cannot be written: an unusable row, no data sheet of its GPU, a
/// layout that no run file has.
RunFiles run_files(const RunRow& row, const StackSpec& stack);

/// As many nodes as the run has, each with the adapters that its source names or that are usual for its GPU; nothing is
/// oversubscribed. Throws Error{usage} without a data sheet of the GPU, and where adapters are wanted and not known.
ClusterSpec cluster_of(const RunRow& row);

/// run.yaml, cluster.yaml and command.txt, in a folder that is made. Reading them gives the same again.
void write_run_files(const RunFiles& files, const std::filesystem::path& folder);

}  // namespace wt
