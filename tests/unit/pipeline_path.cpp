// The critical path through a pipeline: the closed forms of its schedules where layers alone take time, and what the
// simulator finds where nothing is shared. The search's tests hold it against random pipelines.
#include <catch2/catch.hpp>
#include <set>

#include "sim/bounds/pipeline_path.hpp"
#include "tests/fixtures/pipelines.hpp"

using namespace wt;
using namespace wt::test;

namespace {

double path_of(const ModelSpec& model, const Layout& layout, std::int64_t microbatches, const OpCost& cost,
               const ClusterSpec& cluster) {
  LayerSeconds layers;
  layers.forward.resize(static_cast<std::size_t>(model.blocks()));
  layers.backward = layers.forward;
  return pipeline_path_s(programs(model, layout, microbatches).programs, layout, cluster, cost, {}, layers, 0);
}

double in_layers_at_least(std::int64_t layers, const Layout& layout, std::int64_t microbatches) {
  return path_of(dense_model(layers), layout, microbatches, LayerCost{}, free_network(layout.world()));
}

}  // namespace

TEST_CASE("the path through a pipeline has its schedule's closed form") {
  for (const std::int64_t p : {2, 3, 4, 8})
    for (const std::int64_t m : {2 * p, 4 * p}) {
      const double P = static_cast<double>(p), M = static_cast<double>(m);
      INFO(p << " stages, " << m << " microbatches");
      for (const std::int64_t v : {1, 2, 3})
        CHECK(in_layers_at_least(p * v, stages(p, v), m) ==
              Approx(3 * (static_cast<double>(v) * M + P - 1)).epsilon(1e-9));
      CHECK(in_layers_at_least(p, stages(p, 1, Schedule::zero_bubble), m) == Approx(3 * M + P - 1).epsilon(1e-9));
      const Layout v_shape = stages(p, 2, Schedule::dualpipe_v);
      CHECK(in_layers_at_least(2 * p, v_shape, m) == Approx(in_layers(2 * p, v_shape, m)).epsilon(1e-9));
    }
}

TEST_CASE("messages, weights and gradients are in the path as they are simulated where they share nothing") {
  FakeCost cost;
  for (const bool ring : {false, true})
    for (const std::int64_t context : {1, 2}) {
      Layout layout = stages(4, 2);
      layout.shard = 2, layout.context = context, layout.context_ring = ring && context > 1;
      const ModelSpec model = dense_model(8);
      const ClusterSpec cluster = small_cluster(2);
      const double simulated = step_of(model, layout, 8, cost, cluster);
      const double path = path_of(model, layout, 8, cost, cluster);
      CHECK(path <= simulated * (1 + 1e-9));
      CHECK(path > 0.97 * simulated);
    }
}

TEST_CASE("a collective that something waits for slows what is computed meanwhile") {
  FakeCost cost;
  Layout layout = stages(2);
  layout.shard = 2, layout.context = 2, layout.context_ring = true;
  const ModelSpec model = dense_model(4);
  const ClusterSpec cluster = small_cluster(1);
  const double still = path_of(model, layout, 4, cost, cluster);
  cost.slowdown = 0.3;
  const double slowed = path_of(model, layout, 4, cost, cluster);
  CHECK(slowed > still);
  CHECK(slowed <= step_of(model, layout, 4, cost, cluster) * (1 + 1e-9));
}

TEST_CASE("the microbatches of a stage share their passes, and a copy that is changed is its own") {
  std::set<const void*> bodies;
  std::size_t loops = 0;
  ProgramSet set = programs(dense_model(8), stages(4), 32);
  for (const Node& node : set.programs[1].nodes)
    if (const Loop* loop = std::get_if<Loop>(&node); loop && loop->index == Loop::Index::microbatch)
      ++loops, bodies.insert(loop->body.shared());
  CHECK(loops == 64);
  CHECK(bodies.size() == 5);  // the first ones, which send behind none, those between, and the last backward one
  Body a{Op{}}, b = a;
  CHECK(a.shared() == b.shared());
  b.own().emplace_back(Op{});
  CHECK(a.end() - a.begin() == 1);
  CHECK(b.end() - b.begin() == 2);
}
