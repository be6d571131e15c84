// Work items in a file: `windtunnel bench --for` lists the missing ones for windtunnel-train, which has the kernels.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/program/work_item.hpp"

namespace wt {

struct WorkList {
  std::string study;
  std::string gpu;              ///< of the study's cluster, "H100-SXM-80GB"; "" = the CPU of this machine
  std::vector<WorkItem> items;  ///< rows.per_row = 0
};

nlohmann::json to_json(const WorkList& list);
/// Strict. Throws Error{usage} with file, key, found and allowed.
WorkList read_work_list(const std::filesystem::path& file);

/// Whether a device is the GPU that a cluster names: the name's first word ("H100" of "H100-SXM-80GB") begins a word of
/// the device's name, so that a GH200 is no H200.
bool is_gpu(const std::string& device, const std::string& gpu);

}  // namespace wt
