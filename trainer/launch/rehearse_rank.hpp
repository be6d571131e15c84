// A rehearsal runs the step program of one rank of a planned layout, with the other ranks faked. So one device measures
// every op's compute time and the peak memory of a rank among thousands.
#pragma once
#include <filesystem>

#include "configs/files/run.hpp"
#include "trainer/executor/executor.hpp"

namespace wt {

/// Unmeasured steps at the start: first-touch memory, caches.
inline constexpr std::int64_t kRehearsalWarmUp = 2;

/// One rank that computes alone.
class RehearsedRank {
 public:
  /// To be called after prepare_rank_process; both must outlive this. Throws as rehearse().
  RehearsedRank(const RunSpec& run, StepClock& clock);
  ~RehearsedRank();
  /// Steps are consecutive, from 1.
  StepResult run_step(std::int64_t step);
  const Executor& executor() const;
  std::string routing() const;  ///< in words

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Runs rank run.rehearsal.rank at exactly the shape of `run` and writes into `folder`:
///   rehearsal.json  the measured steps as timelines, with what they were run on (schema windtunnel.rehearsal/1)
///   profile.json    op times for calibration
///   trace.json      Chrome trace of the last step
/// run.rehearsal.routing: a recording (routing.csv) of the ranks of its expert group; "" or "balanced" = even. Tokens
/// are those of run.dataset, or drawn uniformly if it is empty. Throws Error{usage} as read_run and the other readers.
void rehearse(const RunSpec& run, const std::filesystem::path& folder);

}  // namespace wt
