// DCGM-exporter's metrics in Prometheus' text exposition format, as `curl -s localhost:9400/metrics` prints them. Only
// what health needs is read: utilisation, clock, temperature, throttle reasons, XIDs, uncorrectable errors, remapping.
// No maintained C++ library reads this format (prometheus-cpp writes it); this is its line grammar, no more.
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

/// Lines `name{label="value",...} value [timestamp]`; comments and empty lines are passed over. Throws Error{usage}
/// with origin, line and what was found for anything else.
std::vector<MetricSample> read_exposition(const std::string& text, const std::string& origin);

/// The nodes whose GPUs the samples name, by the label Hostname (`this_node` where there is none), in the order of the
/// text. DCGM's blank values are passed over. Throws as above, where no sample is DCGM's, and for values out of range.
std::vector<NodeObservation> nodes_from_dcgm(const std::string& text, const std::string& origin,
                                             const std::string& this_node);

/// Puts what DCGM says of a node beside what was measured on it: devices meet by id or PCI bus, others are added.
void merge_node(NodeObservation& into, const NodeObservation& seen);

}  // namespace wt
