// A rehearsal: one rank of a planned layout runs its step program for real, with the other ranks faked, so that one
// device measures the compute time of every op and the peak memory of a rank of thousands.
#pragma once
#include <filesystem>

#include "configs/files/run.hpp"
#include "trainer/executor/executor.hpp"

namespace wt {

/// Steps before those that are measured: first-touch memory, caches.
inline constexpr std::int64_t kRehearsalWarmUp = 2;

/// One rank that computes by itself.
class RehearsedRank {
 public:
  /// After prepare_rank_process; both must outlive it. Throws as rehearse().
  RehearsedRank(const RunSpec& run, StepClock& clock);
  ~RehearsedRank();
  /// Steps are numbered from 1 and come one after another.
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
/// are those of run.dataset, or drawn evenly where that is empty. Throws Error{usage} on what read_run and the readers
/// refuse.
void rehearse(const RunSpec& run, const std::filesystem::path& folder);

}  // namespace wt
