// Recompute by module and by block in the real trainer: what is trained stays the same bit for bit, and the step
// program knows what each policy keeps.
#include <catch2/catch.hpp>

#include "tests/fixtures/families.hpp"
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

/// Every policy on one rank and on several.
std::vector<RunSpec> policy_runs() {
  std::vector<RunSpec> out;
  for (const std::string& policy : kPolicies)
    for (const RunSpec& plain : {short_run(), with_layout(short_run(), 2, 2, 2)}) out.push_back(with(plain, policy));
  return out;
}

}  // namespace

TEST_CASE("what is computed again changes no bit of what is trained") {
  for (const RunSpec& run : some_of(policy_runs())) {
    INFO(run.layout.name() << ", " << to_string(run.layout.recompute));
    CHECK(steps_of(trained(run)) == steps_of(trained(with(run, "none"))));
  }
}

TEST_CASE("in bf16 neither") {
  RunSpec plain = short_run();
  plain.precision = Precision::bf16;
  for (const RunSpec& run : some_of({with(plain, "attention+experts+norm"), with(plain, "block")}))
    CHECK(steps_of(trained(run)) == steps_of(trained(plain)));
}

TEST_CASE("the replayed peak of every policy is the measured one, and below that without recompute") {
  for (const RunSpec& run : some_of(policy_runs())) {
    const double step = step_memory_error(run), highest = highest_memory_error(run);
    INFO(run.layout.name() << ", " << to_string(run.layout.recompute) << ": step " << 100 * step << " %, highest "
                           << 100 * highest << " %");
    CHECK(step >= -0.02);
    CHECK(step <= 0.03);
    CHECK(std::abs(highest) <= 0.10);
    check_less(run, with(run, "none"));
  }
}

TEST_CASE("activations on the host change no bit of what is trained, and the device's memory is what the replay says") {
  RunSpec large = short_run();
  large.layout.microbatch = 6;
  RunSpec half = large, dense = large, masked = large;
  as_gpt_oss(masked.model);
  half.precision = Precision::bf16;
  dense.model.experts = dense.model.top_k = 0;
  std::vector<RunSpec> runs{half, dense, masked, with_layout(short_run(), 2, 2, 2), context_runs(short_run())[0]};
  for (const char* policy : {"none", "attention", "block:first-1+experts:last-1"}) runs.push_back(with(large, policy));
  for (const RunSpec& here : some_of(runs)) {
    RunSpec there = here;
    there.layout.offload_activations = true;
    const double step = step_memory_error(there), highest = highest_memory_error(there);
    INFO(there.layout.name() << ", " << to_string(there.precision) << ", " << to_string(there.layout.recompute)
                             << ": step " << 100 * step << " %, highest " << 100 * highest << " %");
    CHECK(steps_of(trained(there)) == steps_of(trained(here)));
    CHECK(std::abs(step) <= 0.02);
    CHECK(std::abs(highest) <= 0.10);
    check_less(there, here);
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
  std::vector<RunSpec> runs;
  for (RunSpec plain : {short_run(), with_layout(short_run(), 2, 2, 2)})
    for (const char* compression : {"block/int8", "block/fp8"}) {
      plain.layout.microbatch = 6;  // enough tokens for the inputs to be seen beside the exchanges' scratch
      runs.push_back(with(plain, compression));
    }
  for (const RunSpec& run : some_of(runs)) {
    const std::string compression = to_string(run.layout.recompute).substr(6);
    const RunSpec whole = with(run, "block");
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
