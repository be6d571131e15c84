// The optimizer of a step: AdamW, Muon, or a part of AdamW on the host.
#include <map>

#include "sim/program/compose/muon.hpp"
#include "sim/program/compose/step_builder.hpp"

namespace wt {
namespace {

/// Number of ranks that share the momenta of a group.
double sharing_ranks(const Layout& layout, Group group) {
  return as_double(Mesh(layout).size(shard_axis(group)) * layout.optimizer_shard);
}

}  // namespace

double StepBuilder::muon_states() const {
  double states = 0;
  if (options_.optimizer != OptimizerKind::muon) return states;
  for (const int layer : part_.layers)
    for (const Group group : {Group::dense, Group::expert})
      for (const MuonMatrices& each : muon_matrices(model_, layout_, group, layer))
        states += each.elements() / sharing_ranks(layout_, group);
  return states;
}

void StepBuilder::add_optimizer(const std::string& after) {
  const double states = trained_elements(), muon = muon_states(), host = states * options_.offload_fraction;
  Op optimizer = op("optimizer", Action::optimizer);
  optimizer.waits = {{after}};
  if (muon > 0) {
    Op momentum = op("momentum", Action::orthogonalize);
    momentum.work = {make_item(Kernel::add, Pass::forward, Precision::fp32, fixed(muon), {1})};
    momentum.waits = optimizer.waits;
    program_.nodes.push_back(momentum);
    std::vector<std::string> done;
    for (const Group group : {Group::dense, Group::expert}) add_muon(group, momentum.name, done);
    for (const std::string& each : done) optimizer.waits.push_back({each});
    optimizer.work = {make_item(Kernel::add, Pass::forward, Precision::fp32, fixed(muon), {1})};
  }
  // The number of fp32 parameters whose AdamW has the same memory traffic: master and moments are read and written, the
  // gradient is read.
  const auto passed = [](const Precisions& p, double moments) {
    return 2 * bytes_of(p.master_weights) + 2 * moments * bytes_of(p.moments) + 4;
  };
  const double moments = options_.optimizer == OptimizerKind::lionw ? 1 : 2;
  const double alike = (states - muon - host) * passed(options_.precisions, moments) / passed({}, 2);
  optimizer.work.push_back(make_item(Kernel::adamw, Pass::forward, Precision::fp32, fixed(alike)));
  program_.nodes.push_back(optimizer);
  if (host > 0) add_offload(host, after);
}

void StepBuilder::add_muon(Group group, const std::string& after, std::vector<std::string>& done) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> counts;
  double matrices = 0, elements = 0;
  for (const int layer : part_.layers)
    for (const MuonMatrices& each : muon_matrices(model_, layout_, group, layer)) {
      counts[{each.m, each.n}] += each.count;
      matrices += each.count, elements += each.elements();
    }
  if (matrices == 0) return;
  // If there are more ranks than matrices, the other ranks own none and wait.
  const double owners = options_.orthogonalize_everywhere ? 1 : std::min(matrices, sharing_ranks(layout_, group));
  const double owned_bytes = 2 * elements / owners;
  const std::string name = "muon." + to_string(group);
  std::string gathered = after;
  const auto gather = [&](const std::string& called, Axis axis, double bytes) {
    if (Mesh(layout_).size(axis) == 1) return;
    Op o = op(called, Action::orthogonalize, Direction::forward, group);
    collective(o, OpKind::all_gather, axis, fixed(bytes));
    o.waits = {{gathered}};
    program_.nodes.push_back(o);
    gathered = called;
  };
  gather(name + ".replicas", Axis::optimizer_shard, 2 * elements / as_double(Mesh(layout_).size(shard_axis(group))));
  gather(name + ".gather", shard_axis(group), 2 * elements);
  Op products = op(name, Action::orthogonalize, Direction::forward, group);
  products.waits = {{gathered}};
  for (const auto& [shape, count] : counts)
    for (const WorkItem& each : newton_schulz({shape.first, shape.second, count / owners}))
      products.work.push_back(each);
  products.allocates = {{name + ".owned", fixed(owned_bytes)}};
  products.frees = {{name + ".owned"}};
  program_.nodes.push_back(products);
  done.push_back(name);
}

void StepBuilder::add_offload(double states, const std::string& after) {
  std::string before = after;
  const auto add = [&](const std::string& name, Kernel kernel, double rows) {
    Op o = op(name, Action::offload);
    o.kind = OpKind::copy;
    o.lane = Lane::copy;
    o.work = {make_item(kernel, Pass::forward, Precision::fp32, fixed(rows))};
    o.waits = {{before}};
    program_.nodes.push_back(o);
    before = name;
  };
  add("offload.gradients", Kernel::host_copy, 4 * states);
  add("offload.update", Kernel::host_adamw, states);
  add("offload.weights", Kernel::host_copy, sizes_.word * states);
}

}  // namespace wt
