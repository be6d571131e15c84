// Which of several clusters and numbers of GPUs: what is in time and within budget, the front, and the nearest miss.
#include "planner/plan/decision.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"

using namespace wt;

namespace {

const std::string kStudy =
    "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\ntokens: 20B\nmax_seq_len: 2048\n"
    "global_train_batch_size: 64\nrouting: [balanced]\nfailures: llama3\nruns: 50\nspare_nodes: 0\n"
    "search: {expert_degrees: [8], microbatch: [1], tensor_parallel_degree: 1, pipeline_parallel_degree: 1, "
    "context_parallel_degree: 1}\n";
const std::string kPrices =
    "prices: {currency: USD, date: 2026-03-01, source: 'assumed: a test', gpu_hour: 2, spares: as_gpus}\n";

Decision decided(const DecisionSpec& asked, const std::string& more = "") {
  return decide(kStudy + more, "s", asked, false);
}

DecisionSpec on(std::vector<std::int64_t> gpus) {
  return {.options = {.clusters = {}, .gpus = std::move(gpus), .batches = {}}};
}

/// kStudy with another text behind `key`.
std::string with(const std::string& key, const std::string& value) {
  std::string text = kStudy;
  const std::size_t at = text.find(key + ": ");
  return text.replace(at, text.find('\n', at) - at, key + ": " + value);
}

}  // namespace

TEST_CASE("numbers of GPUs: one, a list, or doublings with the halves between") {
  CHECK(parse_numbers("256", "--gpus") == std::vector<std::int64_t>{256});
  CHECK(parse_numbers("512,256,512", "--gpus") == std::vector<std::int64_t>{256, 512});
  CHECK(parse_numbers("256..1024", "--gpus") == std::vector<std::int64_t>{256, 384, 512, 768, 1024});
  CHECK(parse_numbers("8..20", "--gpus") == std::vector<std::int64_t>{8, 12, 16, 20});
  for (const char* bad : {"", "0", "-8", "8..", "..8", "16..8", "8,,16", "many"})
    CHECK_THROWS_AS(parse_numbers(bad, "--gpus"), Error);
}

TEST_CASE("more GPUs are done earlier; the front has no option that another beats") {
  const Decision d = decided(on({16, 32, 64}));
  REQUIRE(d.options.size() == 3);
  CHECK(d.chosen == 2);
  CHECK_FALSE(d.priced);
  for (const std::size_t i : d.front)
    for (const std::size_t j : d.front)
      if (i != j)
        CHECK((d.options[i].days() < d.options[j].days()) == (d.options[i].gpu_hours() > d.options[j].gpu_hours()));
  DecisionSpec few = on({16, 32, 64});
  few.prefer = Prefer::gpus;
  const Decision fewest = decided(few);
  CHECK(fewest.chosen == 0);
  CHECK(fewest.sentence.find("16 hgx-h100 GPUs: 20B tokens in") == 0);
}

TEST_CASE("a deadline between two options leaves the faster; one that none keeps names the nearest miss") {
  const Decision all = decided(on({16, 32}));
  const double slow = all.options[0].p95_days(), fast = all.options[1].p95_days();
  REQUIRE(fast < slow);
  DecisionSpec within = on({16, 32});
  within.within_s = (slow + fast) / 2 * kDay_s, within.prefer = Prefer::gpus;
  const Decision some = decided(within);
  CHECK(some.chosen == 1);
  within.within_s = fast / 2 * kDay_s, within.prefer = Prefer::days;
  const Decision none = decided(within);
  CHECK_FALSE(none.chosen);
  CHECK(none.nearest == 1);
  CHECK(none.sentence.find("a step 50 % shorter or 10B tokens instead of 20B, or more GPUs, would do") !=
        std::string::npos);
}

TEST_CASE("a budget needs prices and keeps out what costs more") {
  const DecisionSpec spec = on({16, 64});
  DecisionSpec tight = spec;
  tight.budget = 1e9;
  CHECK_THROWS_WITH(decided(tight), Catch::Contains("--budget without prices of hgx-h100"));
  const Decision all = decided(spec, kPrices);
  CHECK(all.priced);
  for (const PlannedOption& o : all.options)
    CHECK(o.plan->cost.money->p50 == Approx(2 * o.plan->cost.gpu_hours.p50).epsilon(0.05));
  tight.budget = (all.options[0].plan->cost.money->p95 + all.options[1].plan->cost.money->p95) / 2;
  const std::size_t cheaper = all.options[0].plan->cost.money->p95 < all.options[1].plan->cost.money->p95 ? 0 : 1;
  CHECK(decided(tight, kPrices).chosen == cheaper);
  DecisionSpec least = spec;
  least.prefer = Prefer::money;
  CHECK(decided(least, kPrices).sentence.find("for the least money") != std::string::npos);
  least.prefer = Prefer::energy;
  CHECK_THROWS_WITH(decided(least, kPrices), Catch::Contains("prefer: energy without prices"));
  tight.budget = 1;
  CHECK(decided(tight, kPrices).sentence.find("or a budget of") != std::string::npos);
}

TEST_CASE("prices that are missing on one option are refused before any is planned") {
  const DecisionSpec asked{.options = {.clusters = {}, .gpus = {16, 32}, .batches = {}}, .budget = 1e9};
  std::int64_t planned = 0;
  CHECK_THROWS_WITH(decide(kStudy, "s", asked, false,
                           [&](const std::string&, std::int64_t, std::int64_t, const std::string&) { ++planned; }),
                    Catch::Contains("--budget without prices"));
  CHECK(planned == 0);
}

TEST_CASE("what is worth measuring before an option is taken: times that can turn two clusters around") {
  const DecisionSpec asked{.options = {.clusters = {"hgx-h100", "hgx-h200"}, .gpus = {16}, .batches = {}}};
  const Decision d = decided(asked);
  REQUIRE(d.chosen);
  CHECK(d.preferred_unit == "days");
  const PlannedOption &taken = d.options[*d.chosen], &other = d.options[1 - *d.chosen];
  REQUIRE_FALSE(d.next.empty());
  CHECK(std::ranges::is_sorted(d.next, {}, [](const OptionWorth& w) { return std::pair(w.joint, -w.saves); }));
  for (const OptionWorth& w : d.next) {
    INFO(w.cluster << ", " << w.times);
    CHECK(w.saves > 0);
    CHECK(w.how.find("nothing") == std::string::npos);
    // Either the other cluster's time may be low or the taken one's high: half of the cases at most, and what is saved
    // is at most the distance at that end.
    CHECK(w.changes <= 0.5);
    const PlannedOption& moved = w.cluster == taken.cluster ? taken : other;
    for (const VariedClass& varied : moved.plan->robust.classes) {
      if (varied.times.name != w.times) continue;
      const RobustChoice& r = moved.plan->robust;
      const auto days_at = [&](std::size_t end) {
        return moved.days() * r.table.steps_s[varied.scenarios[end]][r.chosen] / r.table.steps_s[0][r.chosen];
      };
      const double most = &moved == &taken ? days_at(1) - other.days() : taken.days() - days_at(0);
      CHECK(most > 0);
      CHECK(w.saves <= w.changes * most * (1 + 1e-9));
    }
  }
  DecisionSpec fewest = asked;
  fewest.prefer = Prefer::gpus;
  CHECK(decided(fewest).next.empty());
}

TEST_CASE("an option whose GPUs nothing divides is a misfit, not an error") {
  const Decision d = decided(on({24, 32}));
  CHECK(d.options[0].misfit.find("no layout divides 24 GPUs") != std::string::npos);
  CHECK(d.chosen == 1);
  CHECK_THROWS_WITH(decided(on({24})), Catch::Contains("nothing fits on any of the options"));
}

TEST_CASE("a study lists what the command line lists; one value of each key is no list") {
  const StudyOptions none = study_options(kStudy, "s");
  CHECK((none.clusters.empty() && none.gpus.empty() && none.batches.empty()));
  CHECK(study_options(with("gpus", "16..64"), "s").gpus == std::vector<std::int64_t>{16, 24, 32, 48, 64});
  CHECK(study_options(with("gpus", "[64, 16]"), "s").gpus == std::vector<std::int64_t>{16, 64});
  CHECK(study_options(with("cluster", "[hgx-h100, hgx-b200]"), "s").clusters ==
        std::vector<std::string>{"hgx-h100", "hgx-b200"});
  CHECK(study_options(with("global_train_batch_size", "64..256"), "s").batches ==
        std::vector<std::int64_t>{64, 96, 128, 192, 256});
  CHECK_THROWS_WITH(study_options(with("gpus", "[]"), "s"), Catch::Contains("s:4: gpus: found ''"));
  CHECK_THROWS_WITH(study_options(with("gpus", "16..many"), "s"), Catch::Contains("needs whole numbers from 1"));
  CHECK_THROWS_WITH(study_options(with("cluster", "[]"), "s"), Catch::Contains("found an empty list"));
  CHECK_THROWS_WITH(study_options(with("cluster", "[a, a]"), "s"), Catch::Contains("needs each cluster once"));
  const std::string several = with("cluster", "[hgx-h100, hgx-b200]");
  CHECK(study_from_text(set_options(several, {{"hgx-b200"}, {32}, {128}}, "s"), "s").cluster.name == "hgx-b200");
}

TEST_CASE("what is no decision refuses several values, and says which key") {
  for (const char* key : {"cluster", "gpus", "global_train_batch_size"})
    CHECK_THROWS_WITH(study_from_text(with(key, "[a, b]"), "s"),
                      Catch::Contains(std::string(key) + ": found a list, which are options of a decision"));
  CHECK_THROWS_WITH(study_from_text(with("gpus", "16..64"), "s"), Catch::Contains("gpus: found 16..64"));
}

TEST_CASE("each batch trains the same tokens in its own number of steps, planned as the study with that batch alone") {
  DecisionSpec asked;
  asked.options.batches = {64, 128};
  const Decision d = decided(asked);
  REQUIRE(d.options.size() == 2);
  CHECK(d.batches);
  const auto steps = [&](std::size_t i) { return d.options[i].plan->schedule.steps; };
  CHECK(std::abs(steps(0) - 2 * steps(1)) <= 1);
  const Decision alone = decide(with("global_train_batch_size", "128"), "s", {}, false);
  CHECK(alone.options[0].plan->step.step_s == d.options[1].plan->step.step_s);
  CHECK(alone.sentence.find("batches") == std::string::npos);
  CHECK(d.chosen == 1);  // a larger batch exchanges weights and gradients less often for each token
  CHECK(d.sentence.find("16 hgx-h100 GPUs with batches of 128 sequences: 20B tokens in") == 0);
}
