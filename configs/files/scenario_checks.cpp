// Checks whether a scenario can happen in real training of a run.
#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"

namespace wt {
namespace {

struct DrillCheck {
  const Scenario& scenario;
  const RunSpec& run;
  const std::vector<std::string>&op_ids, &collectives;

  std::int64_t nodes() const { return run.layout.world() / scenario.nodes.ranks; }

  template <typename... Args>
  [[noreturn]] void fail(const std::string& where, fmt::format_string<Args...> format, Args&&... args) const {
    throw_usage("{}: {}: {}", scenario.file.string(), where, fmt::format(format, std::forward<Args>(args)...));
  }

  void shape() const {
    const NodeShape& n = scenario.nodes;
    if (run.layout.world() % n.ranks != 0)
      fail("nodes.ranks", "found {}, the {} ranks of {} are no whole number of such nodes", n.ranks, run.layout.world(),
           run.name);
    if (n.spares > nodes())
      fail("nodes.spares", "found {}, the run {} has {} nodes; at most as many stand by", n.spares, run.name, nodes());
    for (const std::int64_t node : scenario.expect.excluded.value_or(std::vector<std::int64_t>()))
      if (node >= nodes() + n.spares)
        fail("expect.excluded", "found {}, there are nodes 0..{}", node, nodes() + n.spares - 1);
  }

  void policy() const {
    const auto has = [&](Recovery r) { return std::ranges::count(scenario.policy.on_loss, r) > 0; };
    if (has(Recovery::without_replica) && run.layout.replicate < 2)
      fail("policy.on_loss", "found 'without_replica', the run {} has one replica; needs two or more", run.name);
    if (has(Recovery::without_replica) && run.layout.optimizer_shard > 1)
      fail("policy.on_loss",
           "found 'without_replica', the replicas of {} share one optimizer state (optimizer_shard {}); needs 1",
           run.name, run.layout.optimizer_shard);
    if (has(Recovery::without_replica) && run.device != DeviceKind::cpu)
      fail(
          "policy.on_loss",
          "found 'without_replica', {} trains on the GPU, where groups of ranks cannot be broken up; needs device: cpu",
          run.name);
    if (has(Recovery::without_replica) && run.layout.shard % scenario.nodes.ranks != 0)
      fail("policy.on_loss",
           "found 'without_replica', a replica of {} has {} ranks, which are no whole number of nodes of {}", run.name,
           run.layout.shard, scenario.nodes.ranks);
    if (scenario.policy.min_replicas > run.layout.replicate)
      fail("policy.min_replicas", "found {}, the run {} has {}", scenario.policy.min_replicas, run.name,
           run.layout.replicate);
  }

  void victims(const std::string& where, const FaultEvent& e) const {
    if (e.who.domain == FaultDomain::leaf || e.who.domain == FaultDomain::rail)
      fail(where, "who: found '{}', which is simulated alone; a drill hits ranks, nodes, racks and replicas",
           to_string(e.who.domain));
    if (e.who.domain == FaultDomain::storage && e.what.kind != FaultKind::damage)
      fail(where, "who: found 'storage' with '{}', which is simulated alone; a drill damages its files",
           to_string(e.what.kind));
    if (!e.who.index) return;
    const std::int64_t all_nodes = nodes() + scenario.nodes.spares;
    const std::int64_t per_rack = scenario.nodes.per_rack > 0 ? scenario.nodes.per_rack : all_nodes;
    const std::int64_t members = e.who.domain == FaultDomain::rank   ? run.layout.world()
                                 : e.who.domain == FaultDomain::node ? all_nodes
                                 : e.who.domain == FaultDomain::rack ? (all_nodes + per_rack - 1) / per_rack
                                                                     : run.layout.replicate;
    if (*e.who.index >= members)
      fail(where, "who.index: found {}, the run {} has {} {}..{}", *e.who.index, run.name,
           to_string(e.who.domain) + (members > 1 ? "s" : ""), 0, members - 1);
  }

  void save(const std::string& where, const FaultEvent& e) const {
    const std::int64_t step = e.when.step;
    if (!run.save || (step != run.steps && (run.save_interval == 0 || step % run.save_interval != 0)))
      fail(where, "when.step: found {}, the run {} writes no checkpoint there; it saves {}", step, run.name,
           !run.save ? "none"
           : run.save_interval == 0
               ? fmt::format("at its end, step {}", run.steps)
               : fmt::format("every {} steps and at its end, step {}", run.save_interval, run.steps));
    const bool manifest = e.when.place == FaultTime::Place::manifest;
    const std::int64_t writers =
        manifest ? 1 : run.layout.shard * run.layout.optimizer_shard;  // each writes a part of the state
    if (manifest && e.what.kind == FaultKind::exception)
      fail(where, "what.kind: found 'exception' at manifest, where the checkpoint is whole and no rank ends by it");
    if (e.who.index && first_rank(e) >= writers)
      fail(where, "who.index: found {} {}, but {}; choose another", to_string(e.who.domain), *e.who.index,
           manifest ? "rank 0 alone writes manifests"
                    : fmt::format("ranks 0..{} write the checkpoints of {}", writers - 1, run.name));
  }

  /// First rank of the event's domain; 0 where it is unknown, because spares may have replaced nodes.
  std::int64_t first_rank(const FaultEvent& e) const {
    const bool moved = e.generation > 0 && scenario.nodes.spares > 0;
    if (moved && (e.who.domain == FaultDomain::node || e.who.domain == FaultDomain::rack)) return 0;
    switch (e.who.domain) {
      case FaultDomain::node:
        return *e.who.index * scenario.nodes.ranks;
      case FaultDomain::rack:
        return *e.who.index * scenario.nodes.per_rack * scenario.nodes.ranks;
      case FaultDomain::replica:
        return *e.who.index * (run.layout.world() / run.layout.replicate);
      default:
        return *e.who.index;
    }
  }

  void op(const std::string& where, const FaultEvent& e) const {
    if (std::ranges::find(op_ids, e.when.op) == op_ids.end())
      fail(where, "when.at: found '{}', the run {} issues no such op{}; ids look like mb0.L1.experts.bwd", e.when.op,
           run.name, did_you_mean(e.when.op, op_ids));
    if (e.when.phase != FaultTime::Phase::before && std::ranges::find(collectives, e.when.op) == collectives.end())
      fail(where, "when.phase: '{}' is computed and not waited for; only a collective is issued first", e.when.op);
  }

  void event(const std::string& where, const FaultEvent& e) const {
    if (e.when.by != FaultTime::By::step)
      fail(where, "when: events by time, rate or trace are simulated alone; a drill needs a step");
    victims(where, e);
    if (e.what.kind == FaultKind::damage && e.what.level != CopyLevel::storage &&
        (e.what.damage == FileDamage::old_manifest || e.what.damage == FileDamage::stale_latest))
      fail(where, "what.how: found '{}' with level '{}', where there is no such file; needs level: storage",
           to_string(e.what.damage), to_string(e.what.level));
    if (e.what.kind == FaultKind::hang && !e.lasts_s &&
        (e.who.domain == FaultDomain::store || e.who.domain == FaultDomain::agent))
      fail(where, "lasts: found forever; nobody ends a hang of the {}, give a time", to_string(e.who.domain));
    if (e.when.step > run.steps)
      fail(where, "when.step: found {}, the run {} has steps 1..{}", e.when.step, run.name, run.steps);
    if (e.when.place == FaultTime::Place::checkpoint || e.when.place == FaultTime::Place::manifest) save(where, e);
    if (e.when.place == FaultTime::Place::op) op(where, e);
    if (e.when.saved && (!run.save || run.save_interval < 1 || e.when.step <= run.save_interval))
      fail(where, "when.saved: the run {} has no save before step {}; remove it", run.name, e.when.step);
    if (e.when.saved && e.generation > 0 && std::ranges::count(scenario.policy.on_loss, Recovery::without_replica) > 0)
      fail(where, "when.saved: found generation {}, after going on without a replica a save may be given up; remove it",
           e.generation);
    if (e.what.kind == FaultKind::corrupt && e.what.layer >= run.model.blocks())
      fail(where, "what.layer: found {}, the model has blocks 0..{}", e.what.layer, run.model.blocks() - 1);
  }
};

}  // namespace

void check_drill(const Scenario& scenario, const RunSpec& run, const std::vector<std::string>& op_ids,
                 const std::vector<std::string>& collectives) {
  const DrillCheck check{scenario, run, op_ids, collectives};
  if (scenario.run.empty())
    check.fail(
        "run",
        "found none; a drill needs the run that faults are injected into, simulated months take the file as it is");
  check.shape();
  check.policy();
  for (std::size_t i = 0; i < scenario.events.size(); ++i)
    check.event(fmt::format("events[{}]", i), scenario.events[i]);
}

}  // namespace wt
