// What is trained does not depend on how the ranks are arranged: losses, balancing losses, gradient norms and, after
// ten steps, parameters of every layout against one rank alone.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "tests/fixtures/families.hpp"
#include "tests/fixtures/routing_csv.hpp"
#include "tests/fixtures/trainer_bounds.hpp"
#include "tests/fixtures/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// The larger one; what is not a number is beyond every limit (std::max would drop it).
double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? INFINITY : std::max(a, b); }

double off(double expected, double found) { return found == expected ? 0 : std::abs(found / expected - 1); }

double worst_loss(const Step& a, const Step& b) {
  double out = worse(worse(off(a.loss, b.loss), off(a.aux_loss, b.aux_loss)), off(a.z_loss, b.z_loss));
  REQUIRE(a.mtp_losses.size() == b.mtp_losses.size());
  for (std::size_t module = 0; module < a.mtp_losses.size(); ++module)
    out = worse(out, off(a.mtp_losses[module], b.mtp_losses[module]));
  return out;
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

/// The same samples and the same numbers (seen: 1e-7 at the first step, 7e-7 over ten; parameters 1.3e-5 apart on a CPU
/// with AMX, whose products are summed in another order).
void check_same(const RunSpec& expected, const RunSpec& found) {
  INFO(found.layout.name() << ", microbatch " << found.layout.microbatch);
  const auto alone = steps_of(trained(expected)), together = steps_of(trained(found));
  REQUIRE(together.size() == alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const Step &a = alone[i], &b = together[i];
    INFO("step " << i + 1);
    CHECK(b.samples == a.samples);
    CHECK(worst_loss(a, b) <= (i == 0 ? kFirstLoss : 1e-5));
    CHECK(off(a.grad_norm, b.grad_norm) <= (i == 0 ? 1e-6 : 2e-3));
  }
  const auto state = [](const RunSpec& run) { return state_of(latest_checkpoint(trained(run))); };
  CHECK(parameter_distance(state(expected), state(found)) <= kParameters);
}

void check_all(const std::vector<RunSpec>& runs) {
  for (const RunSpec& run : runs) check_same(short_run(), run);
}

}  // namespace

TEST_CASE("every layout trains as one rank does") { check_all(sharded_runs(short_run())); }

TEST_CASE("it does not matter what is kept where, and for how long") {
  check_all(some_of(further_layouts(short_run())));
}

TEST_CASE("it does not matter where an expert lives") {
  RunSpec run = with_layout(short_run(), 1, 4, 4);
  run.layout.placement = {{7, 2, 5, 0, 3, 6, 1, 4}, {0, 1, 2, 3, 4, 5, 6, 7}, {1, 3, 5, 7, 0, 2, 4, 6}};
  check_all({run});
}

TEST_CASE("it does not matter how many copies an expert has") { check_all(replicated_experts(short_run())); }

TEST_CASE("it does not matter how many ranks share a sequence") { check_all(some_of(context_runs(short_run()))); }

TEST_CASE("it does not matter for windows, sinks, biases and GPT-OSS's gate") {
  RunSpec run = short_run();
  as_gpt_oss(run.model);
  const auto sharded = sharded_runs(run);
  for (const RunSpec& other : some_of({sharded[2], sharded[5], replicated_experts(run)[0], context_runs(run)[0]}))
    check_same(run, other);
}

TEST_CASE("it does not matter for multi-token prediction") {
  RunSpec run = short_run();
  run.model.mtp_layers = 2;
  std::vector<RunSpec> runs = further_layouts(run);
  const auto sharded = sharded_runs(run), uneven = uneven_runs(run);  // the last of these shares sequences
  runs.insert(runs.end(), {sharded[2], sharded[5], uneven[3], uneven.back(), replicated_experts(run)[0]});
  for (const RunSpec& other : some_of(runs)) check_same(run, other);
}

TEST_CASE("microbatches only cut the batch, also where the last one is smaller") {
  check_all(some_of(uneven_runs(short_run())));
  for (const int microbatch : {1, 6}) {
    RunSpec run = with_layout(short_run(), 2, 2, 2);
    run.layout.microbatch = microbatch;
    check_all({run});
  }
}

TEST_CASE("it does not matter in how many pieces the loss is computed") {
  const auto in_pieces = [](RunSpec run, std::int64_t chunks) {
    run.loss_chunks = chunks;
    return run;
  };
  check_all({in_pieces(short_run(), 4), in_pieces(with_layout(short_run(), 1, 4, 2), 5),
             in_pieces(context_runs(short_run())[1], 1000)});
  RunSpec modules = short_run();
  modules.model.mtp_layers = 2;
  check_same(modules, in_pieces(with_layout(modules, 2, 2, 2), 3));
}

TEST_CASE("recompute changes no bit of what is trained") {
  for (const RunSpec& run : some_of(block_runs(short_run()))) {
    INFO(run.layout.name());
    RunSpec plain = run;
    plain.layout.recompute = Recompute::none;
    CHECK(steps_of(trained(run)) == steps_of(trained(plain)));
  }
}

TEST_CASE(
    "rows beyond an expert's capacity are dropped alike on two ranks, with experts elsewhere and copies of them") {
  RunSpec one = short_run();
  one.steps = 5, one.model.router.capacity_factor = 1;
  CHECK(steps_of(trained(one))[0].loss != steps_of(trained(short_run()))[0].loss);
  RunSpec copies = with_layout(one, 1, 2, 2);
  copies.layout.placement = replicated_experts(one)[1].layout.placement;
  for (const RunSpec& run : {with_layout(one, 1, 2, 2), with_layout(one, 1, 2, 2, Recompute::block), copies})
    check_same(one, run);
}

TEST_CASE("ranks whose experts get no token train along") {
  RunSpec one = short_run();
  one.steps = 3;
  one.model.router.forced = RouterSpec::Forced::zipf, one.model.router.zipf_exponent = 40;  // experts 0 and 1, always
  for (const auto& [key, counts] : RoutingRows(trained(one) / "routing.csv", one)) {
    const auto tokens = static_cast<double>(one.tokens().of(key[1]));
    REQUIRE((counts.at(0) == tokens && counts.at(1) == tokens));
  }
  std::vector<RunSpec> runs{with_layout(one, 1, 4, 4), with_layout(one, 1, 4, 4, Recompute::block),
                            replicated_experts(one)[0], context_runs(one)[0]};
  runs.push_back(with_layout(one, 1, 4, 4));
  runs.back().layout.placement.assign(3, {2, 3, 4, 5, 6, 7, 0, 1});  // the last rank has all rows
  for (const RunSpec& run : runs) check_same(one, run);
}

/// One layout for every way that rows, weights, gradients and state travel in bf16.
std::vector<RunSpec> bf16_layouts() {
  const auto sharded = sharded_runs(short_run()), further = further_layouts(short_run());
  std::vector<RunSpec> out{sharded[0], sharded[2], sharded[3], sharded[5]};
  for (const std::size_t i : {0, 1, 3, 5}) out.push_back(further[i]);
  out.push_back(replicated_experts(short_run())[0]);
  for (const std::size_t i : {0, 1}) out.push_back(context_runs(short_run())[i]);
  return out;
}

/// bf16 products and activations are rounded to 2^-9, and AdamW's first steps are as long whatever the gradient's size,
/// so that weights whose gradient is that small go the other way: after ten steps the parameters of one rank alone are
/// up to 13 % from those in fp32, and up to 17 % on a CPU with AMX. A layout rounds other sums and may tip other
/// choices of experts; it is allowed 2.5 times that distance, parameter by parameter (seen: 1.8 times, an expert's
/// under context 4; with other samples 3.6 to 29 times).
TEST_CASE("in bf16 a layout starts where fp32 starts, and ten steps take it about as far from it as bf16 on one rank") {
  const auto in_bf16 = [](RunSpec run) {
    run.precision = Precision::bf16;
    return trained(run);
  };
  const auto exact_folder = trained(short_run());
  const State exact = state_of(latest_checkpoint(exact_folder));
  const auto expected = steps_of(exact_folder);
  const auto rounding = parameter_distances(exact, state_of(latest_checkpoint(in_bf16(short_run()))));
  const auto furthest = [&](const std::filesystem::path& folder) {  // over that of one rank
    double most = 0;
    for (const auto& [name, distance] : parameter_distances(exact, state_of(latest_checkpoint(folder))))
      most = worse(most, distance == 0 ? 0 : distance / rounding.at(name));
    return most;
  };
  for (const auto& [name, distance] : rounding) CHECK(distance <= 0.2);
  for (const RunSpec& run : some_of(bf16_layouts())) {
    INFO(run.layout.name());
    const auto folder = in_bf16(run);
    const auto found = steps_of(folder);
    CHECK(worst_loss(expected[0], found[0]) <= kFirstLossBf16);
    CHECK(off(expected[0].grad_norm, found[0].grad_norm) <= kFirstLossBf16);
    CHECK(found[0].loss != expected[0].loss);  // fp32 under another name would be equal
    for (std::size_t i = 1; i < found.size(); ++i) CHECK(worst_loss(expected[i], found[i]) <= 5e-2);
    CHECK(furthest(folder) <= kParametersBf16);
  }
  RunSpec other = short_run();  // other samples: what the bound is there to see
  other.dataset.shuffle_seed += 1;
  CHECK(furthest(in_bf16(other)) > 10);
}

/// Sums in another order can tip the choice of a token between experts that are equal to it in all digits but the last
/// (seen: at step 9 at the earliest of these runs). From then on two runs differ by up to half a per cent.
TEST_CASE("the loss falls, from that of a uniform guess, into the second epoch and on other ranks alike") {
  const auto alone = steps_of(trained(small_run())), together = steps_of(trained(with_layout(small_run(), 1, 4, 4)));
  REQUIRE((alone.size() == 20 && together.size() == 20));
  CHECK(alone.front().loss == Approx(std::log(257.0)).epsilon(0.03));
  CHECK(alone.back().loss < 0.75 * alone.front().loss);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(together[i].samples == alone[i].samples);
    CHECK(worst_loss(alone[i], together[i]) <= 1e-2);
  }
}

TEST_CASE("another seed is another run") {
  RunSpec run = short_run();
  run.seed = 18, run.steps = 1;
  CHECK(steps_of(trained(run))[0].loss != steps_of(trained(short_run()))[0].loss);
}
