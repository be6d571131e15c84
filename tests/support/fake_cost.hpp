// Made-up prices with simple closed forms, for tests of the simulator and the estimator.
#pragma once
#include <algorithm>
#include <memory>

#include "configs/spec/cluster.hpp"
#include "sim/cost/op_cost.hpp"
#include "sim/program/build/build.hpp"

namespace wt::test {

struct FakeCost : OpCost {
  double flops = 4e14, Bps = 2e12;  ///< of a rank
  double latency_s = 2e-5;
  double efficiency = 1;
  double cpu_per_byte = 0;
  AllReduce algorithm = AllReduce::ring;
  bool host_computes = false;
  double slowdown = 0;                               ///< of computation, by communication
  bool separate = true;                              ///< communicators for gathers and reductions
  double crowded = 1;                                ///< computation of ranks that share cores
  double varies = 0;                                 ///< an op, from call to call
  std::shared_ptr<const FakeCost> others = nullptr;  ///< on nodes of every other kind; none: these

  Price item(const WorkItem& item, const BoundRows& rows) const override {
    double s = item.flops(rows.sum) / flops + item.bytes(rows.sum) / Bps;
    if (rows.spread_over(item) &&
        item.rows.at(rows.sum) > 0)  // as long as equal groups, and what the fullest has beyond them
      s *= 1 + 0.1 * (*std::ranges::max_element(rows.by_expert) * static_cast<double>(item.dims[2]) /
                          item.rows.at(rows.sum) -
                      1);
    return {s, 0.9 * s, 1.1 * s, Lookup::roofline, Evidence::assumed};
  }
  using OpCost::segment;
  Price segment(const Op& op, const BoundRows& rows, Clock clock) const override {
    Price sum{1e-6, 0.9e-6, 1.1e-6, Lookup::roofline, Evidence::measured};
    for (const WorkItem& w : op.work) {
      Price p = item(w, rows);
      sum += p *= clock.factor(w, rows.sum);
    }
    return sum;
  }
  CollectivePrice collective(OpKind, double bytes, std::int64_t, std::int64_t) const override {
    return {latency_s, cpu_per_byte * bytes, efficiency, 0.2, Evidence::published, {}, algorithm};
  }
  const OpCost& on(std::size_t kind) const override { return kind == 0 || !others ? *this : *others; }
  bool synchronous_host() const override { return host_computes; }
  bool separate_reduce_group() const override { return separate; }
  double variation() const override { return varies; }
  double crowding(std::int64_t ranks) const override { return ranks > 1 ? crowded : 1; }
  CommunicationSlowdown communication_slowdown() const override {
    return {slowdown, 0.5 * slowdown, 1.5 * slowdown, Evidence::assumed, "made up"};
  }
};

inline ModelSpec small_model(std::int64_t layers = 3) {
  ModelSpec m;
  m.name = "small";
  m.layers = layers, m.d_model = 512, m.heads = 8, m.kv_heads = 2, m.head_dim = 64, m.ffn = 1024, m.experts = 16,
  m.top_k = 4;
  m.vocab = 4096;
  return m;
}

inline ClusterSpec small_cluster(std::int64_t nodes, double oversubscription = 1) {
  ClusterSpec c;
  c.name = "small";
  c.nodes = nodes, c.gpus_per_node = 4;
  c.nvswitch_Bps = 400e9, c.nic_count = 4, c.nic_Bps = 50e9, c.nodes_per_leaf = 2,
  c.oversubscription = oversubscription;
  return c;
}

inline ClusterSpec shared_host(std::int64_t ranks, double cores) {
  ClusterSpec c;
  c.name = "host";
  c.kind = ClusterSpec::Kind::shared_cores;
  c.gpus_per_node = ranks, c.cores = cores;
  return c;
}

}  // namespace wt::test
