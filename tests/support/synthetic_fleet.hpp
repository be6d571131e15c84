// A healthy fleet whose measurements vary as stated, and the means to break it. The same for the same seed.
#pragma once
#include <fmt/core.h>

#include <cmath>
#include <random>

#include "bench/health/observation.hpp"

namespace wt::test {

struct FleetShape {
  int nodes = 64, devices = 8, rails = 0;  ///< 0 rails: no all-reduces
  double sample_noise = 0.01;              ///< of one repetition
  double device_spread = 0.005;            ///< of one device from another, lasting
  int samples = 7;
};

class SyntheticFleet {
 public:
  SyntheticFleet(const FleetShape& shape, std::uint64_t seed) : shape_(shape), random_(seed) {
    for (int n = 0; n < shape.nodes; ++n) {
      NodeObservation node;
      node.name = name(n);
      for (int d = 0; d < shape.devices; ++d) {
        DeviceObservation device;
        device.id = fmt::format("GPU-{}-{}", n, d);
        device.model = "H100";
        device.pci_bus = fmt::format("0000:{:02x}:00", 16 * d + 3);
        device.stress_s = samples(0.040, shape.sample_noise, shape.device_spread);
        device.memory_Bps = samples(2.5e12, shape.sample_noise, shape.device_spread);
        node.devices.push_back(std::move(device));
      }
      node.storage.write_Bps = samples(5e9, 0.1, 0.05);
      fleet.nodes.push_back(std::move(node));
    }
    for (int r = 0; r < shape.rails; ++r)
      for (int n = 0; n < shape.nodes; ++n)
        for (std::int64_t bytes : {std::int64_t{1} << 16, std::int64_t{1} << 24, std::int64_t{1} << 28})
          fleet.links.push_back({name(n), name((n + 1) % shape.nodes), std::to_string(r), bytes,
                                 samples(20e-6 + static_cast<double>(bytes) / 40e9, 0.02, 0.01)});
  }

  static std::string name(int node) { return fmt::format("node-{:03}", node); }
  DeviceObservation& device(int node, int index) {
    return fleet.nodes[static_cast<std::size_t>(node)].devices[static_cast<std::size_t>(index)];
  }

  void slow_device(int node, int index, double factor) {
    for (double& s : device(node, index).stress_s) s *= factor;
  }
  void slow_node(int node, double factor) {
    for (int d = 0; d < shape_.devices; ++d) slow_device(node, d, factor);
  }
  /// The port of a node on a rail carries half: every pair of it takes twice the time of its bytes.
  void half_rail(int node, int rail) {
    for (LinkObservation& link : fleet.links)
      if (link.rail == std::to_string(rail) && (link.a == name(node) || link.b == name(node)))
        for (double& s : link.seconds) s += static_cast<double>(link.bytes) / 40e9;
  }

  FleetObservation fleet;

 private:
  std::vector<double> samples(double centre, double noise, double spread) {
    std::normal_distribution<double> normal;
    const double own = centre * std::exp(spread * normal(random_));
    std::vector<double> out;
    for (int i = 0; i < shape_.samples; ++i) out.push_back(own * std::exp(noise * normal(random_)));
    return out;
  }

  FleetShape shape_;
  std::mt19937_64 random_;
};

}  // namespace wt::test
