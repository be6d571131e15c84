// Reads DCGM-exporter's metrics in Prometheus' text exposition format, as `curl -s localhost:9400/metrics` prints them:
// utilisation, clock, temperature, throttle reasons, XIDs, uncorrectable errors, row remapping. We know no maintained
// C++ library that reads this format (prometheus-cpp only writes it), so this implements its line grammar.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "bench/health/observation.hpp"

namespace wt {

struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

/// Reads lines `name{label="value",...} value [timestamp]`; skips comments and empty lines. Throws Error{usage} with
/// origin, line and what was found for anything else.
std::vector<MetricSample> read_exposition(const std::string& text, const std::string& origin);

/// The nodes of the samples' GPUs, by the label Hostname (or `this_node` if missing), in the order of the text. Blank
/// values of DCGM are skipped. Throws as above; also where no sample is DCGM's, and for values out of range.
std::vector<NodeObservation> nodes_from_dcgm(const std::string& text, const std::string& origin,
                                             const std::string& this_node);

/// Adds DCGM's values of a node to what was measured on it. Devices are matched by id or PCI bus; others are added.
void merge_node(NodeObservation& into, const NodeObservation& seen);

}  // namespace wt
