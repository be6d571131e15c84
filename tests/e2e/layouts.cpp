// What is trained does not depend on how the ranks are arranged: losses, balancing losses and gradient norms of every
// layout against one rank alone.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "tests/support/routing_rows.hpp"
#include "tests/support/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// The larger one; what is not a number is beyond every limit (std::max would drop it).
double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? INFINITY : std::max(a, b); }

double off(double expected, double found) { return found == expected ? 0 : std::abs(found / expected - 1); }

double worst_loss(const Step& a, const Step& b) {
  return worse(worse(off(a.loss, b.loss), off(a.aux_loss, b.aux_loss)), off(a.z_loss, b.z_loss));
}

/// A run's steps, and how many tokens chose each expert of each layer in them: [step][layer][expert].
struct Trained {
  std::vector<Step> steps;
  std::vector<std::vector<std::vector<double>>> choices;
};
Trained outcome_of(const RunSpec& run) {
  const auto folder = trained(run);
  Trained out{steps_of(folder), {}};
  const std::vector<double> none(static_cast<std::size_t>(run.model.experts));
  out.choices.assign(out.steps.size(), {static_cast<std::size_t>(run.model.layers), none});
  for (const auto& [key, counts] : RoutingRows(folder / "routing.csv", run)) {
    std::vector<double>& sum =
        out.choices.at(static_cast<std::size_t>(key[0] - 1)).at(static_cast<std::size_t>(key[2]));
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += counts.at(e);
  }
  return out;
}

/// Choices of the first layer that has other ones.
double moved(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double sum = 0;
  for (std::size_t layer = 0; layer < a.size() && sum == 0; ++layer)
    for (std::size_t e = 0; e < a[layer].size(); ++e) sum += std::max(0.0, b[layer][e] - a[layer][e]);
  return sum;
}

/// The same numbers (seen: 1e-7 at the first step, 7e-7 over ten) until sums in another order tip the choice of a token
/// between experts that are equal to it in all digits but the last. That happens to one token at a time, and seldom
/// (seen: at step 9 at the earliest; where the one rank's run is that near to a tie, at that step in many layouts);
/// from then on the runs are two, and differ by up to half a per cent.
void check_same(const Trained& expected, const Trained& found) {
  static std::set<std::size_t> tipped_at;  // steps, of all runs of this program
  REQUIRE(found.steps.size() == expected.steps.size());
  bool same = true;
  for (std::size_t i = 0; i < expected.steps.size(); ++i) {
    const Step &a = expected.steps[i], &b = found.steps[i];
    const double elsewhere = moved(expected.choices[i], found.choices[i]);
    INFO("step " << i + 1 << ", " << elsewhere << " tokens of a layer chose otherwise");
    CHECK(b.samples == a.samples);
    if (same && elsewhere > 0) {
      CHECK(i >= 7);
      CHECK(elsewhere <= 2);
      if (tipped_at.insert(i + 1).second) WARN("choices tip at step " << i + 1);
      CHECK(tipped_at.size() <= 3);  // seen: steps 9 and 19, near a tie in the single process
    }
    same = same && elsewhere == 0;
    CHECK(worst_loss(a, b) <= (i == 0 ? 1e-6 : same ? 1e-5 : 1e-2));
    if (same) CHECK(off(a.grad_norm, b.grad_norm) <= (i == 0 ? 1e-6 : 2e-3));
  }
}

/// Of every parameter |a - b| / |a|, norms over one parameter.
std::map<std::string, double> parameter_distances(const State& expected, const State& found) {
  REQUIRE(expected.size() == found.size());
  std::map<std::string, double> out;
  for (const auto& [name, bits] : expected) {
    if (name.starts_with("state.")) continue;  // of the optimizer
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const double a = std::bit_cast<float>(bits[i]), b = std::bit_cast<float>(found.at(name).at(i));
      difference += (a - b) * (a - b), norm += a * a;
    }
    out[name] = difference == 0 ? 0 : std::sqrt(difference / norm);
  }
  REQUIRE(out.size() == expected.size() / 4);  // beside exp_avg, exp_avg_sq and step
  return out;
}

double parameter_distance(const State& expected, const State& found) {
  double worst = 0;
  for (const auto& [name, distance] : parameter_distances(expected, found)) worst = worse(worst, distance);
  return worst;
}

/// Every mechanism of layouts that can be trained, on up to four ranks.
std::vector<RunSpec> all_layouts() {
  std::vector<RunSpec> runs = sharded_runs(small_run());
  for (const auto& more : {further_layouts(small_run()), replicated_experts(small_run()), context_runs(small_run())})
    runs.insert(runs.end(), more.begin(), more.end());
  return runs;
}

}  // namespace

TEST_CASE("every layout trains as one rank does") {
  const Trained expected = outcome_of(small_run());
  REQUIRE(expected.steps.size() == 20);
  for (const RunSpec& run : sharded_runs(small_run())) {
    INFO(run.layout.name());
    check_same(expected, outcome_of(run));
  }
}

TEST_CASE("it does not matter what is kept where, and for how long") {
  const Trained expected = outcome_of(small_run());
  for (const RunSpec& run : further_layouts(small_run())) {
    INFO(run.layout.name());
    check_same(expected, outcome_of(run));
  }
}

TEST_CASE("after ten steps every layout has the parameters of one rank") {
  const auto at_ten = [](RunSpec run) {
    run.save = true, run.steps = 10;
    return state_of(latest_checkpoint(trained(run)));
  };
  const State expected = at_ten(small_run());
  std::vector<RunSpec> runs = all_layouts();
  for (const RunSpec& run : uneven_runs(small_run())) runs.push_back(run);
  for (const RunSpec& run : runs) {
    INFO(run.layout.name());
    CHECK(parameter_distance(expected, at_ten(run)) <= 1e-5);
  }
}

TEST_CASE("recompute changes no bit of what is trained") {
  CHECK(steps_of(trained(with_layout(small_run(), 1, 1, 1, Recompute::block))) == steps_of(trained(small_run())));
  const auto plain = sharded_runs(small_run()), again = sharded_runs(small_run(), Recompute::block);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    INFO(plain[i].layout.name());
    CHECK(steps_of(trained(again[i])) == steps_of(trained(plain[i])));
  }
}

TEST_CASE("it does not matter where an expert lives") {
  const Trained expected = outcome_of(small_run());
  for (RunSpec run : {with_layout(small_run(), 2, 2, 2), with_layout(small_run(), 1, 4, 4)}) {
    run.layout.placement = {{7, 2, 5, 0, 3, 6, 1, 4}, {0, 1, 2, 3, 4, 5, 6, 7}, {1, 3, 5, 7, 0, 2, 4, 6}};
    INFO(run.layout.name());
    check_same(expected, outcome_of(run));
  }
}

TEST_CASE("it does not matter how many copies an expert has") {
  const Trained expected = outcome_of(small_run());
  for (const RunSpec& run : replicated_experts(small_run())) {
    INFO(run.layout.name());
    check_same(expected, outcome_of(run));
  }
}

TEST_CASE("it does not matter how many ranks share a sequence") {
  const Trained expected = outcome_of(small_run());
  for (const RunSpec& run : context_runs(small_run())) {
    INFO(run.layout.name());
    check_same(expected, outcome_of(run));
  }
}

TEST_CASE("ranks whose experts get no token train along") {
  RunSpec one = small_run();
  one.steps = 6;
  one.model.router.forced = RouterSpec::Forced::zipf, one.model.router.zipf_exponent = 40;  // experts 0 and 1, always
  const Trained expected = outcome_of(one);
  for (const auto& step : expected.choices)
    for (const auto& layer : step) REQUIRE((layer[0] == 24 * 48 && layer[1] == 24 * 48));
  std::vector<RunSpec> runs{with_layout(one, 1, 4, 4), with_layout(one, 2, 2, 2),
                            with_layout(one, 1, 4, 4, Recompute::block), replicated_experts(one)[0],
                            context_runs(one)[0]};
  runs.push_back(with_layout(one, 1, 4, 4));
  runs.back().layout.placement.assign(3, {2, 3, 4, 5, 6, 7, 0, 1});  // the last rank has all rows
  for (const RunSpec& run : runs) {
    INFO(run.layout.name());
    check_same(expected, outcome_of(run));
  }
}

TEST_CASE("microbatches only cut the batch") {
  const Trained expected = outcome_of(with_layout(small_run(), 2, 2, 2));
  for (const int microbatch : {1, 3, 4, 5, 6}) {
    RunSpec run = with_layout(small_run(), 2, 2, 2);
    run.layout.microbatch = microbatch;
    INFO("microbatch " << microbatch);
    check_same(expected, outcome_of(run));
  }
}

TEST_CASE("it does not matter whether the microbatch divides a rank's batch") {
  const Trained expected = outcome_of(small_run());
  for (const RunSpec& run : uneven_runs(small_run())) {
    INFO(run.layout.name() << ", microbatch " << run.layout.microbatch);
    check_same(expected, outcome_of(run));
  }
}

/// bf16 products and activations are rounded to 2^-9, and AdamW's first steps are as long whatever the gradient's size,
/// so that weights whose gradient is that small go the other way: after ten steps the parameters of one rank alone are
/// up to 13 % from those in fp32. A layout rounds other sums and may tip other choices of experts; it is allowed 2.5
/// times that distance, parameter by parameter (seen: 1.8 times, an expert's under context 4; with other samples 3.6 to
/// 29 times).
TEST_CASE(
    "in bf16 every layout starts where fp32 starts, and ten steps take it about as far from it as bf16 on one rank") {
  const auto ten = [](RunSpec run, Precision precision) {
    run.save = true, run.steps = 10, run.precision = precision;
    return trained(run);
  };
  const auto exact_folder = ten(small_run(), Precision::fp32);
  const State exact = state_of(latest_checkpoint(exact_folder));
  const auto expected = steps_of(exact_folder);
  const auto rounding = parameter_distances(exact, state_of(latest_checkpoint(ten(small_run(), Precision::bf16))));
  const auto furthest = [&](const std::filesystem::path& folder) {  // over that of one rank
    double most = 0;
    for (const auto& [name, distance] : parameter_distances(exact, state_of(latest_checkpoint(folder))))
      most = worse(most, distance == 0 ? 0 : distance / rounding.at(name));
    return most;
  };
  for (const auto& [name, distance] : rounding) CHECK(distance <= 0.15);
  for (const RunSpec& run : all_layouts()) {
    INFO(run.layout.name());
    const auto folder = ten(run, Precision::bf16);
    const auto found = steps_of(folder);
    CHECK(worst_loss(expected[0], found[0]) <= 1e-2);
    CHECK(off(expected[0].grad_norm, found[0].grad_norm) <= 1e-2);
    CHECK(found[0].loss != expected[0].loss);  // fp32 under another name would be equal
    for (std::size_t i = 1; i < found.size(); ++i) CHECK(worst_loss(expected[i], found[i]) <= 5e-2);
    CHECK(furthest(folder) <= 2.5);
  }
  RunSpec other = small_run();  // other samples: what the bound is there to see
  other.shuffle_seed += 1;
  CHECK(furthest(ten(other, Precision::bf16)) > 10);
}

TEST_CASE("the loss falls, from that of a uniform guess") {
  for (const RunSpec& run : {small_run(), with_layout(small_run(), 1, 4, 4)}) {
    const auto steps = steps_of(trained(run));
    CHECK(steps.front().loss == Approx(std::log(257.0)).epsilon(0.03));
    CHECK(steps.back().loss < 0.75 * steps.front().loss);
  }
}

TEST_CASE("another seed is another run") {
  RunSpec run = small_run();
  run.seed = 18;
  CHECK(steps_of(trained(run))[0].loss != steps_of(trained(small_run()))[0].loss);
}
