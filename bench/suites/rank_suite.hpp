// The suites that need several processes: collectives over the trainer's own process groups, alone and beside products,
// and the files of a sharded checkpoint. Ranks are started by trainer/agent; each takes part in bench_as_rank(), rank 0
// adds rows to the bench's profile.
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
  std::uint64_t seed = 17;          ///< of the order of samples, the same on every rank
  bool quick = false;               ///< collectives: only those that training calls
  std::vector<std::int64_t> bytes;  ///< sizes to measure
  std::int64_t replicate =
      1;  ///< collectives: groups on the axes of a mesh replicate x ranks / replicate; 1 = the world
  std::string device = "cpu";  ///< or "cuda", one device a rank
  std::filesystem::path
      folder;  ///< on the output's file system: storage's files, and the profile before it takes its place
};

/// The bench's profile so far, in a file. The rows that it has as a suite begins are measured by no rank; rank 0 adds
/// more as they are complete, so that a stop loses no others.
class RankRows {
 public:
  /// Reads the file. It is written by way of `folder`, on the same file system: a process that is killed leaves the
  /// file whole and nothing beside it.
  RankRows(std::filesystem::path file, std::filesystem::path folder);
  bool has(const Measurement& row) const { return names_.count(row.name()) > 0; }
  /// Nothing where `rows` is empty, as on all ranks but 0.
  void add(const Profile& rows);

 private:
  std::filesystem::path file_, folder_;
  Profile profile_;
  std::set<std::string> names_;
};

/// The ranks of this process's suite.
struct RankSuite {
  Communicators& communicators;
  const Mesh& mesh;
  StepClock& clock;
  const RankSuiteOptions& options;
};

/// What one rank saw of one sample.
struct RankSample {
  double wall_s = 0;         ///< on a device its own time, by events around the calls
  double process_cpu_s = 0;  ///< of all threads between issue and the end of wait
  double thread_cpu_s = 0;   ///< of the thread that issued and waited
};

/// One case on one rank; `error` says why its times are worth nothing.
struct RankCase {
  std::vector<RankSample> samples = {};
  std::string error = {};
  CaseWindows::Conditions device = {};  ///< of this rank's, while samples were taken
};

/// Sizes of the collective suite, ascending: 1 KiB to `largest`, doubling; quick: 4 KiB to 16 MiB in steps of 8.
std::vector<std::int64_t> collective_sizes(bool quick, std::int64_t largest);
/// The largest power of two so that all ranks' buffers (input, output, and the transport's copy) fit into that many
/// bytes, at most 8 GiB.
std::int64_t largest_collective(double available_bytes, std::int64_t ranks);
/// Samples of one size: all of them up to 16 MiB, a quarter beyond (at least 3).
int samples_of(std::int64_t bytes, int samples);
/// Where blocks of cases with messages of these sizes end. A block's samples are taken in one random order and its rows
/// kept together: 32 cases, or fewer that have 1 GiB of messages, or one with more.
std::vector<std::size_t> block_ends(const std::vector<std::int64_t>& bytes);

/// Every kind of collective_case.hpp, fp32, over all ranks, or over the two axes of a mesh (all groups of an axis at
/// the same time), each result checked. Sample = the longest time among the ranks, after a barrier, of several calls
/// (their mean), once one call was checked: wall time on the CPU (clock wall), the device's own between two events on
/// CUDA (clock device), where a row is `throttled` by what any rank's device was, and min_sm_clock_MHz is the lowest of
/// all. Counters algbw_Bps and busbw_Bps by nccl-tests' definitions; cpu_s = what the collective costs a rank in CPU:
/// its whole process between issue and the end of wait, transport threads and the issuing thread's part, mean over
/// ranks and median over samples; issuing_thread_cpu_s is that part alone. Shape: bytes, ranks and nodes; for axes also
/// groups (at the same time) and stride (from one rank of a group to the next). A wrong result is a failure of its row.
void bench_collectives(const RankSuite& suite, RankRows& rows);

/// "gemm_beside_all_gather" and so on: products while a collective is in flight. Sample = seconds of one product, the
/// longest among the ranks; counters gemm_alone_s (all ranks at it, nothing in flight), gemm_beside_s,
/// collective_alone_s, collective_beside_s and lost_share = 1 - alone / beside of the products.
void bench_overlap(const RankSuite& suite, RankRows& rows);

/// "step_computation": one rank's part of the run demo's step, the other ranks of the run faked
/// (trainer/launch/rehearse_rank), by every rank of the suite at the same time. Sample = the longest step among them;
/// counters cpu_s and issuing_thread_cpu_s of a rank's ops, and alone_cpu_s, the issuing thread's where rank 0 computes
/// alone.
void bench_crowding(const RankSuite& suite, RankRows& rows);

/// "checkpoint_write" (safetensors, checksum, fsync, rename) and "checkpoint_read", bytes / ranks on each rank. Sample
/// = the longest among the ranks. Reads are cold: pages are dropped from the cache first, and counter cold says whether
/// the kernel did so (tmpfs cannot).
void bench_storage(const RankSuite& suite, RankRows& rows);

class CollectiveCase;
/// Calls of one sample on a device, where the host's wait would else be half of the time; as many as nccl-tests makes.
constexpr int kDeviceCalls = 20;
/// The same on the CPU: ranks leave the barrier apart, by milliseconds where several share a core, and one call alone
/// would count that.
constexpr int host_calls(std::int64_t bytes) { return bytes <= (1 << 20) ? 8 : 2; }
/// So many calls of a prepared case behind a barrier: the mean of one.
RankSample take_sample(const RankSuite& suite, CollectiveCase& c, int calls);

/// Shared by the suites: every rank's cases, on rank 0 by [case][rank]; empty elsewhere. No key twice.
std::vector<std::vector<RankCase>> gather_cases(const RankSuite& suite, const std::string& key,
                                                const std::vector<RankCase>& own);
/// What a case's measurement is before it has samples.
Measurement rank_row(const std::string& kernel, std::int64_t bytes, std::int64_t ranks);
/// `row` with all ranks' samples of its case, and what was seen of their devices.
Measurement rank_measurement(Measurement row, const std::vector<RankCase>& by_rank);
/// `m`, or its failure where a rank has one.
void add_row(Profile& profile, Measurement m, const std::vector<RankCase>& by_rank);

/// The order in which ranks take samples: every (case, sample) once, shuffled alike everywhere, sample by sample, so
/// that a slow phase of the machine meets all cases. (Google Benchmark's own interleaving draws another order in each
/// process.)
std::vector<std::size_t> sample_order(std::size_t cases, int samples, std::uint64_t seed);

/// In a rank started by the agent: runs `suite` ("collectives" | "overlap" | "crowding" | "storage"), whose rows the
/// profile in `file` lacks.
void bench_as_rank(const std::string& suite, const RankSuiteOptions& options, const std::filesystem::path& file);

}  // namespace wt
