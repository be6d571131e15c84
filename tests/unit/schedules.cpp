// Learning rates of a run, against what Composer 0.32.1's and LLM Foundry 0.22.0's own schedulers give (printed by them
// for the batches below, counted from 0), and the optimizers' keys.
#include <catch2/catch.hpp>

#include "configs/base/yaml.hpp"
#include "configs/files/optimizer.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "trainer/parameters/learning_rate.hpp"

using Catch::Contains;
using namespace wt;
using namespace wt::test;

namespace {

constexpr std::array<std::int64_t, 7> kBatches{0, 1, 3, 4, 5, 11, 19};

/// Batches of 10 sequences of 100 tokens.
OptimizerSpec read(const std::string& text, const std::string& length = "20ba") {
  YamlMap map = YamlMap::from_text(text, "run.yaml");
  OptimizerSpec out;
  read_optimizer(map, RunClock({10, 100}, Duration::parse(length, "length")), out);
  map.finish();
  return out;
}

void check_rates(const std::string& scheduler, const std::vector<double>& expected,
                 const std::string& length = "20ba") {
  OptimizerSpec o = read("scheduler: {first_step: 0, " + scheduler + "}", length);
  o.lr = 0.5;
  const std::int64_t steps = RunClock({10, 100}, Duration::parse(length, "length")).steps("length");
  if (o.schedule_steps == 0 && length == "19500tok") o.schedule_steps = 19.5;
  for (std::size_t i = 0; i < kBatches.size(); ++i)
    CHECK(learning_rate(o, kBatches[i] + 1, steps) == Approx(0.5 * expected[i]).epsilon(1e-12).margin(1e-15));
}

std::string refused(const std::string& text) {
  return usage_error([&] { read(text); });
}

}  // namespace

TEST_CASE("schedules give the rates of Composer and LLM Foundry") {
  check_rates("name: cosine_with_warmup, t_warmup: 4ba, alpha_f: 0.1",
              {0, 0.25, 0.75, 1, 0.9913533761814537, 0.6377906449072578, 0.10864662381854631});
  check_rates("name: cosine_with_warmup, t_warmup: 4ba, t_max: 30ba, alpha_f: 0.1",
              {0, 0.25, 0.75, 1, 0.9967189933441243, 0.8484051962083579, 0.44230795107059917});
  check_rates("name: linear_decay_with_warmup, t_warmup: 4ba, alpha_i: 0.8, alpha_f: 0.2",
              {0, 0.2, 0.6, 0.8, 0.7625, 0.5375, 0.2375});
  check_rates("name: constant_with_warmup, t_warmup: 4ba, alpha: 0.5", {0, 0.125, 0.375, 0.5, 0.5, 0.5, 0.5});
  check_rates(
      "name: inv_sqrt_with_warmup, t_warmup: 4ba, t_scale: 5ba, t_cooldown: 6ba, alpha_f_decay: 0.1, alpha_f_cooldown: "
      "0.05",
      {0, 0.25, 0.75, 1, 0.9215838362577492, 0.6809475019311125, 0.14493587371177724});
  check_rates("t_warmup: 0.15dur, alpha_f: 0", {0, 0.3333333333333333, 1, 0.991486549841951, 0.9662361147021779,
                                                0.546134179731651, 0.008513450158049107});
  check_rates("t_warmup: 0ba, alpha_f: 0.1", {1, 0.994459753267812, 0.9509529358847655, 0.9140576474687263,
                                              0.8681980515339464, 0.47960449073189604, 0.10554024673218806});
}

TEST_CASE("times in tokens end inside of a batch") {
  check_rates("t_warmup: 4500tok, alpha_f: 0",
              {0, 0.2222222222222222, 0.6666666666666666, 0.8888888888888888, 0.9972609476841366, 0.6039558454088796,
               0.002739052315863355},
              "19500tok");
  check_rates("t_warmup: 0.13dur, alpha_f: 0",
              {0, 0.39447731755424065, 0.9981474515896771, 0.981713018236495, 0.9488068638195071, 0.5016203293607172,
               0.002141715333286054},
              "19500tok");
}

TEST_CASE("a run file's own first step counts as one") {
  OptimizerSpec o;
  o.lr = 1, o.warmup_steps = 4, o.final_lr_fraction = 0.1;
  CHECK(learning_rate(o, 1, 20) == 0.25);
  CHECK(learning_rate(o, 4, 20) == 1);
  CHECK(learning_rate(o, 20, 20) == Approx(0.1));
  OptimizerSpec composer = o;
  composer.first_step = 0;
  for (std::int64_t step = 1; step < 20; ++step)
    CHECK(learning_rate(composer, step + 1, 20) == learning_rate(o, step, 20));
}

TEST_CASE("a decoupled decay is that of the step's rate over the first") {
  const OptimizerSpec adamw = read("optimizer: {name: decoupled_adamw, lr: 2.0e-4, weight_decay: 2.0e-5}");
  CHECK(adamw.kind == OptimizerKind::adamw);
  CHECK(adamw.weight_decay == Approx(0.1));
  CHECK(read("optimizer: {name: decoupled_adamw, lr: 0.01}").weight_decay == Approx(1e-3));  // its default is 1e-5
  const OptimizerSpec lion = read("optimizer: {name: decoupled_lionw, betas: [0.9, 0.95], weight_decay: 1.0e-6}");
  CHECK(lion.kind == OptimizerKind::lionw);
  CHECK(lion.one_moment());
  CHECK(lion.beta2 == 0.95);
  CHECK(lion.lr == 1e-4);  // llmfoundry/optim/lion.py
  CHECK(lion.weight_decay == Approx(0.01));
}

TEST_CASE("what is written of an optimizer reads back to the same") {
  for (const char* text :
       {"optimizer: {name: decoupled_lionw, lr: 3.0e-4, weight_decay: 1.0e-5}",
        "scheduler: {name: inv_sqrt_with_warmup, t_warmup: 1500tok, t_scale: 3ba, t_cooldown: 2ba, alpha_f_decay: 0.2}",
        "scheduler: {name: linear_decay_with_warmup, t_warmup: 2ba, alpha_i: 0.9, alpha_f: 0.3, first_step: 0}",
        "scheduler: {name: constant_with_warmup, alpha: 0.25, t_max: 7ba}"}) {
    const OptimizerSpec wanted = read(text);
    YAML::Emitter out;
    out << YAML::BeginMap;
    optimizer_to_yaml(wanted, 1000, out);
    out << YAML::EndMap;
    const OptimizerSpec found = read(out.c_str());
    CHECK(found.kind == wanted.kind);
    CHECK(found.weight_decay == wanted.weight_decay);
    CHECK(found.beta2 == wanted.beta2);
    CHECK(found.first_step == wanted.first_step);
    for (std::int64_t step = 1; step <= 20; ++step)
      CHECK(learning_rate(found, step, 20) == Approx(learning_rate(wanted, step, 20)).epsilon(1e-12));
  }
}

TEST_CASE("optimizers and schedules that make no sense are refused") {
  CHECK_THAT(refused("optimizer: {name: lion}"), Contains("lionw"));
  CHECK_THAT(refused("optimizer: {betas: [0.9]}"), Contains("needs a list of two numbers"));
  CHECK_THAT(refused("optimizer: {betas: [0.9, 1.5]}"), Contains("1.5"));
  CHECK_THAT(refused("optimizer: {betas: [0.9, 0.95], beta1: 0.9}"), Contains("needs one of the ways"));
  CHECK_THAT(refused("optimizer: {name: decoupled_adamw, lr: 0}"), Contains("lr: found 0"));
  CHECK_THAT(refused("optimizer: {name: lionw, offload_fraction: 0.5}"), Contains("allowed is 0"));
  CHECK_THAT(refused("scheduler: {name: cosine}"), Contains("cosine_with_warmup"));
  CHECK_THAT(refused("scheduler: {name: inv_sqrt_with_warmup, t_warmup: 1ba}"), Contains("t_scale: found none"));
  CHECK_THAT(refused("scheduler: {name: inv_sqrt_with_warmup, t_scale: 1ba, alpha_f_cooldown: 0.5}"),
             Contains("must not rise"));
  CHECK_THAT(refused("scheduler: {first_step: 2}"), Contains("allowed are 0 and 1"));
  CHECK_THAT(refused("scheduler: {name: constant_with_warmup, alpha_f: 0.1}"), Contains("alpha_f"));
}
