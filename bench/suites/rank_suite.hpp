// The suites with several processes: collectives over the trainer's own process groups, alone and during products, and
// files of a sharded checkpoint. trainer/launch/agent.hpp starts the ranks. Each runs bench_as_rank(); rank 0 adds rows
// to the bench's profile.
#pragma once
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "bench/suites/device_watch.hpp"
#include "configs/files/profile.hpp"
#include "sim/program/mesh.hpp"
#include "trainer/communication/communicator.hpp"

namespace wt {

struct RankSuiteOptions {
  int samples = 9;
  std::uint64_t seed = 17;          ///< for the order of samples, the same on every rank
  bool quick = false;               ///< collectives: only the kinds that training uses
  std::vector<std::int64_t> bytes;  ///< sizes to measure
  std::int64_t replicate =
      1;  ///< collectives: groups on the axes of a mesh replicate x ranks / replicate; 1 = the world
  std::string device = "cpu";  ///< or "cuda", one device per rank
  std::filesystem::path
      folder;  ///< on the output's file system: for storage's files and for the profile before it is renamed
};

/// The bench's profile so far, in a file. Rows that it has when a suite begins are not measured again. Rank 0 adds rows
/// as they are complete, so that a stop loses only unfinished ones.
class RankRows {
 public:
  /// Reads the file. It is written through `folder` on the same file system, so that a killed process leaves the file
  /// intact and no other file next to it.
  RankRows(std::filesystem::path file, std::filesystem::path folder);
  bool has(const Measurement& row) const { return names_.count(row.name()) > 0; }
  /// Does nothing for empty `rows`, as on all ranks but 0.
  void add(const Profile& rows);

 private:
  std::filesystem::path file_, folder_;
  Profile profile_;
  std::set<std::string> names_;
};

/// What a suite uses on one rank.
struct RankSuite {
  Communicators& communicators;
  const Mesh& mesh;
  StepClock& clock;
  const RankSuiteOptions& options;
};

/// One rank's times of one sample.
struct RankSample {
  double wall_s = 0;         ///< on a device, its own time by events around the calls
  double process_cpu_s = 0;  ///< of all threads, from issue to the end of the wait
  double thread_cpu_s = 0;   ///< of the thread that issued and waited
};

/// One case on one rank; a non-empty `error` invalidates its times.
struct RankCase {
  std::vector<RankSample> samples = {};
  std::string error = {};
  CaseWindows::Conditions device = {};  ///< of this rank's device during the samples
};

/// Sizes of the collective suite, ascending: 1 KiB to `largest`, doubling; quick: 4 KiB to 16 MiB in steps of 8.
std::vector<std::int64_t> collective_sizes(bool quick, std::int64_t largest);
/// The largest power of two, up to 8 GiB, for which all ranks' buffers (input, output, the transport's copy) fit into
/// that many bytes.
std::int64_t largest_collective(double available_bytes, std::int64_t ranks);
/// Samples of one size: `samples` up to 16 MiB, a quarter of them above (at least 3).
int samples_of(std::int64_t bytes, int samples);
/// Ends of blocks of cases with messages of these sizes. The samples of a block are taken in one random order, and its
/// rows saved together. A block has up to 32 cases with at most 1 GiB of messages, or a single larger one.
std::vector<std::size_t> block_ends(const std::vector<std::int64_t>& bytes);

/// Every kind of collective_case.hpp in fp32, over all ranks, or over the two axes of a mesh (all groups of an axis at
/// the same time). Each result is checked, first in one call before the samples. A sample is the mean time of several
/// calls after a barrier, the longest among the ranks: wall time on the CPU (clock wall), time between two events on
/// CUDA (clock device). On CUDA a row has the `throttled` reasons of all ranks and the lowest min_sm_clock_MHz.
/// Counters: algbw_Bps and busbw_Bps by nccl-tests' definitions; cpu_s = CPU time of a rank's whole process from issue
/// to the end of the wait, transport threads included (mean over ranks, median over samples); issuing_thread_cpu_s =
/// the issuing thread's part. Shape: bytes, ranks and nodes; for axes also groups (at the same time) and stride
/// (between neighbouring ranks of a group). A wrong result is a failure of its row.
void bench_collectives(const RankSuite& suite, RankRows& rows);

/// "gemm_beside_all_gather" and others: products during a collective. A sample is the seconds of one product, the
/// longest among the ranks. Counters: gemm_alone_s (on all ranks, without a collective), gemm_beside_s,
/// collective_alone_s, collective_beside_s, and lost_share = 1 - alone / beside of the products.
void bench_overlap(const RankSuite& suite, RankRows& rows);

/// "step_computation": one rank's part of a step of the run `demo`, with the other ranks faked
/// (trainer/launch/rehearse_rank), computed by every rank of the suite at the same time. A sample is the longest step
/// among them. Counters: cpu_s and issuing_thread_cpu_s of a rank's ops, and alone_cpu_s, the issuing thread's time
/// where rank 0 computes alone.
void bench_crowding(const RankSuite& suite, RankRows& rows);

/// "checkpoint_write" (safetensors, checksum, fsync, rename) and "checkpoint_read", with bytes / ranks on each rank. A
/// sample is the longest time among the ranks. Reads are cold: pages are dropped from the cache first; the counter
/// `cold` says whether the kernel did so (tmpfs cannot).
void bench_storage(const RankSuite& suite, RankRows& rows);

class CollectiveCase;
/// Calls per sample on a device, where the host's wait would otherwise be half of the time; the default of nccl-tests.
constexpr int kDeviceCalls = 20;
/// Calls per sample on the CPU. Ranks leave the barrier at different times, by milliseconds where they share a core;
/// with a single call that would count.
constexpr int host_calls(std::int64_t bytes) { return bytes <= (1 << 20) ? 8 : 2; }
/// Runs this many calls of a prepared case after a barrier. Returns the mean of one.
RankSample take_sample(const RankSuite& suite, CollectiveCase& c, int calls);

/// Collects every rank's cases on rank 0, by [case][rank]; empty on other ranks. A key must not be used twice.
std::vector<std::vector<RankCase>> gather_cases(const RankSuite& suite, const std::string& key,
                                                const std::vector<RankCase>& own);
/// A case's measurement without samples.
Measurement rank_row(const std::string& kernel, std::int64_t bytes, std::int64_t ranks);
/// `row` with all ranks' samples of its case and the conditions of their devices.
Measurement rank_measurement(Measurement row, const std::vector<RankCase>& by_rank);
/// Adds `m`, or its failure where a rank has an error.
void add_row(Profile& profile, Measurement m, const std::vector<RankCase>& by_rank);

/// The order in which ranks take samples: every (case, sample) once, shuffled sample by sample and equally on all
/// ranks, so that a slow phase of the machine affects all cases. (Google Benchmark's interleaving differs between
/// processes.)
std::vector<std::size_t> sample_order(std::size_t cases, int samples, std::uint64_t seed);

/// Runs in a rank started by the agent: measures the rows of `suite` ("collectives" | "overlap" | "crowding" |
/// "storage") that the profile in `file` lacks.
void bench_as_rank(const std::string& suite, const RankSuiteOptions& options, const std::filesystem::path& file);

}  // namespace wt
