// Logs of nccl-tests in the forms that its versions print, with what they say. The logs are made up, after the tests'
// own source (src/util.cu, src/common.cu of 2.9 to 2.19): tests/data/nccl_tests.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "bench/formats/nccl_tests.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"

using namespace wt;
using Catch::Matchers::Contains;

namespace {

NcclTests read(const std::string& name, const NcclTestsOptions& options = {}) {
  const std::string file = "tests/data/nccl_tests/" + name, text = read_file(file, "a log");
  if (name.ends_with(".json")) return read_nccl_tests_json(lax_json(text), file, options);
  REQUIRE(is_nccl_tests(text));
  return read_nccl_tests(text, file, options);
}

struct Log {
  std::string file, test;
  std::int64_t ranks, hosts, groups;
  std::size_t sizes;
  double largest_us;  ///< of 512 MiB, out of place
};

// Times are latency + bytes (n-1)/n / rate, rounded as the log prints them.
const std::vector<Log> kRead{{"mpi_suffix.txt", "all_reduce", 16, 2, 1, 4, 2816.2},
                             {"all_gather_2.9.txt", "all_gather", 8, 1, 1, 4, 2062.4},
                             {"split_by_rail.txt", "all_reduce", 2, 2, 8, 4, 5990.23},
                             {"split_by_node.txt", "all_to_all", 8, 1, 2, 4, 1590.87},
                             {"split_without_groups.txt", "all_gather", 4, 1, 2, 4, 1367.18},
                             {"one_process.json", "all_reduce", 8, 1, 1, 4, 1977.325867},
                             {"two_processes.json", "all_gather", 8, 2, 1, 4, 3151.721387},
                             {"per_iteration.json", "all_reduce", 16, 2, 1, 4, 2788.034},
                             {"split.json", "all_reduce", 2, 2, 8, 4, 5985.232356},
                             {"cpu_time.json", "broadcast", 8, 1, 1, 4, 1585.86},
                             {"per_iteration.txt", "all_reduce", 8, 1, 1, 4, 1977.33},
                             {"timestamps.txt", "reduce_scatter", 8, 1, 1, 4, 1977.33},
                             {"cpu_time.txt", "all_reduce", 8, 1, 1, 4, 1977.33},
                             {"alltoallv.txt", "all_to_all_v", 8, 1, 1, 4, 2378.81},
                             {"rack.txt", "all_reduce", 72, 18, 1, 4, 1300.52},
                             {"nccl_info.txt", "all_reduce", 16, 2, 1, 4, 2816.2},
                             {"killed.txt", "all_reduce", 16, 2, 1, 3, 0},
                             {"hypercube.txt", "hypercube", 8, 1, 1, 4, 1977.33},
                             {"rccl.txt", "all_reduce", 8, 1, 1, 4, 1585.86},
                             {"labelled.txt", "send_recv", 2, 2, 1, 4, 13441.8},
                             {"failed_then_again.txt", "all_reduce", 16, 2, 1, 4, 2816.2}};

}  // namespace

TEST_CASE("every form of a log gives its test, group, hosts and times") {
  for (const Log& log : kRead) {
    INFO(log.file);
    const NcclTests found = read(log.file);
    CHECK(found.test == log.test);
    CHECK(found.ranks() == log.ranks);
    CHECK(found.hosts == log.hosts);
    CHECK(found.groups == log.groups);
    CHECK(found.sizes.size() == log.sizes);
    if (log.largest_us > 0)
      CHECK(median(found.sizes.at(1 << 29).out_of_place_s) == Approx(log.largest_us * 1e-6).epsilon(2e-3));
  }
}

TEST_CASE("with -I a sample is an iteration, without those that -K skips") {
  CHECK(read("per_iteration.json").sizes.at(1 << 20).out_of_place_s.size() == 9);
  CHECK(read("per_iteration.txt").sizes.at(1 << 20).out_of_place_s.size() == 1);
}

TEST_CASE("with -C times follow from the bandwidth, where its digits suffice") {
  const NcclTests found = read("cpu_time.txt");
  CHECK(found.sizes.count(1024) == 0);  // 0.05 GB/s
  REQUIRE(found.notes.size() == 1);
  CHECK_THAT(*found.notes.begin(), Contains("1 rows left out"));
}

TEST_CASE("racks of 18 hosts are one NVLink domain each") {
  const NcclTests rack = read("rack.txt"), two = read("two_racks.txt");
  CHECK(rack.nodes(72) == 1);
  CHECK(two.nodes(72) == 2);
  CHECK(two.nodes(0) == 36);
  CHECK(profile_of(rack, "r", 72).measurements[0].name() == "all_reduce/bytes=1048576,nodes=1,ranks=72");
  CHECK(read("mpi_suffix.txt").nodes(8) == 2);
}

TEST_CASE("groups that ran at once are in the measurement's name") {
  CHECK(profile_of(read("split_by_rail.txt"), "r").measurements[0].name() ==
        "all_reduce/bytes=1048576,groups=8,nodes=2,ranks=2");
}

TEST_CASE("flags supply what a log lacks") {
  CHECK(read("no_name_2.13.txt", {.test = "all_reduce"}).test == "all_reduce");
  CHECK(read("two_tests.txt", {.test = "allgather"}).sizes.at(1 << 29).out_of_place_s.size() == 1);
  const NcclTests excerpt = read("excerpt.txt", {.test = "all_reduce_perf", .gpus = 8, .gpu = "H100-SXM"});
  CHECK(excerpt.ranks() == 8);
  CHECK(excerpt.hosts == 1);
  CHECK(excerpt.gpu == "H100-SXM");
}

TEST_CASE("what a log does not say, or says wrongly, is refused with its reason") {
  const auto refused = [](const std::string& file, const std::string& why, const NcclTestsOptions& options = {}) {
    INFO(file);
    CHECK_THROWS_WITH(read(file, options), Contains(file) && Contains(why));
  };
  refused("no_name_2.13.txt", "--test");
  refused("two_tests.txt", "the tests all_gather, all_reduce");
  refused("two_tests.txt", "the test of --test, which is broadcast", {.test = "broadcast"});
  refused("no_name_2.13.txt", "is that of no number of ranks", {.test = "alltoall"});
  refused("wrong_name.txt", "is that of no number of ranks");
  refused("split_unknown.txt", "a list of 16 ranks, but busbw / algbw is that of 2 ranks");
  refused("excerpt.txt", "busbw / algbw is that of 8 GPUs", {.test = "all_reduce"});
  refused("excerpt.txt", "--gpus of 16 ranks, but busbw / algbw is that of 8 ranks",
          {.test = "all_reduce", .gpus = 16, .gpu = "H100-SXM"});
  refused("without_mpi_mixed.txt", "4 lists of devices that each begin with rank 0");
  refused("without_mpi_one_by_one.txt", "4 runs of a single rank");
  refused("cut_in_the_middle.txt", "words behind the element type");
  refused("out_of_bounds.txt", "wrong results");
  CHECK_THROWS_WITH(read("excerpt.txt", {.test = "all_reduse"}), Contains("--test: found 'all_reduse'"));
}
