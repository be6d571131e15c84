// XIDs, the error numbers of NVIDIA's driver: reading them from a kernel log, and what to do about each.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wt {

struct XidEvent {
  int code = 0;
  std::string pci_bus;  ///< "0000:3b:00"; "" where the source does not say (DCGM names the device instead)
  std::string text;     ///< what the driver said behind the number; "" from DCGM
};

/// "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus." anywhere in a line, with the old
/// spelling "(0000:3b:00)" too; and the two words for a GPU that was gone before the driver could number it, read as
/// XID 79. Other lines, and numbers that are none, are passed over: a kernel log is not ours to refuse.
std::vector<XidEvent> xids_in(const std::string& kernel_log);

enum class Remedy {
  none,
  restart_application,
  find_earlier,      ///< secondary: another event came first
  decode_registers,  ///< NVLink of Blackwell: the number alone does not say
  look_up,           ///< not in the table
  nvlink_workflow,
  drain_peers,  ///< drain jobs that use peer-to-peer traffic with it
  reset_gpu,
  drain_and_reset,
  restart_node,
  replace,
};
std::string to_string(Remedy action);  ///< "reset the GPU; replace it if this comes back"

enum class NodeState { healthy, watch, cordon };  // in order of severity
std::string to_string(NodeState state);

struct XidAdvice {
  Remedy action = Remedy::look_up;
  NodeState state = NodeState::watch;
  std::string meaning;  ///< "fallen off the bus"; "" where the table has none
};

/// NVIDIA's catalog (docs.nvidia.com/deploy/xid-errors) by action. `text` matters to 154, whose text is the verdict;
/// `with` are the other codes of the same GPU, which matter to 48 (double-bit ECC error: drain, too, when rows were
/// remapped). 171 and 172 qualify 48; a 172 that names the SRAM threshold asks for another GPU.
XidAdvice advice(const XidEvent& event, const std::vector<int>& with = {});

}  // namespace wt
