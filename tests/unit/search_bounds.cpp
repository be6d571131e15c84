// Bounds of the search against brute force: no layout's simulated step is shorter, whatever its axes, and none needs
// less memory.
#include <catch2/catch.hpp>

#include "planner/placement/expert_slots.hpp"
#include "planner/search/group_bounds.hpp"
#include "sim/replay/simulated_step.hpp"
#include "tests/fixtures/check_certificate.hpp"
#include "tests/fixtures/random_layout.hpp"
#include "tests/fixtures/small_search.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// The highest of all ranks' programs.
double of_all_stages(const SearchProblem& p, const Layout& layout) {
  const Microbatches all = sequences_of(p, layout);
  const Microbatches some = all.at_most(microbatches_to_peak(layout) + (all.even() ? 0 : 1));
  ProgramOptions options = program_options(p, some);
  options.step_microbatches = all.count;
  const double imbalance = p99_imbalance(p, layout);
  return live_memory(build_program_set(p.model, with_stack_chunks(p, layout), options),
                     [&](int microbatch, int) {
                       return static_cast<double>(some.of(microbatch) * p.seq / layout.context * p.model.top_k) /
                              static_cast<double>(layout.whole_experts ? layout.tensor : 1) * imbalance;
                     })
      .peak();
}

/// Every bound of the layout's group and of the layout, each no sharper than the next.
void check_bounds(const SearchProblem& p) {
  GroupBounds bounds(p);
  const LayoutSpace space(p);
  for (const LayoutGroup& group : space.groups()) {
    const double step_s = bounds.step_s(group), scheduled_s = bounds.scheduled_s(group);
    const double least_bytes = bounds.memory_bytes(group);
    const std::vector<Layout> members = space.members(group);
    CHECK(static_cast<std::int64_t>(members.size()) == group.members);
    for (const Layout& layout : members) {
      INFO(key_of(layout));
      CHECK_NOTHROW(layout.check(p.model, "member"));
      const double simulated_s = simulate_layout(p, layout).step_s, bytes = step_memory(p, layout).needed();
      CHECK(step_s <= simulated_s * (1 + 1e-9));
      CHECK(scheduled_s <= simulated_s * (1 + 1e-9));
      CHECK(bounds.scheduled_s(layout) <= simulated_s * (1 + 1e-9));
      CHECK(bounds.lane_s(layout) <= simulated_s * (1 + 1e-9));
      CHECK(bounds.path_s(layout) <= simulated_s * (1 + 1e-9));
      CHECK(least_bytes <= bytes);
      CHECK(bytes == Approx(of_all_stages(p, layout)));
    }
  }
}

/// Whose hosts launch slowly: ops of a layer take their sum, and a part of what launches are beyond it.
struct LaunchedCost : FakeCost {
  double launch_each_s = 0;
  double launch_s(const Op& op, const Layout&) const override {
    return op.kind == OpKind::segment ? launch_each_s * static_cast<double>(op.work.size()) : 0;
  }
  double issued_s(double gpu_s, double launched_s) const override {
    return gpu_s > 0 ? gpu_s * std::pow(1 + std::pow(launched_s / gpu_s, 3), 1.0 / 3) : launched_s;
  }
};

}  // namespace

TEST_CASE("each axis is searched: the best and every bound are those of brute force") {
  const auto searched = [](const char* axis, auto allow) {
    INFO(axis);
    Small s;
    s.problem.gpus = 8;
    s.problem.cluster = small_cluster(2);
    s.problem.global_batch = 32;
    s.problem.space.recompute = {Recompute::none};
    s.problem.space.expert_degrees = {1, 4};
    s.problem.space.microbatches = {1, 2};
    s.problem.space.simulations = 10000;
    const std::size_t without = all_layouts(s.problem).size();
    allow(s.problem);
    CHECK(all_layouts(s.problem).size() > without);
    check_bounds(s.problem);
    const SearchResult r = search_layouts(s.problem);
    CHECK(r.certificate.incumbent == brute_force(s.problem));
    CHECK(r.certificate.proved);
    CHECK(check_certificate(r).empty());
    CHECK(r.certificate.enumerated == static_cast<std::int64_t>(all_layouts(s.problem).size()));
  };
  searched("tensor", [](SearchProblem& p) { p.stack.layouts.tensor = true; });
  searched("pipeline", [](SearchProblem& p) { p.stack.layouts.schedules = {Schedule::one_f_one_b}; });
  searched("interleaved", [](SearchProblem& p) {
    p.stack.layouts.schedules = {Schedule::one_f_one_b};
    p.stack.layouts.interleaved = true;
  });
  searched("zero bubble", [](SearchProblem& p) { p.stack.layouts.schedules = {Schedule::zero_bubble}; });
  searched("dualpipe_v", [](SearchProblem& p) { p.stack.layouts.schedules = {Schedule::dualpipe_v}; });
  searched("overlap", [](SearchProblem& p) {
    p.stack.layouts.schedules = {Schedule::one_f_one_b, Schedule::dualpipe_v};
    p.stack.layouts.interleaved = p.stack.exchange_overlap = true;
  });
  searched("context", [](SearchProblem& p) {
    p.stack.layouts.context_ring = {false, true};
    p.space.context_degrees = {1, 2, 4};
  });
  searched("optimizer shard", [](SearchProblem& p) { p.stack.layouts.optimizer_shard = true; });
  searched("reshard", [](SearchProblem& p) { p.stack.layouts.reshard_after_forward = {true, false}; });
  searched("reduction", [](SearchProblem& p) { p.stack.layouts.reduce_every_microbatch = {true, false}; });
  searched("dispatcher", [](SearchProblem& p) {
    p.stack.dispatchers = {Dispatcher::alltoall, Dispatcher::deepep, Dispatcher::hybridep};
  });
  searched("recompute", [](SearchProblem& p) {
    p.stack.layouts.recompute_also = {Module::core, Module::moe_act};
    p.space.recompute = {Recompute::none, recompute_from_string("core+moe_act"), Recompute::block};
  });
  searched("recompute of some blocks, which needs no gradient to begin", [](SearchProblem& p) {
    p.stack.layouts.schedules = {Schedule::one_f_one_b};
    p.stack.layouts.recompute_anywhere = true;
    p.space.recompute = {recompute_from_string("block:first-1"), recompute_from_string("block:first-2")};
  });
  searched("the first blocks of each chunk", [](SearchProblem& p) {
    p.stack.layouts.recompute = {Recompute::none, Recompute::block};
    p.stack.layouts.recompute_blocks = {Recompute::Blocks::Which::chunk};
    p.stack.layouts.schedules = {Schedule::one_f_one_b, Schedule::dualpipe_v};
    p.stack.layouts.interleaved = true;
    p.space.recompute.clear();
    p.space.microbatches = {1};
  });
  searched("every n-th block, the first of the model", [](SearchProblem& p) {
    p.stack.layouts.recompute = {Recompute::none, recompute_from_string("core"), Recompute::block};
    p.stack.layouts.recompute_blocks = {Recompute::Blocks::Which::every, Recompute::Blocks::Which::first};
    p.space.recompute.clear();
  });
  searched("copies of experts", [](SearchProblem& p) {
    p.stack.layouts.placement = PlacementSupport::copies;
    p.stack.layouts.schedules = {Schedule::one_f_one_b};
    for (const std::int64_t further : {1, 2})
      p.copies[4].push_back(fill_slots(p.scenarios, p.model.blocks(), 4, {.further = further}));
  });
  searched("CUDA graphs", [](SearchProblem& p) {
    p.stack.cuda_graphs = true;
    p.space.cuda_graphs = {CudaGraphs::none, CudaGraphs::full};
  });
  searched("compression", [](SearchProblem& p) {
    p.space.recompute.clear();
    p.stack.layouts.recompute = {Recompute::block};
    p.stack.layouts.compression = {Compression::int8};
  });
  searched("smaller last microbatch", [](SearchProblem& p) {
    p.global_batch = 40;
    p.space.microbatches.clear();
    p.stack.layouts.smaller_last_microbatch = true;
  });
  searched("everything", [](SearchProblem& p) {
    p.stack.layouts = StackLayouts::all();
    p.stack.dispatchers = {Dispatcher::alltoall, Dispatcher::hybridep};
    p.stack.exchange_overlap = true;
    p.space.microbatches = {2};
    p.space.expert_degrees = {4};
  });
}

TEST_CASE("so it is where adapters are trained beside frozen weights") {
  Small s;
  LaunchedCost cost;
  cost.slowdown = 0.16;
  s.problem.cost = cost;
  s.problem.lora = adapter_shape(s.model, {.rank = 8, .alpha = 16, .target_modules = {"q_proj", "o_proj"}});
  StackLayouts& layouts = s.problem.stack.layouts;
  layouts.reshard_after_forward = layouts.reduce_every_microbatch = {true, false};
  layouts = layouts.with_adapters();
  s.problem.space.shard_sizes = {4, 16}, s.problem.space.microbatches = {1, 2};
  for (const double launch_s : {0.0, 1e-5}) {
    cost.launch_each_s = launch_s;
    check_bounds(s.problem);
  }
  for (const Layout& layout : all_layouts(s.problem)) CHECK(program_options(s.problem, layout).frozen());
}

TEST_CASE("layouts of every kind take no less than their bounds, all microbatches simulated") {
  std::int64_t checked = 0;
  double closest = 0, closest_flat = 0;  // of pipelines, and of layouts without
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Draw draw(seed);
    Small s;
    LaunchedCost cost;
    cost.latency_s = draw.of<double>({1e-6, 2e-5});
    cost.slowdown = draw.of<double>({0, 0.16, 0.5});
    cost.launch_each_s = draw.of<double>({0, 2e-6, 1e-5});
    cost.separate = draw.once_in(2);
    s.model.layers = draw.between(4, 7);
    s.model.shared_ffn = draw.of<std::int64_t>({0, 512});
    SearchProblem p{.model = s.model, .cluster = small_cluster(4), .cost = cost};
    p.cluster.nic_Bps = draw.of<double>({5e8, 5e9, 50e9});
    p.gpus = 16, p.seq = 512, p.global_batch = draw.of<std::int64_t>({32, 64}), p.memory_limit_bytes = 1e18;
    p.scenarios = s.problem.scenarios;
    p.stack = fsdp_stack();
    p.stack.layouts = StackLayouts::all();
    p.stack.dispatchers = {Dispatcher::alltoall, Dispatcher::hybridep};
    p.stack.exchange_overlap = true;
    p.space.pipeline_degrees = {1};
    if (seed <= 60) p.space.pipeline_degrees = {2, 4};
    GroupBounds bounds(p);
    const LayoutSpace space(p);
    const std::vector<LayoutGroup> groups = space.groups();
    for (int i = 0; i < 8; ++i) {
      const LayoutGroup group = draw.of(groups);
      const Layout layout = draw.of(space.members(group));
      StepOptions all;
      all.every_microbatch = true;
      const auto routing = routing_of(p, layout);
      const double step_s = simulated_step({step_program(p, layout), p.cluster, *routing}, cost, all).replay.step_s;
      INFO("seed " << seed << ": " << key_of(layout) << ", " << group.microbatches << " microbatches");
      const double needed = step_memory(p, layout).needed();
      CHECK(bounds.memory_bytes(group) <= needed);
      Layout same = layout;
      same.dispatcher = Dispatcher::alltoall;
      CHECK(step_memory(p, same).needed() == needed);
      CHECK(bounds.step_s(group) <= step_s * (1 + 1e-9));
      CHECK(bounds.scheduled_s(layout) <= step_s * (1 + 1e-9));
      const double path_s = bounds.path_s(layout);
      CHECK(path_s <= step_s * (1 + 1e-9));
      CHECK(bounds.lane_s(layout) <= step_s * (1 + 1e-9));
      double& nearest = layout.pipeline > 1 ? closest : closest_flat;
      nearest = std::max(nearest, path_s / step_s);
      ++checked;
    }
  }
  CHECK(checked == 960);
  CHECK(closest > 0.99);
  CHECK(closest_flat > 0.99);
}
