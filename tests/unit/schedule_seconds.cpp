// Bounds of pipelines against closed forms of Narayanan et al. 2021 (arXiv 2104.04473, section 2.2).
#include <catch2/catch.hpp>

#include "sim/bounds/schedule_seconds.hpp"

using namespace wt;

namespace {

constexpr double kForward_s = 1, kBackward_s = 2;

LayerSeconds equal_layers(std::size_t layers, double exchange_s = 0) {
  LayerSeconds s;
  s.forward.assign(layers, {kForward_s, exchange_s, kForward_s + exchange_s, exchange_s});
  s.backward.assign(layers, {kBackward_s, exchange_s, kBackward_s + exchange_s, exchange_s});
  return s;
}

Layout pipeline(std::int64_t stages, std::int64_t chunks = 1) {
  Layout l;
  l.pipeline = stages, l.virtual_stages = chunks;
  l.reshard_after_forward = l.reduce_every_microbatch = false;
  return l;
}

double scheduled(const Layout& l, std::int64_t layers, std::int64_t microbatches, double message_s = 0,
                 double exchange_s = 0) {
  return scheduled_step_s(equal_layers(static_cast<std::size_t>(layers), exchange_s), l, l.layers_of_chunks(layers),
                          microbatches, message_s);
}

}  // namespace

TEST_CASE("1F1B takes its microbatches and one less than the stages") {
  for (const std::int64_t p : {2, 3, 4, 8})
    for (const std::int64_t m : {8, 9, 32}) {
      const double each = (kForward_s + kBackward_s) * 2;  // two layers a stage
      CHECK(scheduled(pipeline(p), 2 * p, m) == Approx(static_cast<double>(m + p - 1) * each));
    }
}

TEST_CASE("chunks cut the idle time by their number") {
  for (const std::int64_t p : {2, 4})
    for (const std::int64_t v : {2, 4}) {
      const std::int64_t m = 4 * p;
      const double each = (kForward_s + kBackward_s) * static_cast<double>(v);
      CHECK(scheduled(pipeline(p, v), p * v, m) ==
            Approx(static_cast<double>(m) * each + static_cast<double>(p - 1) * each / static_cast<double>(v)));
    }
}

TEST_CASE("messages and exchanges make a step longer, a step is no shorter than the sum of its work") {
  const Layout l = pipeline(4, 2);
  const double plain = scheduled(l, 16, 8);
  CHECK(scheduled(l, 16, 8, 0.1) > plain);
  CHECK(scheduled(l, 16, 8, 0, 0.5) > plain);
  for (const double exchange_s : {0.0, 0.5})
    CHECK(least_step_s(equal_layers(16, exchange_s), l, l.layers_of_chunks(16), 8) <=
          scheduled(l, 16, 8, 0, exchange_s) * (1 + 1e-12));
}

TEST_CASE("beside another microbatch exchanges are hidden where computation is longer") {
  Layout beside = pipeline(4, 2);
  beside.exchange_overlap = true;
  const double shown = scheduled(pipeline(4, 2), 16, 16, 0, 0.5), hidden = scheduled(beside, 16, 16, 0, 0.5);
  CHECK(hidden < shown);
  CHECK(hidden > scheduled(pipeline(4, 2), 16, 16));  // filling and emptying the pipeline hides nothing
  CHECK(least_step_s(equal_layers(16, 0.5), beside, beside.layers_of_chunks(16), 16) <= hidden * (1 + 1e-12));
}
