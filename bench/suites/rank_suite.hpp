// The suites that need several processes: collectives over the trainer's own process groups, and the files of a sharded
// checkpoint. Ranks are started by trainer/agent; each takes part in bench_as_rank(), rank 0 writes the profile.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "configs/spec/profile.hpp"
#include "trainer/communicator.hpp"

namespace wt {

struct RankSuiteOptions {
  int samples = 9;
  std::uint64_t seed = 17;          ///< of the order of samples, the same on every rank
  std::vector<std::int64_t> bytes;  ///< sizes to measure
  std::filesystem::path folder;     ///< storage only: where the files go; what is made there is removed again
};

/// What one rank saw of one sample.
struct RankSample {
  double wall_s = 0;
  double process_cpu_s = 0;  ///< of all threads between issue and the end of wait
  double thread_cpu_s = 0;   ///< of the thread that issued and waited
};

/// Sizes of a suite, ascending: 4 KiB to 16 MiB.
std::vector<std::int64_t> collective_sizes(bool quick);

/// all_gather, reduce_scatter, all_reduce and all_to_all of fp32 over all ranks of this world, each result checked.
/// Sample = the longest wall time among the ranks, after a barrier. Counter cpu_s = what the collective costs a rank in
/// CPU: its whole process between issue and the end of wait, transport threads and the issuing thread's part, mean over
/// ranks and median over samples; issuing_thread_cpu_s is that part alone. Empty on ranks other than 0.
/// Throws Error{runtime} when a result is wrong.
std::vector<Measurement> bench_collectives(Communicators& communicators, std::int64_t world,
                                           const RankSuiteOptions& options);

/// "checkpoint_write" (safetensors, checksum, fsync, rename) and "checkpoint_read" (pages dropped from the cache first,
/// which the kernel may refuse), bytes / ranks on each rank. Sample = the longest among the ranks.
std::vector<Measurement> bench_storage(Communicators& communicators, std::int64_t world,
                                       const RankSuiteOptions& options);

/// Shared by the two: every rank's samples [case][sample], on rank 0 by rank; empty elsewhere.
std::vector<std::vector<std::vector<RankSample>>> gather_samples(Communicators& communicators, std::int64_t world,
                                                                 const std::string& key,
                                                                 const std::vector<std::vector<RankSample>>& own);
/// A measurement from all ranks' samples of one case.
Measurement rank_measurement(const std::string& kernel, std::int64_t bytes, std::int64_t world,
                             const std::vector<std::vector<RankSample>>& by_rank);

/// The order in which ranks take samples: every (case, sample) once, shuffled alike everywhere, sample by sample, so
/// that a slow phase of the machine meets all cases. (Google Benchmark's own interleaving draws another order in each
/// process.)
std::vector<std::size_t> sample_order(std::size_t cases, int samples, std::uint64_t seed);

/// In a rank started by the agent: runs `suite` ("collectives" | "storage"), rank 0 writes the profile to `output`.
void bench_as_rank(const std::string& suite, const RankSuiteOptions& options, const std::filesystem::path& output);

}  // namespace wt
