// XIDs and SXids, the error numbers of NVIDIA's driver for GPUs and for NVSwitches: parsing them from a kernel log, and
// advice for each.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace wt {

struct XidEvent {
  int code = 0;
  std::string pci_bus;    ///< "0000:3b:00"; "" where the source lacks it (DCGM names the device instead)
  std::string text;       ///< the driver's text after the number; "" from DCGM
  bool nvswitch = false;  ///< an SXid: of the NVSwitch at that bus id, not of a GPU
};

struct KernelLog {
  std::vector<XidEvent> events;
  /// Lines of NVIDIA's drivers that are neither an event nor known to be harmless, with how often each came. Digits are
  /// '#', so that lines which differ in numbers alone count as one.
  std::map<std::string, std::int64_t> not_understood;
};

/// Finds "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus." anywhere in a line, also in
/// the old spelling "(0000:3b:00)". Two messages about a GPU that vanished before the driver could number it count as
/// XID 79. "nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 20034, Fatal, Link 30 LTSSM Fault Up" is an SXid; the lines that
/// the driver prints behind it (Severity, Data) belong to it. Other lines are no events, because a kernel log has no
/// fixed format.
KernelLog read_kernel_log(const std::string& text);

enum class Remedy {
  none,
  restart_application,
  find_earlier,      ///< secondary: find the event before it
  decode_registers,  ///< NVLink of Blackwell: the number alone is ambiguous
  look_up,           ///< not in the table
  nvlink_workflow,
  drain_peers,  ///< drain jobs that use peer-to-peer traffic with it
  reset_gpu,
  drain_and_reset,
  restart_node,
  replace,
  reset_switches,
  look_up_switch,
};
std::string to_string(Remedy action);  ///< "reset the GPU; replace it if this comes back"

enum class NodeState { healthy, watch, cordon };  // in order of severity
std::string to_string(NodeState state);

struct XidAdvice {
  Remedy action = Remedy::look_up;
  NodeState state = NodeState::watch;
  std::string meaning;  ///< "fallen off the bus"; "" for an unknown code
};

/// NVIDIA's catalog (docs.nvidia.com/deploy/xid-errors) by action. `text` matters for 154, whose text names the action,
/// and for 144 to 150 (NVLink of Blackwell), whose text says whether the error is fatal: then the GPU needs a reset. A
/// fatal SXid ends all jobs on the node, and GPUs and NVSwitches need a reset (Fabric Manager User Guide, appendix D).
/// `with`, the other codes of the same GPU, matter for 48 (double-bit ECC error: also drain when rows were remapped).
/// 171 and 172 qualify 48; a 172 that names the SRAM threshold means that the GPU must be replaced.
XidAdvice advice(const XidEvent& event, const std::vector<int>& with = {});

}  // namespace wt
