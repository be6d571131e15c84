// Recompute by module and by block in the real trainer: what is trained stays the same bit for bit, and the step
// program knows what each policy keeps.
#include <catch2/catch.hpp>

#include "tests/fixtures/replayed_memory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Every module, their combinations, and different blocks in one run of three.
const std::vector<std::string> kPolicies{"norm",
                                         "attention",
                                         "experts",
                                         "attention+experts",
                                         "attention+experts+norm",
                                         "block:first-1+experts:range-1-2+attention:range-1-3+norm:last-1"};

RunSpec with(RunSpec run, const std::string& policy) {
  run.layout.recompute = recompute_from_string(policy);
  return run;
}

/// Peak memory by the replay; and as measured, where no exchange's scratch comes and goes beside it.
void check_less(const RunSpec& run, const RunSpec& than) {
  CHECK(replayed_peaks(run, 0).back() < replayed_peaks(than, 0).back());
  if (run.layout.world() == 1) CHECK(step_peaks_of(trained(run)).back() < step_peaks_of(trained(than)).back());
}

}  // namespace

TEST_CASE("what is computed again changes no bit of what is trained") {
  for (const RunSpec& plain : {short_run(), with_layout(short_run(), 2, 2, 2)})
    for (const std::string& policy : kPolicies) {
      INFO(plain.layout.name() << ", " << policy);
      CHECK(steps_of(trained(with(plain, policy))) == steps_of(trained(plain)));
    }
}

TEST_CASE("in bf16 neither") {
  RunSpec plain = short_run();
  plain.precision = Precision::bf16;
  for (const std::string policy : {"block", "attention+experts+norm"})
    CHECK(steps_of(trained(with(plain, policy))) == steps_of(trained(plain)));
}

TEST_CASE("the replayed peak of every policy is the measured one, and below that without recompute") {
  for (const RunSpec& plain : {short_run(), with_layout(short_run(), 2, 2, 2)})
    for (const std::string& policy : kPolicies) {
      const RunSpec run = with(plain, policy);
      const double step = step_memory_error(run), highest = highest_memory_error(run);
      INFO(plain.layout.name() << ", " << policy << ": typical step " << 100 * step << " %, highest " << 100 * highest
                               << " %");
      CHECK(step >= -0.02);
      CHECK(step <= 0.03);
      CHECK(std::abs(highest) <= 0.10);
      check_less(run, plain);
    }
}

TEST_CASE("every rank executed the ops of its mixed program, in order") {
  const RunSpec run = with(with_layout(short_run(), 2, 2, 2), kPolicies.back());
  const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  std::vector<std::string> expected;
  for (const OpInstance& op : unroll(set.programs[0])) expected.push_back(op.id());
  for (const StepTimeline& timeline : timelines_of(trained(run))) {
    std::vector<std::string> found;
    for (const OpRecord& op : timeline.ops) found.push_back(op.id);
    CHECK(found == expected);
  }
}

TEST_CASE(
    "compressed block inputs: the first loss is the same, the others stay in a band, the memory is what the replay "
    "says") {
  for (RunSpec plain : {short_run(), with_layout(short_run(), 2, 2, 2)})
    for (const std::string compression : {"int8", "fp8"}) {
      plain.layout.microbatch = 6;  // enough tokens for the inputs to be seen beside the exchanges' scratch
      const RunSpec run = with(plain, "block/" + compression), whole = with(plain, "block");
      const auto expected = steps_of(trained(whole)), found = steps_of(trained(run));
      INFO(run.layout.name() << ", " << compression);
      CHECK(found[0].loss == expected[0].loss);  // forward reads no compressed input
      CHECK(found[0].grad_norm != expected[0].grad_norm);
      CHECK(found[0].grad_norm == Approx(expected[0].grad_norm).epsilon(0.01));
      for (std::size_t i = 0; i < found.size(); ++i) {
        INFO("step " << i + 1);
        CHECK(found[i].loss == Approx(expected[i].loss).epsilon(compression == "int8" ? 0.005 : 0.01));
      }
      INFO("memory " << 100 * step_memory_error(run) << " %");
      CHECK(std::abs(step_memory_error(run)) <= 0.03);
      if (run.layout.world() == 1)
        check_less(run, whole);  // elsewhere other gradients soon mean other routing, and other peaks
    }
}
