// Measured steps of a job as evidence for its other steps, on simulated jobs whose truth is known.
#include "sim/own_runs/own_runs.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "configs/files/find.hpp"

using namespace wt;

namespace {

struct Job {
  RunSpec run = read_run(find_config("runs", "llama3-8b-128-h100"));
  ClusterSpec cluster = read_cluster("hgx-h100");
  TimeSources sources{.stack = "torchtitan"};
  double predicted(const RunSpec& of, const std::map<std::string, double>& factors = {}) const {
    TimeSources with = sources;
    with.factors = factors;
    return predicted_step_s(of, cluster, with);
  }
  MeasuredStep measured(const RunSpec& of, double step_s) const { return {"mine.yaml", of, cluster, step_s}; }
};

}  // namespace

TEST_CASE("a step measured as predicted changes no constant, and makes intervals narrower") {
  const Job job;
  const double step_s = job.predicted(job.run);
  const OwnRuns own = own_runs({job.measured(job.run, step_s)}, job.sources);
  for (const auto& [name, factor] : own.steps.factors()) {
    INFO(name);
    CHECK(factor == Approx(1).epsilon(1e-9));
  }
  REQUIRE(own.runs.size() == 1);
  CHECK(own.runs[0].after_s == Approx(step_s).epsilon(1e-9));
  const auto now = ratios_of(own.steps, job.run, job.cluster, job.sources),
             before = ratios_of(OwnSteps(), job.run, job.cluster, job.sources);
  REQUIRE((now.size() == 1 && before.size() == 1));
  CHECK(now[0].high < before[0].high);
  CHECK(now[0].low == Approx(1 / now[0].high));
}

TEST_CASE("shares of a step by constant are no more than all of it, and products have most of a dense one") {
  const Job job;
  double all = 0;
  for (const double share : sensitivity(job.run, job.cluster, job.sources)) {
    CHECK(share >= -0.01);
    all += share;
  }
  CHECK((all > 0.7 && all < 1.05));
  CHECK(sensitivity(job.run, job.cluster, job.sources)[0] > 0.4);
}

TEST_CASE("what a slow network costs one layout, another of the job is predicted to pay, too") {
  Job job;
  const std::map<std::string, double> truth{{"network", 1.6}, {"tensor", 1.6}, {"exchange", 1.6}};
  RunSpec other = job.run;
  other.layout.microbatch = 1, other.layout.recompute = Recompute::block;
  const double told = job.predicted(job.run, truth), asked = job.predicted(other, truth);
  const OwnRuns own = own_runs({job.measured(job.run, told)}, job.sources);
  const double before = std::abs(std::log(job.predicted(other) / asked)),
               after = std::abs(std::log(job.predicted(other, own.steps.factors()) / asked));
  CHECK(after <= before);
  CHECK(std::abs(std::log(own.runs[0].after_s / told)) < 0.5 * std::abs(std::log(own.runs[0].before_s / told)));
}
