// The search against brute force: every layout simulated, on machines small enough for it.
#include <catch2/catch.hpp>
#include <set>

#include "configs/spec/support/error.hpp"
#include "planner/search/search.hpp"
#include "tests/support/fake_cost.hpp"

using namespace wt;
using namespace wt::test;

namespace {

struct Small {
  ModelSpec model = small_model(4);
  FakeCost cost;
  SearchProblem problem{.model = model,
                        .cluster = small_cluster(4),
                        .cost = cost,
                        .gpus = 16,
                        .seq = 512,
                        .global_batch = 32,
                        .memory_limit_bytes = 1e18,
                        .peak_flops = 1e15};
  Small() {
    LoadScenario a{"a", {}, {}}, b{"b", {}, {}};
    for (int layer = 0; layer < 2; ++layer) {
      a.counts.emplace_back();
      b.counts.emplace_back();
      for (int e = 0; e < 16; ++e) {
        a.counts.back().push_back(1 + (e * 7 + layer * 5) % 11);
        b.counts.back().push_back(1 + (e * 3 + layer) % 5);
      }
    }
    problem.scenarios = {a, b};
    problem.space.simulations = 1000;
  }
};

double brute_force(const SearchProblem& p) {
  double best = 1e300;
  for (const Candidate& c : enumerate_layouts(p))
    if (c.fate != Fate::infeasible && step_memory(p, c.layout).needed() <= p.memory_limit_bytes)
      best = std::min(best, simulate_layout(p, c.layout).step_s);
  return best;
}

}  // namespace

TEST_CASE("the search finds what simulating every layout finds, on fast and slow networks") {
  std::int64_t bounded = 0;
  for (double nic_Bps : {5e8, 5e9, 50e9})
    for (double limit : {1e18, 2.5e8}) {
      Small s;
      s.problem.cluster.nic_Bps = nic_Bps;
      s.problem.memory_limit_bytes = limit;
      const SearchResult r = search_layouts(s.problem);
      CHECK(r.certificate.incumbent_s == brute_force(s.problem));
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
  CHECK(r.certificate.incumbent_s == brute_force(s.problem));
  CHECK(r.certificate.proved);
  CHECK(check_certificate(r).empty());
}

TEST_CASE("a search refuses prices of another kind of machine, both ways") {
  Small s;
  s.cost.host_computes = true;
  CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("cluster small of GPUs"));
  s.cost.host_computes = false;
  s.problem.cluster = shared_host(16, 2);
  CHECK_THROWS_WITH(search_layouts(s.problem), Catch::Contains("cluster host"));
}

TEST_CASE("everything that divides is enumerated once") {
  Small s;
  // shard 1 2 4 8 16, expert 1 2 4 8 16 dividing it: 1 + 2 + 3 + 4 + 5 = 15; microbatch 1 2; recompute 4
  std::int64_t possible = 0, impossible = 0;
  for (const Candidate& c : enumerate_layouts(s.problem)) {
    (c.fate == Fate::infeasible ? impossible : possible) += 1;
    if (c.fate != Fate::infeasible) CHECK(c.layout.world() == 16);
  }
  CHECK(possible == 120);
  CHECK(impossible == 80);
}

TEST_CASE("recompute of experts is searched where there are experts") {
  Small s;
  s.problem.scenarios.clear();
  s.model.experts = s.model.top_k = 0;
  std::set<std::string> policies;
  for (const Candidate& c : enumerate_layouts(s.problem)) policies.insert(to_string(c.layout.recompute));
  CHECK(policies == std::set<std::string>{"none", "attention", "block"});
}

TEST_CASE("lists that do not divide are infeasible with their reason") {
  Small s;
  s.problem.space.shard_sizes = {3, 4, 16};
  s.problem.space.expert_degrees = {1, 3, 8};
  s.problem.space.microbatches = {1, 5};
  s.problem.space.recompute = {Recompute::none};
  const SearchResult r = search_layouts(s.problem);
  CHECK(r.certificate.infeasible ==
        std::map<std::string, std::int64_t>{{"shard size does not divide the GPUs", 6},
                                            {"expert degree does not divide the shard size", 6},
                                            {"microbatch is larger than a rank's batch", 3}});
  CHECK(r.certificate.enumerated == 18);
}

TEST_CASE("a microbatch that leaves a smaller last one is priced where a study asks for it") {
  Small s;
  s.problem.global_batch = 48;  // 3 sequences a rank
  for (const Candidate& c : enumerate_layouts(s.problem)) CHECK((c.layout.microbatch == 1 || c.layout.microbatch == 3));
  s.problem.space.microbatches = {1, 2, 3};
  std::map<std::int64_t, std::int64_t> microbatches;
  for (const Candidate& c : enumerate_layouts(s.problem))
    microbatches[c.layout.microbatch] = std::max(microbatches[c.layout.microbatch], c.microbatches);
  CHECK(microbatches == std::map<std::int64_t, std::int64_t>{{1, 3}, {2, 2}, {3, 1}});
  const SearchResult r = search_layouts(s.problem);
  CHECK(r.certificate.incumbent_s == brute_force(s.problem));
  CHECK(r.certificate.proved);
  CHECK(check_certificate(r).empty());
  s.problem.space.microbatches = {2};  // 2 and 1 sequences: between three times 1 and once 3
  const double uneven = search_layouts(s.problem).certificate.incumbent_s;
  CHECK(uneven == brute_force(s.problem));
  CHECK(uneven > r.certificate.incumbent_s);
  s.problem.space.microbatches = {1};
  CHECK(uneven < search_layouts(s.problem).certificate.incumbent_s);
}

TEST_CASE("a tight memory limit drops layouts, and when nothing fits the nearest miss is named") {
  Small s;
  const SearchResult all = search_layouts(s.problem);
  double least = 1e300;
  for (const Candidate& c : all.candidates)
    if (c.fate != Fate::infeasible) least = std::min(least, c.memory_bytes);
  s.problem.memory_limit_bytes = least;
  const SearchResult one = search_layouts(s.problem);
  CHECK(one.certificate.infeasible.at("memory") == 119);
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
  CHECK(r.certificate.bound_s <= brute_force(s.problem));
  CHECK(r.certificate.proved == (r.certificate.incumbent_s == r.certificate.bound_s));
}

TEST_CASE("the checker sees a certificate that claims too much") {
  Small s;
  const SearchResult good = search_layouts(s.problem);
  SearchResult r = good;
  r.certificate.incumbent_s *= 0.9;
  CHECK_FALSE(check_certificate(r).empty());
  r = good;
  r.certificate.bounded += 1;
  CHECK_FALSE(check_certificate(r).empty());
  r = good;
  for (Candidate& c : r.candidates)
    if (c.fate == Fate::bounded) c.bound0_s = c.bound1_s = 0.5 * r.certificate.incumbent_s;
  CHECK_FALSE(check_certificate(r).empty());
}

TEST_CASE("ties go to the smaller failure domain that leaves room in memory") {
  Small s;
  s.problem.space.tie = 1e6;  // everything is a tie
  const SearchResult r = search_layouts(s.problem);
  CHECK(r.certificate.ties_complete);
  CHECK(r.ties.size() == 120);
  CHECK(r.candidates[r.chosen].layout.shard == 1);
  CHECK_THAT(
      r.tie_break,
      Catch::StartsWith("120 layouts are within 100000000.0 % of the fastest. Chosen: the smallest failure domain "
                        "(1 GPU) that leaves 10 % of the memory free. The fastest, "));
  double least = 1e18;
  for (const Candidate& c : r.candidates)
    if (c.fate == Fate::simulated) least = std::min(least, c.memory_bytes);
  s.problem.memory_limit_bytes = 1.1 * least;
  CHECK_THAT(search_layouts(s.problem).tie_break, Catch::Contains("; none leaves 10 % of the memory free"));
  s.problem.memory_limit_bytes = 1e18;
  s.problem.space.tie = 0;
  const SearchResult exact = search_layouts(s.problem);
  CHECK(exact.candidates[exact.chosen].result->step_s == exact.certificate.incumbent_s);
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
  for (const Candidate& c : enumerate_layouts(s.problem))
    if (c.fate != Fate::infeasible) CHECK(c.layout.placement.empty() == (c.layout.expert != 4));
}

TEST_CASE("the same problem gives the same search") {
  Small s;
  const SearchResult a = search_layouts(s.problem), b = search_layouts(s.problem);
  CHECK(a.chosen == b.chosen);
  CHECK(a.certificate.incumbent_s == b.certificate.incumbent_s);
  for (std::size_t i = 0; i < a.candidates.size(); ++i) CHECK(a.candidates[i].bound_s() == b.candidates[i].bound_s());
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
