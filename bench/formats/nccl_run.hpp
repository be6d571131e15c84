// What one run of an nccl-tests program printed, before any of it is judged. The table and the JSON give the same.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace wt {

/// A number as it was printed, with half a unit of its last digit.
struct PrintedNumber {
  double value = 0, half = 0;
};

/// Out of place or in place. Times are the launch's CPU time where the run reports that (NcclRun::cpu_time).
struct NcclSide {
  PrintedNumber time_us, algbw_GBps, busbw_GBps;
};

struct NcclRow {
  std::string where;  ///< "log.txt:17", for errors
  std::int64_t bytes = 0;
  NcclSide out_of_place = {}, in_place = {};
  std::vector<double> each_us = {};  ///< out of place, one per iteration, where the run kept them (-I with -J)
};

struct NcclDevice {
  std::int64_t rank = 0, group = 0;
  std::string host, gpu;
};

struct NcclRun {
  /// Tests by their names here (nccl_test_names): those of the lines that the test itself prints, else those of
  /// commands before its table.
  std::set<std::string> tests = {};
  std::string nccl = {};  ///< version of the library; "" = not printed
  std::vector<NcclDevice> devices = {};
  std::vector<NcclRow> rows = {};
  bool cpu_time = false;
  std::set<std::string> notes = {};  ///< what a reader of the result should know
};

/// The tests named in a text by their programs, under this project's names of their collectives: "all_reduce" for
/// all_reduce_perf, all_reduce_perf_mpi and /opt/all_reduce_perf-2.18, "all_to_all" for alltoall_perf.
std::set<std::string> nccl_test_names(const std::string& text);
/// The test that a user names in any spelling: "alltoall", "all_to_all", "alltoall_perf". Throws Error{usage} with
/// `where`.
std::string nccl_test_named(const std::string& said, const std::string& where);

/// Both throw Error{usage} with origin and line or element: no row, ranks that are not 0, 1, 2, ..., two kinds of GPU,
/// two ranks on one GPU, wrong results, cells that are no numbers, a row that is cut off in the middle of a table.
std::vector<NcclRun> nccl_runs_of_text(const std::string& text, const std::string& origin);
NcclRun nccl_run_of_json(const nlohmann::json& document, const std::string& origin);

/// The number that a word is. Empty where it is none.
std::optional<PrintedNumber> printed_number(const std::string& word);
/// Throws Error{usage} unless the count of wrong results is 0 or was not made ("N/A", empty).
void check_nccl_results(const std::string& wrong, const std::string& where);
/// What is allowed where each process was a rank 0 of its own.
inline constexpr const char* kNcclOneRun =
    "ranks 0, 1, 2, ... of one run; each process ran a test of its own: build the tests with MPI=1, and start them "
    "with a "
    "launcher of the same MPI (srun --mpi=pmix)";
/// "2.29.7" of 22907.
std::string nccl_version(std::int64_t code);
[[noreturn]] void refuse_nccl(const std::string& where, const std::string& found, const std::string& allowed);

/// Adds a rank of the run. Throws as above.
class NcclDeviceList {
 public:
  void clear();
  /// `bus` tells GPUs apart whose index is 0 for every task that sees one.
  void add(NcclRun& run, NcclDevice device, const std::string& index, const std::string& bus, const std::string& where);

 private:
  std::set<std::vector<std::string>> seen_;
};

}  // namespace wt
