#include "sim/program/memory/choose_microbatch.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/files/run.hpp"
#include "sim/program/compose/schedule_microbatches.hpp"
#include "sim/program/memory/live_memory.hpp"

namespace wt {

double step_memory(const RunSpec& run) {
  ProgramOptions options = program_options(run);
  options.step_microbatches = options.microbatches;
  options.microbatches = std::min(options.microbatches, microbatches_to_peak(run.layout));
  options.last_microbatch = 0;  // a smaller last one needs less memory
  constexpr double kOverBalance = 2;
  const std::int64_t balanced = run.tokens_per_microbatch() * run.model.top_k, experts = run.model.experts;
  const double rows =
      std::min(kOverBalance * as_double(balanced), as_double(experts * run.model.router.capacity(balanced, experts)));
  return live_memory(build_program_set(run.model, run.layout, options), [rows](int, int) { return rows; }).peak();
}

RunSpec choose_microbatch(RunSpec run, double bytes, const std::string& where) {
  if (!run.microbatch_auto) return run;
  const std::int64_t sequences = run.global_batch / run.layout.data_ranks();
  double needed = 0;
  std::string refused;  // the schedule's reason for refusing the smallest microbatch
  for (std::int64_t microbatch = sequences; microbatch >= 1; --microbatch) {
    if (sequences % microbatch != 0) continue;
    refused = schedule_refuses(run.layout, sequences / microbatch);
    if (!refused.empty()) continue;
    run.layout.microbatch = microbatch;
    needed = step_memory(run);
    if (needed > bytes) continue;
    run.microbatch_auto = false;
    return run;
  }
  if (needed == 0)
    throw_usage(
        "{}: device_train_microbatch_size: found auto, but no size cuts the {} sequences of a rank into as many "
        "microbatches as the schedule takes: {} for {}; needs another global_train_batch_size",
        where, sequences, sequences, refused);
  throw_usage(
      "{}: device_train_microbatch_size: found auto, but {} needs {} a rank of {}; needs more ranks that share the "
      "weights, recompute, or a shorter max_seq_len",
      where, counted(run.layout.microbatch, "sequence"), format_bytes(needed), format_bytes(bytes));
}

}  // namespace wt
