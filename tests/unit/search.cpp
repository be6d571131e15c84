// The search against brute force: every layout simulated, on machines small enough for it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <numeric>
#include <set>

#include "configs/base/error.hpp"
#include "planner/placement/expert_slots.hpp"
#include "planner/search/layout_space.hpp"
#include "planner/search/search_evaluate.hpp"
#include "tests/fixtures/check_certificate.hpp"
#include "tests/fixtures/small_search.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("the search finds what simulating every layout finds, on fast and slow networks") {
  std::int64_t bounded = 0;
  for (double nic_Bps : {5e8, 5e9, 50e9})
    for (double limit : {1e18, 2.5e8}) {
      Small s;
      s.problem.cluster.nic_Bps = nic_Bps;
      s.problem.memory_limit_bytes = limit;
      const SearchResult r = search_layouts(s.problem);
      CHECK(r.certificate.incumbent == brute_force(s.problem));
      CHECK(r.certificate.proved);
      CHECK(r.certificate.violations == 0);
      CHECK(check_certificate(r).empty());
      bounded += r.certificate.bounded;
    }
  CHECK(bounded > 100);  // of 6 x 60: the bound spares simulations
}

TEST_CASE("the search finds the fastest layout of ranks that share two cores") {
  Small s;
  s.problem.cluster = shared_host(4, 2);
  s.problem.gpus = 4;
  s.problem.precision = Precision::fp32;
  s.cost.host_computes = true;
  s.cost.cpu_per_byte = 1e-10;
  const SearchResult r = search_layouts(s.problem);
  CHECK(r.certificate.incumbent == brute_force(s.problem));
  CHECK(r.certificate.proved);
  CHECK(check_certificate(r).empty());
}

TEST_CASE("a search refuses times of another kind of machine, both ways") {
  Small s;
  s.cost.host_computes = true;
  CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("cluster small of GPUs"));
  s.cost.host_computes = false;
  s.problem.cluster = shared_host(16, 2);
  CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("cluster host"));
}

TEST_CASE("everything that divides is a layout of the space once") {
  Small s;
  // shard 1 2 4 8 16, expert 1 2 4 8 16 dividing it: 1 + 2 + 3 + 4 + 5 = 15; microbatch 1 2; recompute 5
  std::set<std::string> keys;
  for (const Layout& layout : all_layouts(s.problem)) {
    CHECK(layout.world() == 16);
    CHECK(keys.insert(key_of(layout)).second);
  }
  CHECK(keys.size() == 150);
}

TEST_CASE("recompute of experts is searched where there are experts") {
  Small s;
  s.problem.scenarios.clear();
  s.model.experts = s.model.top_k = 0;
  s.model.dense_ffn = s.model.ffn;
  s.problem.stack.layouts = StackLayouts::all();
  s.problem.stack.layouts.compression.clear();
  std::set<std::string> policies;
  for (const Layout& layout : all_layouts(s.problem)) policies.insert(to_string(layout.recompute));
  CHECK(policies.count("moe_act") == 0);
  CHECK(policies.count("attention") == 1);
  CHECK(policies.count("block") == 1);
}

TEST_CASE("a run that no layout brings to its end is an error, whether bounds or simulations say so") {
  struct Endless : Objective {
    bool known = true;  // beforehand
    std::string unit() const override { return "days"; }
    double of(const Layout&, const Simulated&) const override { return std::numeric_limits<double>::infinity(); }
    double least(const Layout& layout, const LeastStep& step) const override {
      return known ? of(layout, {}) : step.step_s;
    }
    double least_of_any(const LeastStep& step) const override { return least({}, step); }
  } endless;
  Small s;
  s.problem.objective = &endless;
  for (const bool known : {true, false}) {
    endless.known = known;
    CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("found no layout with which the run ends"));
  }
}

TEST_CASE("what a study names and nothing divides is left out; nothing left is an error") {
  Small s;
  s.problem.space.shard_sizes = {3, 4, 16};
  s.problem.space.expert_degrees = {1, 3, 8};
  s.problem.space.microbatches = {1, 5};
  s.problem.space.recompute = {Recompute::none};
  CHECK(search_layouts(s.problem).certificate.enumerated == 3);  // 4x4, 1x16, 1x16 expert 8
  s.problem.space.shard_sizes = {3};
  CHECK_THROWS_WITH(search_layouts(s.problem), Catch::StartsWith(kNoLayoutDivides) && Catch::Contains("16 GPUs") &&
                                                   Catch::Contains("that fsdp runs"));
}

TEST_CASE("a stack that does not run what the study names refuses it by name") {
  const auto refused = [](auto set, const std::string& words) {
    Small s;
    set(s.problem.space);
    CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("stack fsdp") && Catch::Contains(words));
  };
  refused([](SearchSpec& space) { space.tensor_degrees = {2}; }, "tensor_parallel_degree 2");
  refused([](SearchSpec& space) { space.pipeline_degrees = {4}; }, "pipeline_parallel_degree 4");
  refused([](SearchSpec& space) { space.context_degrees = {2}; }, "context_parallel_degree 2");
  refused([](SearchSpec& space) { space.schedules = {Schedule::zero_bubble}; }, "zero_bubble");
  refused([](SearchSpec& space) { space.reshard_after_forward = {false}; }, "reshard_after_forward: false");
  refused([](SearchSpec& space) { space.reduce_every_microbatch = {false}; }, "gradient_reduction: step");
  refused([](SearchSpec& space) { space.dispatchers = {Dispatcher::deepep}; }, "token_dispatcher deepep");
  refused([](SearchSpec& space) { space.exchange_overlap = {true}; }, "overlap_expert_exchange");
  refused([](SearchSpec& space) { space.cuda_graphs = {CudaGraphs::full}; }, "cuda_graphs full");
  refused([](SearchSpec& space) { space.recompute = {recompute_from_string("block/int8")}; },
          "activation_compression int8");
  refused([](SearchSpec& space) { space.recompute = {recompute_from_string("core")}; }, "recompute core");
  refused(
      [](SearchSpec& space) {
        space.recompute = {Recompute::none, recompute_from_string("block:every-2")};
      },
      "recompute block:every-2");
  refused([](SearchSpec& space) { space.sequence_parallel = {true}; }, "tensor_parallel_degree 2");
}

TEST_CASE("of what a stack runs and no search tries, a study gets what it names") {
  Small s;
  s.model.experts = s.model.top_k = 0;  // tensor groups of experts have sequence parallelism always
  s.model.dense_ffn = s.model.ffn;
  s.problem.scenarios.clear();
  s.problem.stack.layouts.tensor = true;
  s.problem.stack.layouts.recompute = {Recompute::none};
  s.problem.space.tensor_degrees = {2};
  const auto all = [&](auto is) {
    const std::vector<Layout> layouts = all_layouts(s.problem);
    return !layouts.empty() && std::all_of(layouts.begin(), layouts.end(), is);
  };
  s.problem.space.sequence_parallel = {false};
  CHECK_THROWS_WITH(all_layouts(s.problem), Catch::Contains("tensor_parallel_degree 2 with sequence_parallel: false, "
                                                            "which its trainer does not run"));
  s.problem.stack.layouts.sequence_parallel = {true, false};
  CHECK(all([](const Layout& l) { return !l.sequence_parallel; }));
  s.problem.space.sequence_parallel.clear();
  CHECK(all([](const Layout& l) { return l.sequence_parallel; }));

  s.problem.space.recompute = {recompute_from_string("mlp")};
  CHECK_THROWS_WITH(all_layouts(s.problem), Catch::Contains("recompute mlp, which its trainer does not run"));
  s.problem.stack.layouts.recompute_also = {Module::mlp};
  CHECK(all([](const Layout& l) { return l.recompute.has(Module::mlp); }));
  s.problem.space.recompute = {recompute_from_string("mlp:first-1")};
  CHECK_THROWS_WITH(all_layouts(s.problem), Catch::Contains("recompute mlp:first-1, which"));
  s.problem.stack.layouts.recompute_anywhere = true;
  CHECK(all([](const Layout& l) { return to_string(l.recompute) == "mlp:first-1"; }));
}

TEST_CASE("every-n that a study names is left out where a chunk has fewer blocks, and refused if that is everywhere") {
  Small s;
  s.model.layers = 8;
  s.problem.stack.layouts.recompute_blocks = {Recompute::Blocks::Which::every};
  s.problem.stack.layouts.schedules = {Schedule::one_f_one_b};
  s.problem.space.pipeline_degrees = {2, 4};
  s.problem.space.recompute = {Recompute::none, recompute_from_string("block:every-3")};
  for (const Layout& layout : all_layouts(s.problem)) CHECK((layout.pipeline == 2 || !layout.recompute.any()));
  s.problem.space.pipeline_degrees = {4};
  CHECK_THROWS_WITH(all_layouts(s.problem),
                    Catch::Contains("search.recompute: found block:every-3, which no layout takes") &&
                        Catch::Contains("pipeline 4") && Catch::Contains("none of the 2 blocks of chunk 1 of 4"));
  s.problem.space.pipeline_degrees = {1};
  s.problem.space.recompute = {recompute_from_string("block:every-9")};
  CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("every-9 holds none of the 8 blocks"));
}

TEST_CASE("the blocks that are searched hold some of every chunk") {
  Small s;
  s.model.layers = 7;  // three chunks of 2, 3 and 2
  s.problem.gpus = 12, s.problem.global_batch = 12;
  s.problem.stack.layouts.recompute_blocks = {Recompute::Blocks::Which::every};
  s.problem.stack.layouts.schedules = {Schedule::one_f_one_b};
  s.problem.space.pipeline_degrees = {3};
  std::set<std::string> words;
  for (const Layout& layout : all_layouts(s.problem)) {
    CHECK_NOTHROW(with_stack_chunks(s.problem, layout).check(s.model, "dealt"));
    words.insert(to_string(layout.recompute));
  }
  CHECK(words.count("block:every-2") == 1);
  CHECK(words.count("block:every-3") == 0);
}

TEST_CASE(
    "blocks to recompute: one to three quarters of a chunk, or every second to fourth; what is named stands alone") {
  const auto policies = [](Recompute::Blocks::Which which, std::int64_t pipeline) {
    Small s;
    s.model.layers = 8;
    s.problem.stack.layouts.recompute = {Recompute::none};
    s.problem.stack.layouts.recompute_blocks = {which};
    s.problem.stack.layouts.schedules = {Schedule::one_f_one_b};
    s.problem.space.pipeline_degrees = {pipeline};
    s.problem.space.expert_degrees = {1};
    std::set<std::string> out;
    for (const Layout& layout : all_layouts(s.problem)) out.insert(to_string(layout.recompute));
    return out;
  };
  using Which = Recompute::Blocks::Which;
  using Words = std::set<std::string>;
  CHECK(policies(Which::first, 1) == Words{"none", "block:first-2", "block:first-4", "block:first-6"});
  CHECK(policies(Which::chunk, 2) == Words{"none", "block:chunk-1", "block:chunk-2", "block:chunk-3"});
  CHECK(policies(Which::chunk, 4) == Words{"none", "block:chunk-1"});
  CHECK(policies(Which::chunk, 8) == Words{"none"});
  CHECK(policies(Which::every, 1) == Words{"none", "block:every-2", "block:every-3", "block:every-4"});
  Small s;
  s.problem.stack.layouts.recompute_blocks = {Which::every};
  s.problem.space.recompute = {recompute_from_string("block:every-1")};
  for (const Layout& layout : all_layouts(s.problem)) CHECK(to_string(layout.recompute) == "block:every-1");
}

TEST_CASE("the more blocks are recomputed, the less memory and the more time a step takes") {
  Small s;
  s.model.layers = 8;
  s.problem.gpus = 1, s.problem.global_batch = 4;  // nothing to wait for but computation
  Layout layout;
  double bytes = 1e300, step_s = 0;
  for (const char* policy : {"none", "block:every-4", "block:every-2", "block:first-6", "block"}) {
    layout.recompute = recompute_from_string(policy);
    const double needed = step_memory(s.problem, layout).needed(), seconds = simulate_layout(s.problem, layout).step_s;
    CHECK(needed < bytes);
    CHECK(seconds > step_s);
    bytes = needed, step_s = seconds;
  }
}

TEST_CASE("a batch has to be a multiple of the ranks that read different sequences, not of the GPUs") {
  Small s;
  s.problem.global_batch = 24;
  CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("a batch of 24"));
  s.problem.stack.layouts.tensor = true;
  for (const Layout& layout : all_layouts(s.problem)) CHECK(24 % layout.data_ranks() == 0);
  CHECK(search_layouts(s.problem).certificate.proved);
}

TEST_CASE("a microbatch may leave a smaller last one where the stack runs that") {
  Small s;
  s.problem.global_batch = 48;  // 3 sequences a rank
  for (const Layout& layout : all_layouts(s.problem)) CHECK((layout.microbatch == 1 || layout.microbatch == 3));
  s.problem.stack.layouts.smaller_last_microbatch = true;
  std::map<std::int64_t, std::int64_t> microbatches;
  for (const LayoutGroup& group : LayoutSpace(s.problem).groups())
    microbatches[group.layout.microbatch] = group.microbatches;
  CHECK(microbatches == std::map<std::int64_t, std::int64_t>{{1, 3}, {2, 2}, {3, 1}});
  const SearchResult r = search_layouts(s.problem);
  CHECK(r.certificate.incumbent == brute_force(s.problem));
  CHECK(r.certificate.proved);
  CHECK(check_certificate(r).empty());
  s.problem.space.microbatches = {2};  // 2 and 1 sequences: between three times 1 and once 3
  const double uneven = search_layouts(s.problem).certificate.incumbent;
  CHECK(uneven == brute_force(s.problem));
  CHECK(uneven > r.certificate.incumbent);
  s.problem.space.microbatches = {1};
  CHECK(uneven < search_layouts(s.problem).certificate.incumbent);
}

TEST_CASE("a tight memory limit drops layouts, and when nothing fits the nearest miss is named") {
  Small s;
  const SearchResult all = search_layouts(s.problem);
  double least = 1e300;
  for (const Candidate& c : all.candidates)
    if (c.memory_bytes > 0) least = std::min(least, c.memory_bytes);
  for (const Layout& layout : all_layouts(s.problem)) least = std::min(least, step_memory(s.problem, layout).needed());
  s.problem.memory_limit_bytes = least;
  const SearchResult one = search_layouts(s.problem);
  CHECK(one.certificate.infeasible.at("memory") == 149);
  s.problem.memory_limit_bytes = least * 0.999;
  CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("nearest miss") && Catch::Contains("1x16"));
  try {
    search_layouts(s.problem);
  } catch (const Error& e) {
    CHECK(e.code() == Code::finding);
  }
}

TEST_CASE("a small budget leaves a gap that the certificate admits") {
  Small s;
  s.problem.cluster.nic_Bps = 1e9;
  s.problem.space.simulations = 1;
  const SearchResult r = search_layouts(s.problem);
  CHECK(r.certificate.simulated == 1);
  CHECK(check_certificate(r).empty());
  CHECK(r.certificate.bound <= brute_force(s.problem));
  CHECK(r.certificate.proved == (r.certificate.incumbent == r.certificate.bound));
}

TEST_CASE("the search ends with the simulation that reaches its budget of work") {
  Small s;
  s.problem.cluster.nic_Bps = 1e9;
  s.problem.space.simulations = 5;
  const SearchResult r = search_layouts(s.problem);
  REQUIRE_FALSE(r.certificate.proved);
  std::vector<std::int64_t> counted;
  for (const Candidate& c : r.candidates)
    if (c.result) {
      CHECK(c.result->work == simulate_layout(s.problem, c.layout).work);
      counted.push_back(std::max(c.result->work, kOpsOfSimulation));
    }
  const std::int64_t all = std::accumulate(counted.begin(), counted.end(), std::int64_t{0}),
                     most = 5 * kOpsOfSimulation;
  CHECK(all >= most);
  CHECK(all - *std::ranges::max_element(counted) < most);
}

TEST_CASE("the checker sees a certificate that claims too much") {
  Small s;
  const SearchResult good = search_layouts(s.problem);
  SearchResult r = good;
  r.certificate.incumbent *= 0.9;
  CHECK_FALSE(check_certificate(r).empty());
  r = good;
  r.certificate.bounded += 1;
  CHECK_FALSE(check_certificate(r).empty());
  r = good;
  for (Candidate& c : r.candidates)
    if (c.fate == Fate::bounded) c.least = 0.5 * r.certificate.incumbent;
  for (UnopenedGroup& group : r.groups) group.least = 0.5 * r.certificate.incumbent;
  CHECK_FALSE(check_certificate(r).empty());
}

TEST_CASE("ties go to the smaller failure domain") {
  Small s;
  s.problem.space.tie = 1e6;  // everything is a tie
  const SearchResult r = search_layouts(s.problem);
  CHECK(r.certificate.ties_complete);
  CHECK(r.ties.size() == 150);
  CHECK(r.candidates[r.chosen].layout.shard == 1);
  CHECK(r.candidates[r.chosen].layout.state_ranks() == 1);
  for (const std::size_t i : r.ties) {
    const Candidate& c = r.candidates[i];
    CHECK((c.layout.state_ranks() > 1 || c.value >= r.candidates[r.chosen].value));
  }
  s.problem.space.tie = 0;
  const SearchResult exact = search_layouts(s.problem);
  CHECK(exact.candidates[exact.chosen].result->step_s == exact.certificate.incumbent);
}

TEST_CASE("memory is sized for the p99 load, step times for the mean of the scenarios") {
  Small s;
  Layout layout;
  layout.shard = 16, layout.expert = 8;
  CHECK(p99_imbalance(s.problem, layout) > mean_imbalance(s.problem, layout));
  const double skewed = step_memory(s.problem, layout).needed();
  s.problem.scenarios.clear();
  CHECK(p99_imbalance(s.problem, layout) == 1);
  CHECK(step_memory(s.problem, layout).needed() < skewed);
}

TEST_CASE("trained loads: memory for the p99 over microbatches, and more tokens together are more even") {
  Small s;
  s.problem.scenarios = {trained_scenario("trained", trained_loads(Balancing::loss), Balancing::loss, s.model)};
  Layout layout;
  layout.shard = 16, layout.expert = 8, layout.microbatch = 1;
  Layout larger = layout;
  larger.microbatch = 2;
  const double mean = mean_imbalance(s.problem, layout), p99 = p99_imbalance(s.problem, layout);
  CHECK(mean > 1.1);
  CHECK(p99 > mean);
  CHECK(p99 == fullest_rank(*s.problem.scenarios[0].trained, s.model, 8, 8 * 512, 0.99));
  CHECK(mean_imbalance(s.problem, larger) < mean);
  CHECK(p99_imbalance(s.problem, larger) < p99);
  s.problem.scenarios[0].trained->capacity = 1.2;
  CHECK(p99_imbalance(s.problem, layout) == 1.2);
}

TEST_CASE("a placement given for an expert degree is used by its layouts") {
  Small s;
  Placement reversed(4);
  for (auto& row : reversed)
    for (std::int64_t e = 15; e >= 0; --e) row.push_back(e);
  s.problem.placements[4] = reversed;
  for (const Layout& layout : all_layouts(s.problem)) CHECK(layout.placement.empty() == (layout.expert != 4));
}

TEST_CASE("copies are an option of their expert degree, which a study may ask for or leave out") {
  Small s;
  s.problem.stack.layouts.placement = PlacementSupport::copies;
  s.problem.copies[4] = {fill_slots(s.problem.scenarios, 4, 4, {.further = 1})};
  const auto slots = [&] {
    std::map<std::int64_t, std::set<std::int64_t>> out;
    for (const Layout& layout : all_layouts(s.problem)) out[layout.expert].insert(layout.slots(s.model));
    return out;
  };
  using Slots = std::map<std::int64_t, std::set<std::int64_t>>;
  CHECK(slots() == Slots{{1, {16}}, {2, {16}}, {4, {16, 20}}, {8, {16}}, {16, {16}}});
  s.problem.space.expert_copies = {1};
  CHECK(slots() == Slots{{4, {20}}});
  Layout with = all_layouts(s.problem).front(), without = with;
  without.placement.clear();
  CHECK(with.name().find(" slots 20") != std::string::npos);
  CHECK(step_memory(s.problem, with).needed() > step_memory(s.problem, without).needed());
  s.problem.stack.layouts.placement = PlacementSupport::order;
  CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("stack fsdp: found expert_copies 1"));
}

TEST_CASE("the same problem gives the same search") {
  Small s;
  const SearchResult a = search_layouts(s.problem), b = search_layouts(s.problem);
  CHECK(a.chosen == b.chosen);
  CHECK(a.certificate.incumbent == b.certificate.incumbent);
  for (std::size_t i = 0; i < a.candidates.size(); ++i) CHECK(a.candidates[i].bound_s == b.candidates[i].bound_s);
}

TEST_CASE("MFU and tokens per second follow from the step") {
  Small s;
  Layout layout;
  layout.shard = 16;
  const Simulated r = simulate_layout(s.problem, layout);
  CHECK(r.tokens_per_s_per_gpu * 16 * r.step_s == Approx(32 * 512));
  CHECK(r.mfu * 1e15 == Approx(r.tokens_per_s_per_gpu * s.model.flops_per_token(512)));
  CHECK(r.evidence[0] + r.evidence[1] + r.evidence[2] + r.evidence[3] == Approx(1));
  CHECK(r.low_s <= r.step_s);
  CHECK(r.high_s >= r.step_s);
}
