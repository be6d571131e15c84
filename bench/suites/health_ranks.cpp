#include "bench/suites/health_ranks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "bench/health/collect.hpp"
#include "bench/health/fabric.hpp"
#include "bench/suites/collective_case.hpp"
#include "bench/suites/device_stress.hpp"
#include "bench/suites/rank_suite.hpp"
#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/machine/fingerprint.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using nlohmann::json;

/// Payloads limited by latency, by both, and by bandwidth.
constexpr std::int64_t kPayloads_bytes[] = {64 << 10, 1 << 20, 16 << 20};
/// Longest wait for another rank: meanwhile the first rank of each node tests its storage, and NCCL connects.
constexpr double kTimeout_s = 300;

const Mesh kTwo(2, 1, 1);  // a pair of ranks: its groups are world and replicate

NodeObservation named(const std::string& name) {
  NodeObservation out;
  out.name = name;
  return out;
}

/// The communicators of a pair that includes this rank.
struct OwnPair {
  FabricPair pair;
  std::size_t round = 0;
  std::unique_ptr<Communicators> communicators;
};

class RankCheck {
 public:
  RankCheck(const HealthRankOptions& options, const RankEnvironment& environment, RankWatch& watch)
      : options_(options), environment_(environment), watch_(watch) {
    std::optional<at::Device> gpu;
    if (!options.rank_is_node && visible_devices() > 0)
      device_works_ = noted([&] { gpu = open_device("cuda", environment.local_rank); });
    clock_ = make_step_clock(gpu.value_or(at::kCPU));
    at::set_num_threads(1);
    world_ = make_gloo_communicators(environment, Mesh(environment.world, 1, 1), watch);
  }

  void run(const std::filesystem::path& output) {
    meet();
    FleetObservation own;
    own.nodes = {named(own_node().name)};
    NodeObservation& node = own.nodes.front();
    const bool first_of_node = !options_.rank_is_node && own_node().ranks.front() == environment_.rank;
    const std::vector<NicObservation> nics = read_nics("/sys");
    const double begin_s = Clocks::now().wall_s;
    say("computing and copying on every core, writing and reading in " + options_.storage.string());
    if (first_of_node) {
      noted([&] {
        node = collect_node({.quick = options_.quick, .storage = options_.storage}, [](const std::string&) {});
      });
      for (const std::string& failure : node.failures) note(failure);
    }
    node.name = own_node().name;  // may differ from the host's name
    world_->barrier();
    if (!clock_->device().is_cpu()) {
      say("computing and copying on every GPU");
      device_works_ = noted([&] { node.devices.push_back(stress_device(*clock_, repetitions())); });
    }
    measure_links(own);
    if (first_of_node) {
      node.nics = increases_between(nics, read_nics("/sys"), Clocks::now().wall_s - begin_s);
      KernelLog log = read_kernel_log(kernel_log());  // last, to include XIDs caused by this check
      node.xids = std::move(log.events), node.not_understood = std::move(log.not_understood);
    }
    node.failures = failures_;
    write_fleet(std::move(own), output);
    world_->barrier();  // rank 0 may own the store, so that it must not end first
  }

 private:
  /// Runs a measurement. A failure is recorded against the node, and the check continues. Returns whether it succeeded.
  template <typename Work>
  bool noted(Work work) {
    try {
      work();
      return true;
    } catch (const c10::Error& e) {  // not what(), which contains a backtrace
      note(e.what_without_backtrace());
    } catch (const std::exception& e) {
      note(e.what());
    }
    return false;
  }
  /// Keeps the first line only: CUDA's messages continue with general advice.
  void note(const std::string& failure) {
    failures_.push_back(fmt::format("rank {}: {}", environment_.rank, failure.substr(0, failure.find('\n'))));
  }

  int repetitions() const { return stress_repetitions(options_.quick); }

  void say(const std::string& what) const {
    watch_.at(0, what);
    if (environment_.rank == 0 && isatty(STDERR_FILENO)) fmt::print(stderr, "{}\n", what);
  }

  const FabricNode& own_node() const {
    return *std::ranges::find_if(
        nodes_, [&](const FabricNode& n) { return std::ranges::count(n.ranks, environment_.rank) > 0; });
  }

  std::string node_name() const {
    const char* chosen = std::getenv("WINDTUNNEL_NODE");
    const std::string name = chosen && *chosen ? chosen : host_facts()["host"];
    return options_.rank_is_node ? fmt::format("{}/rank-{}", name, environment_.rank) : name;
  }

  /// Publishes `own` under the key. Rank 0 returns the values of all ranks, by rank.
  std::vector<json> gather(const std::string& key, const json& own) {
    SharedStore& store = world_->store();
    const auto key_of = [&](std::int64_t rank) { return fmt::format("health/{}/{}", key, rank); };
    store.set(key_of(environment_.rank), own.dump());
    std::vector<json> out;
    for (std::int64_t rank = 0; environment_.rank == 0 && rank < environment_.world; ++rank)
      out.push_back(json::parse(store.get(key_of(rank))));
    return out;
  }

  /// Finds the ranks of each node. Rank 0 collects and distributes, because all-to-all queries would overload the
  /// store.
  void meet() {
    const auto all = gather("node", {{"node", node_name()}, {"cuda", !clock_->device().is_cpu()}});
    std::vector<std::string> nodes;
    std::vector<bool> gpus;
    for (const json& rank : all) nodes.push_back(rank.at("node")), gpus.push_back(rank.at("cuda"));
    const json told = tell("nodes", {{"nodes", nodes}, {"without_gpu", without_gpu(gpus)}});
    nodes_ = nodes_of(told.at("nodes").get<std::vector<std::string>>());
    const auto without = told.at("without_gpu").get<std::vector<std::int64_t>>();
    if (device_works_ && std::ranges::count(without, environment_.rank) > 0) {
      note("found no GPU, and other ranks have one; look at nvidia-smi there");
      device_works_ = false;
    }
  }

  /// Broadcasts rank 0's value to every rank.
  json tell(const std::string& key, const json& of_rank_0) {
    SharedStore& store = world_->store();
    if (environment_.rank == 0) store.set("health/told/" + key, of_rank_0.dump());
    return json::parse(store.get("health/told/" + key));
  }

  /// Nodes on which all devices work.
  std::vector<FabricNode> able_nodes() {
    const auto all = gather("able", device_works_);
    json unable = json::array();
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (!all[rank].get<bool>()) unable.push_back(rank);
    return nodes_without(nodes_, tell("unable", unable).get<std::vector<std::int64_t>>());
  }

  /// Creates all communicators of this rank before any is used: see GlooCommunicators.
  std::vector<OwnPair> connect(const std::vector<std::vector<FabricPair>>& rounds) {
    std::vector<OwnPair> out;
    for (std::size_t round = 0; round < rounds.size(); ++round)
      for (const FabricPair& pair : rounds[round])
        if (const std::vector<std::int64_t> ranks(pair.ranks.begin(), pair.ranks.end());
            std::ranges::count(ranks, environment_.rank) > 0)
          out.push_back({pair, round, make_communicators(environment_, kTwo, watch_, *clock_, kOrderCheck, ranks)});
    return out;
  }

  LinkObservation all_reduces(const OwnPair& own, std::int64_t bytes) {
    const RankSuiteOptions none;
    const RankSuite suite{*own.communicators, kTwo, *clock_, none};
    CollectiveCase c(*own.communicators, kTwo, Axis::replicate, CollectiveKind::all_reduce, bytes, 0, clock_->device());
    LinkObservation out{own.pair.a, own.pair.b, own.pair.rail, bytes, {}, 0};
    for (int i = -1; i < repetitions(); ++i) {  // -1 creates connections and buffers
      c.prepare();
      RankSample sample = take_sample(suite, c, 1);
      const bool wrong = !c.wrong().empty();
      if (!clock_->device().is_cpu()) sample = take_sample(suite, c, kDeviceCalls);
      out.wrong_results += wrong ? 1 : 0;
      if (i >= 0) out.seconds.push_back(sample.wall_s);
    }
    return out;
  }

  void measure_links(FleetObservation& own) {
    const auto rounds = fabric_rounds(able_nodes());
    const std::vector<OwnPair> pairs = connect(rounds);
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      world_->barrier();
      say(fmt::format("all-reduces between neighbouring nodes, round {} of {}: {} at once", round + 1, rounds.size(),
                      rounds[round].size()));
      for (const OwnPair& pair : pairs)
        if (pair.round == round)
          for (std::int64_t bytes : kPayloads_bytes) own.links.push_back(all_reduces(pair, bytes));
    }
    world_->barrier();
  }

  /// Written by rank 0, with nodes in the order of the ring.
  void write_fleet(FleetObservation own, const std::filesystem::path& output) {
    std::set<std::string> ends;
    for (const LinkObservation& link : own.links) ends.insert({link.a, link.b});
    ends.erase(own.nodes.front().name);
    for (const std::string& partner : ends) own.nodes.push_back(named(partner));
    std::vector<FleetObservation> by_rank(1);
    for (const FabricNode& node : nodes_) by_rank.front().nodes.push_back(named(node.name));
    for (const json& seen : gather("seen", to_json(own))) by_rank.push_back(fleet_from_json(seen, "what a rank saw"));
    if (environment_.rank == 0) write_file_atomically(output, to_json(merge_ranks(by_rank)).dump(1) + "\n");
  }

  const HealthRankOptions& options_;
  const RankEnvironment& environment_;
  RankWatch& watch_;
  std::vector<std::string> failures_;  ///< of this rank's measurements
  bool device_works_ = true;
  std::unique_ptr<StepClock> clock_;
  std::unique_ptr<Communicators> world_;
  std::vector<FabricNode> nodes_;
};

}  // namespace

void check_as_rank(const HealthRankOptions& options, const std::filesystem::path& output) {
  const RankEnvironment environment = RankEnvironment::read();
  run_watched(environment, kTimeout_s, [&](RankWatch& watch) { RankCheck(options, environment, watch).run(output); });
}

}  // namespace wt
