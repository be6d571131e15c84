// The posterior of a job's factors against closed forms of normal distributions.
#include "sim/cost/stacks/own_steps.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

using namespace wt;

namespace {

constexpr double kOwn2 = kMeasuredSpread * kMeasuredSpread, kOther = 0.3;

/// A step that consists of what one factor stretches.
StepSensitivity all_of(std::size_t factor) {
  StepSensitivity out{};
  out[factor] = 1;
  return out;
}

/// The variance of log(measured / predicted) before anything is measured, without the step's own error.
double prior_variance(const StepSensitivity& sensitivity) { return std::pow(OwnSteps().log_spread(sensitivity, 0), 2); }

}  // namespace

TEST_CASE("with nothing measured all factors are 1, and variances add") {
  const OwnSteps own;
  CHECK(own.factors().size() == kStackFactors.size());
  for (const auto& [name, factor] : own.factors()) {
    INFO(name);
    CHECK(factor == 1);
  }
  CHECK(OwnSteps(std::vector<OwnStep>{}).factors() == own.factors());
  const double common = prior_variance({}), first = prior_variance(all_of(0)) - common,
               third = prior_variance(all_of(2)) - common;
  CHECK((common > 0 && first > 0 && third > 0));
  StepSensitivity both{};
  both[0] = 0.5, both[2] = 0.25;
  CHECK(prior_variance(both) == Approx(common + 0.25 * first + third / 16));
}

TEST_CASE("one measured step moves each factor by its share of the variance") {
  const StepSensitivity products = all_of(0), memory = all_of(2);
  const double common = prior_variance({}), variance = prior_variance(products);
  const OwnSteps own({{products, 0.2}});
  const double seen = 0.2 / (variance + kOwn2);
  CHECK(own.log_shift(products) == Approx(variance * seen));
  CHECK(own.log_shift(memory) == Approx(common * seen));  // by the factor in common alone
  CHECK(own.factors().at("products") == Approx(std::exp(variance * seen)));
  CHECK(own.factors().at("memory") == Approx(std::exp(common * seen)));
  CHECK(std::pow(own.log_spread(products, kOther), 2) ==
        Approx(variance - variance * variance / (variance + kOwn2) + kOther * kOther));
  CHECK(std::pow(own.log_spread(memory, kOther), 2) ==
        Approx(prior_variance(memory) - common * common / (variance + kOwn2) + kOther * kOther));
}

TEST_CASE("many measured steps alike leave a step's own error") {
  StepSensitivity mixed{};
  mixed[0] = 0.6, mixed[4] = 0.3;
  const OwnSteps own(std::vector<OwnStep>(5000, {mixed, -0.3}));
  CHECK(own.log_shift(mixed) == Approx(-0.3).epsilon(1e-3));
  CHECK(own.log_spread(mixed, kOther) == Approx(kOther).epsilon(1e-3));
  CHECK(own.log_spread(all_of(8), 0) > 0.2);  // about what was not in them, little is known
}

TEST_CASE("two unlike steps tell their factors apart, in any order") {
  std::vector<OwnStep> steps{{all_of(0), 0.1}, {all_of(4), -0.2}};
  const OwnSteps own(steps);
  std::reverse(steps.begin(), steps.end());
  CHECK(own.log_shift(all_of(0)) > 0);
  CHECK(own.log_shift(all_of(4)) < 0);
  for (const std::size_t factor : {0, 2, 4})
    CHECK(OwnSteps(steps).log_shift(all_of(factor)) == Approx(own.log_shift(all_of(factor))));
}

TEST_CASE("factors are scaled until the measured step is what the posterior says of it") {
  const StepSensitivity mixed = [] {
    StepSensitivity out{};
    out[0] = 0.6, out[5] = 0.3;
    return out;
  }();
  // A step whose parts follow one another, so that large factors stretch it by more than powers of them.
  const auto simulated = [&](const std::map<std::string, double>& factors) {
    double step = 1;
    for (std::size_t i = 0; i < kStackFactors.size(); ++i) step += mixed[i] * (factors.at(kStackFactors[i]) - 1);
    return std::log(step);
  };
  for (const double log_ratio : {-0.15, 0.02, 0.2}) {
    OwnSteps own({{mixed, log_ratio}});
    const double before = simulated(own.factors()), wanted = own.log_shift(mixed);
    own.settle([&](const auto& factors) { return std::vector{simulated(factors)}; });
    CHECK(std::abs(simulated(own.factors()) - wanted) <= std::abs(before - wanted) + 1e-3);
    CHECK(simulated(own.factors()) == Approx(wanted).margin(0.03));
  }
  // Steps that are off in both directions settle, too.
  OwnSteps both({{all_of(0), 0.1}, {all_of(4), -0.1}});
  const auto factors = both.factors();
  both.settle([](const auto& f) { return std::vector{std::log(f.at("products")), std::log(f.at("network"))}; });
  for (const auto& [name, factor] : both.factors()) CHECK(factor == Approx(factors.at(name)).epsilon(0.05));
  for (const double log_ratio : {-3.0, 3.0})  // however far off, no factor goes beyond its limits
    for (const auto& [name, factor] : OwnSteps({{mixed, log_ratio}}).factors())
      CHECK((factor >= std::exp(-0.5) - 1e-9 && factor <= std::exp(0.5) + 1e-9));
}
