// The cost of sharing cores: computation must refill caches after each of the scheduler's time slices.
#include "bench/suites/rank_suite.hpp"
#include "configs/files/find.hpp"
#include "trainer/launch/rehearse_rank.hpp"
#include "trainer/launch/worker.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// CPU seconds of the ops of one step.
RankSample computed(RehearsedRank& rank, std::int64_t step) {
  const StepTimeline timeline = rank.run_step(step).timeline;
  RankSample out{timeline.step_s, 0, 0};
  for (const OpRecord& op : timeline.ops) out.process_cpu_s += op.process_cpu_s, out.thread_cpu_s += op.thread_cpu_s;
  return out;
}

}  // namespace

void bench_crowding(const RankSuite& suite, RankRows& rows) {
  Measurement row = rank_row("step_computation", 0, suite.mesh.world());
  row.shape.erase("bytes");
  if (rows.has(row)) return;
  RunSpec run = read_run(find_config("runs", "demo"));
  run.dataset.use_folder({});  // random tokens
  const auto clock = make_step_clock(prepare_rank_process(run, 0));
  RehearsedRank rank(run, *clock);
  std::int64_t step = 0;
  for (; step < kRehearsalWarmUp;) computed(rank, ++step);
  RankCase alone, together;
  for (int i = 0; i < suite.options.samples; ++i) {  // alternates, so that a slow phase of the machine affects both
    suite.communicators.barrier();
    if (suite.communicators.rank() == 0) alone.samples.push_back(computed(rank, ++step));
    suite.communicators.barrier();
    together.samples.push_back(computed(rank, ++step));
  }
  if (suite.communicators.rank() != 0) alone = together;  // only to have as many samples; not used
  const auto all = gather_cases(suite, "crowding", {alone, together});
  if (all.empty()) return;
  Measurement m = rank_measurement(row, all[1]), single;
  m.counters.erase("max_rel_error");  // a rehearsal has no reference
  for (const RankSample& sample : all[0].front().samples) single.samples.push_back(sample.thread_cpu_s);
  m.counters["alone_cpu_s"] = single.median();
  rows.add({{}, {m}});
}

}  // namespace wt
