#include "sim/fit/collective_rows_as_points.hpp"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "configs/files/data_sheet.hpp"

namespace wt {

CollectivePoint point_of(const CollectiveRow& row) {
  CollectivePoint p;
  p.cluster = row.cluster();
  p.origin = row.origin;
  p.source = row.source;
  p.evidence = row.evidence;
  if (row.evidence != Evidence::published) p.root = Evidence::published;
  p.bytes = row.bytes;
  p.seconds = row.seconds;
  p.group = {row.gpus, row.domains(), row.fewest_on_node};
  p.python = row.timed_from_python;
  p.unusable = row.unusable;
  const auto say = [&](std::string reason) {
    if (p.unusable.empty()) p.unusable = std::move(reason);
  };
  if (row.kind)
    p.kind = *row.kind;
  else
    say(fmt::format("no model of '{}'", row.collective));
  if (data_sheet(row.gpu)) {
    p.machine = machine_of(row.gpu, row.interconnect);
    if (row.ring_only) p.machine.only = AllReduce::ring;
    if (row.shared_with_other_jobs) p.machine.transport = kSharedTransport;
  } else {
    say(fmt::format("no data sheet of '{}'", row.gpu));
  }
  if (row.seconds <= 0) say("neither time nor bandwidth measured");
  if (row.domains() > 1 && row.interconnect.transport == "TCP") say("NCCL over TCP sockets is not modelled");
  if (row.reduced_in_network) say("reduction in the network's switches is not modelled");
  if (row.domains() > 1 && row.interconnect.node_Bps <= 0)
    say(fmt::format("'{}' does not say how many adapters a node has and how fast they are (8x400G)",
                    row.interconnect.fabric));
  return p;
}

std::vector<CollectivePoint> points_of(const std::vector<CollectiveRow>& rows) {
  std::vector<CollectivePoint> out;
  std::set<std::string> seen;
  for (const CollectiveRow& row : rows)
    if (seen.insert(fmt::format("{}|{}|{}|{}|{}", row.cluster(), row.collective, row.bytes, row.seconds, row.note))
            .second)
      out.push_back(point_of(row));
  return out;
}

}  // namespace wt
