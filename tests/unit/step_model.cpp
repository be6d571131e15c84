// The step-time model: closed forms of how work adds up, constants recovered from times made of them, and what a stack
// or GPU never measured gets.
#include "sim/cost/stacks/step_constants.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "configs/base/error.hpp"
#include "configs/files/stack.hpp"
#include "sim/fit/step_fit.hpp"

using namespace wt;
using C = StepConstant;

namespace {

StepTraits balanced() {
  StepTraits traits;
  traits.balanced_stages = true;
  return traits;
}

/// Every factor 1, everything once a step or of the host 0, nothing overlaps.
StepConstants plain() {
  StepConstants k;
  k.values.fill(0);
  for (C c :
       {C::products, C::attention, C::memory, C::fp8, C::network, C::tensor, C::exchange, C::replicas, C::optimizer})
    k.values[static_cast<std::size_t>(c)] = 1;
  return k;
}

StepConstants with(StepConstants k, C constant, double value) {
  k.values[static_cast<std::size_t>(constant)] = value;
  return k;
}

StepWork computing(double forward_s, double backward_s) {
  StepWork w;
  w.forward.products.wide_s = forward_s;
  w.backward.products.wide_s = backward_s;
  return w;
}

/// Work of many proportions.
StepWork random_work(std::mt19937& draw) {
  std::lognormal_distribution<double> size(0, 0.7);
  StepWork w;
  for (PhaseWork* p : {&w.forward, &w.backward}) {
    p->products.wide_s = size(draw), p->attention_s = 0.1 * size(draw), p->memory_s = 0.2 * size(draw);
    p->launches = 3000 * size(draw), p->gather_s = 0.3 * size(draw);
  }
  w.ends.products.wide_s = 0.1 * size(draw);
  w.optimizer_s = 0.02 * size(draw);
  w.replicas_s = 0.05 * size(draw);
  return w;
}

std::vector<TimedStep> made(const std::vector<StepWork>& works, const StepConstants& k, const std::string& stack,
                            const std::string& gpu) {
  std::vector<TimedStep> out;
  for (std::size_t i = 0; i < works.size(); ++i) {
    const StepTraits traits{.stack = stack, .chip = gpu};
    out.push_back({&works[i], traits, stack + std::to_string(i % 6), step_seconds(works[i], traits, k)});
  }
  return out;
}

}  // namespace

TEST_CASE("without overlap a step is the sum of its parts") {
  StepWork w = computing(2, 4);
  w.forward.gather_s = 0.5;
  w.backward.tensor_s = 0.25;
  w.ends.products.wide_s = 1;
  w.optimizer_s = 0.125;
  w.replicas_s = 0.0625;
  CHECK(step_seconds(w, {}, plain()) == Approx(2 + 4 + 0.5 + 0.25 + 1 + 0.125 + 0.0625));
}

TEST_CASE("with perfect overlap the longer of computation and gathers counts, and of GPU and host") {
  StepConstants k = with(with(plain(), C::gather_power, 1e3), C::host_power, 1e3);
  k = with(k, C::item_s, 1e-3);
  StepWork w = computing(2, 4);
  w.forward.gather_s = 3;
  w.backward.gather_s = 1;
  w.forward.launches = 500;    // 0.5 s
  w.backward.launches = 5000;  // 5 s: the host cannot keep up
  CHECK(step_seconds(w, {}, k) == Approx(3 + 5).epsilon(1e-3));
}

TEST_CASE("equal stages fill a pipeline in (p - 1) / (v m) of a stage's time") {
  for (double stages : {2.0, 4.0, 8.0})
    for (double microbatches : {4.0, 16.0})
      for (double chunks : {1.0, 2.0}) {
        StepWork w = computing(2, 4);
        w.stages = stages, w.microbatches = microbatches, w.chunks = chunks;
        w.layers = 8 * stages, w.stage_layers = 8;
        for (bool balanced : {false, true}) {
          StepTraits traits;
          traits.balanced_stages = balanced;
          CHECK(step_seconds(w, traits, plain()) == Approx(6 * (1 + (stages - 1) / chunks / microbatches)));
        }
      }
}

TEST_CASE("an output projection larger than a stage is the stage that the others wait for") {
  StepWork w = computing(0.5, 0.5);  // of 2 layers: 0.5 s each
  w.ends.products.wide_s = 3;
  w.stages = 8, w.layers = 16, w.stage_layers = 2, w.microbatches = 1e9;
  CHECK(step_seconds(w, balanced(), plain()) == Approx(3));        // alone on the last stage
  CHECK(step_seconds(w, StepTraits{}, plain()) == Approx(1 + 3));  // beside its layers
  w.ends.products.wide_s = 1;                                      // 9 s in all; of 0.5 s each, the fullest of 8 has 3
  CHECK(step_seconds(w, balanced(), plain()) == Approx(1.5));
}

TEST_CASE("layers that do not go evenly over stages leave room for embedding and output projection") {
  StepWork w = computing(2, 2);  // of 4 layers: 1 s each
  w.stages = 4, w.layers = 13, w.stage_layers = 4, w.microbatches = 1e9;
  w.ends_as_layers = true;
  w.ends.products.wide_s = 2;
  CHECK(step_seconds(w, {}, plain()) == Approx(4));  // 15 s over 4 stages: the last has 1 layer and the ends
  w.ends.products.wide_s = 7;
  CHECK(step_seconds(w, {}, plain()) == Approx(7));  // alone on its stage
  w.ends.products.wide_s = 5;
  CHECK(step_seconds(w, {}, plain()) == Approx(5));
  w.ends_as_layers = false;
  CHECK(step_seconds(w, {}, plain()) == Approx(9));
}

TEST_CASE("a fit finds the constants that times were made of, stacks and GPUs apart") {
  std::mt19937 draw(7);
  std::vector<StepWork> a, b, c;
  for (int i = 0; i < 60; ++i)
    a.push_back(random_work(draw)), b.push_back(random_work(draw)), c.push_back(random_work(draw));
  StepConstants typical = plain();
  typical.values = {1.05, 1.2, 1.4, 1.2, 50e-6, 60e-6, 2, 1.5, 1.1, 1, 1, 1, 2e-3, 0.4, 0.5, 1.2, 0.01, 10e-6};
  const StepConstants slower = with(with(typical, C::memory, 2.1), C::item_s, 90e-6),
                      hotter = with(typical, C::products, 1.05 * 1.15);
  std::vector<TimedStep> steps = made(a, typical, "plain", "A");
  for (const TimedStep& s : made(b, slower, "eager", "A")) steps.push_back(s);
  for (const TimedStep& s : made(c, hotter, "plain", "B")) steps.push_back(s);
  const StepModel model = fit_steps(steps);
  CHECK(model.knows_stack("eager"));
  CHECK_FALSE(model.knows_stack("another"));
  for (const TimedStep& s : steps)
    CHECK(step_seconds(*s.work, s.traits, model.constants(s.traits)) ==
          Approx(s.seconds).epsilon(0.06));  // priors pull
  // A stack that nobody measured lies between those that were.
  const StepWork fresh = random_work(draw);
  const double guess =
      step_seconds(fresh, {.stack = "another", .chip = "A"}, model.constants({.stack = "another", .chip = "A"}));
  const double low = step_seconds(fresh, {}, typical), high = step_seconds(fresh, {}, slower);
  CHECK(guess > 0.95 * low);
  CHECK(guess < 1.05 * high);
  // What a stack's file says counts before the fit.
  const StepTraits told{.stack = "eager", .chip = "A", .factors = {{"memory", 1.0}}};
  CHECK(model.constants(told)[C::memory] == Approx(model.constants({})[C::memory]));
  CHECK(model.constants(told)[C::item_s] == Approx(model.constants({.stack = "eager", .chip = "A"})[C::item_s]));
  CHECK(model.factors("eager").at("memory") > 1.2);
  CHECK(model.factors("another").at("memory") == 1);
  std::vector<std::string> names;
  for (const auto& [name, factor] : model.factors("eager")) names.push_back(name);
  CHECK_THAT(names, Catch::UnorderedEquals(std::vector<std::string>(kStackFactors.begin(), kStackFactors.end())));
  // In another order the same steps say the same.
  std::reverse(steps.begin(), steps.end());
  const StepModel again = fit_steps(steps);
  CHECK(step_seconds(fresh, {.stack = "another", .chip = "A"}, again.constants({.stack = "another", .chip = "A"})) ==
        Approx(guess).epsilon(1e-3));
  CHECK_THROWS_AS(fit_steps({}), Error);
}

TEST_CASE("products lose as much at each halving of their bits") {
  const StepConstants k = with(with(plain(), C::products, 1.1), C::fp8, 1.4);
  CHECK(k.seconds({1, 0, 0}) == Approx(1.1));
  CHECK(k.seconds({0, 1, 0}) == Approx(1.1 * 1.4));
  CHECK(k.seconds({1, 2, 3}) == Approx(1.1 * (1 + 1.4 * 2 + 1.4 * 1.4 * 3)));
}
