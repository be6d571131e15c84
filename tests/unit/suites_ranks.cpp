// The suites of several processes, as far as one process can tell: sizes, bandwidths, what results must be, and what is
// made of samples.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "bench/suites/collective_case.hpp"
#include "bench/suites/device_stress.hpp"
#include "bench/suites/rank_suite.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;

TEST_CASE("bus bandwidths are nccl-tests'") {  // doc/PERFORMANCE.md, its summary
  CHECK(bus_factor(CollectiveKind::all_reduce, 8) == Approx(1.75));
  for (CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                              CollectiveKind::all_to_all_uneven})
    CHECK(bus_factor(kind, 8) == Approx(0.875));
  CHECK(bus_factor(CollectiveKind::broadcast, 8) == 1);
  CHECK(bus_factor(CollectiveKind::send_recv, 8) == 1);
}

TEST_CASE("sizes double from 1 KiB to what memory allows, and quick ones stay the demo's") {
  CHECK(collective_sizes(true, 1 << 30) == std::vector<std::int64_t>{4096, 32768, 262144, 2097152, 16777216});
  CHECK(collective_sizes(true, 40000) == std::vector<std::int64_t>{4096, 32768});
  CHECK(collective_sizes(false, 8192) == std::vector<std::int64_t>{1024, 2048, 4096, 8192});
  const double quarter = 6.0 * (1 << 30);  // of 24 GiB
  CHECK(largest_collective(quarter, 4) == 512 << 20);
  CHECK(largest_collective(quarter, 2) == 1 << 30);
  CHECK(largest_collective(1e15, 8) == std::int64_t{8} << 30);
  CHECK(samples_of(16 << 20, 19) == 19);
  CHECK(samples_of(32 << 20, 19) == 4);
  CHECK(samples_of(32 << 20, 3) == 3);
}

TEST_CASE("buffers hold what their segments say, and one wrong element anywhere is found") {
  const std::int64_t count = (7 << 18) + 100;  // more than a piece
  const std::vector<Segment> segments{{0, 50, 3, 1, 2}, {50, count - 50, 5, 4, 10}};
  const at::Tensor buffer = at::zeros({count}, at::TensorOptions().dtype(at::kFloat));
  fill(buffer, segments);
  CHECK(buffer[0].item<double>() == 3 + 2);
  CHECK(buffer[4].item<double>() == 0 + 2);
  CHECK(buffer[50].item<double>() == 4 * 5 + 10);
  CHECK(buffer[count - 1].item<double>() == 4 * static_cast<double>((5 + count - 51) % 7) + 10);
  CHECK(first_wrong(buffer, segments) == -1);
  for (std::int64_t at :
       {std::int64_t{0}, std::int64_t{49}, std::int64_t{50}, (std::int64_t{7} << 18) + 60, count - 1}) {
    const at::Tensor changed = buffer.clone();
    changed[at] += 1;
    CHECK(first_wrong(changed, segments) == at);
    changed[at] = NAN;
    CHECK(first_wrong(changed, segments) == at);
  }
}

TEST_CASE("a rank measurement takes the slowest rank and the ranks' mean CPU") {
  const std::vector<RankCase> ranks{{{{1.0, 0.4, 0.1}, {2.0, 0.4, 0.1}}, ""}, {{{3.0, 0.2, 0.1}, {1.0, 0.2, 0.1}}, ""}};
  const Measurement m = rank_measurement(rank_row("all_gather", 4096, 2), ranks);
  CHECK(m.samples == std::vector<double>{3.0, 2.0});
  CHECK(m.counters.at("cpu_s") == Approx(0.3));
  CHECK(m.counters.at("issuing_thread_cpu_s") == Approx(0.1));
}

TEST_CASE("a row is throttled by what any rank's device was, and has the lowest clock") {
  std::vector<RankCase> ranks{{{{1.0, 0, 0}}, "", {{}, 1980}}, {{{1.0, 0, 0}}, "", {{"hw_thermal"}, 1400}}};
  const Measurement m = rank_measurement(rank_row("all_gather", 4096, 2), ranks);
  CHECK(m.throttled == std::vector<std::string>{"hw_thermal"});
  CHECK(m.counters.at("min_sm_clock_MHz") == 1400);
  ranks[1].device = {};
  CHECK(rank_measurement(rank_row("all_gather", 4096, 2), ranks).throttled.empty());
}

TEST_CASE("a result that is wrong on one rank makes a failure of the row") {
  Profile profile;
  std::vector<RankCase> ranks{{{{1.0, 0, 0}}, ""}, {{{1.0, 0, 0}}, ""}};
  add_row(profile, rank_measurement(rank_row("all_gather", 4096, 2), ranks), ranks);
  ranks[1].error = "rank 1: gave 3";
  add_row(profile, rank_measurement(rank_row("all_reduce", 4096, 2), ranks), ranks);
  CHECK(profile.measurements.size() == 1);
  REQUIRE(profile.failures.size() == 1);
  CHECK(profile.failures[0].name == "all_reduce/fp32/bytes=4096,ranks=2");
  CHECK(profile.failures[0].error == "rank 1: gave 3");
}

TEST_CASE("a block has 32 cases, or fewer with 1 GiB of messages, or one with more") {
  constexpr std::int64_t kGiB = 1 << 30;
  CHECK(block_ends({}).empty());
  CHECK(block_ends(std::vector<std::int64_t>(70, 1024)) == std::vector<std::size_t>{32, 64, 70});
  CHECK(block_ends({kGiB / 2, kGiB / 2, 4, 3 * kGiB, 3 * kGiB, 4}) == std::vector<std::size_t>{2, 3, 4, 5, 6});
}

TEST_CASE(
    "rows that are added to a profile are in its file, beside those that it had, and known to whom reads it next") {
  const test::TempDirectory folder, scratch;
  const std::filesystem::path file = folder / "out.json.partial";
  const auto row = [](std::int64_t bytes) {
    const std::vector<RankCase> ranks(2, {{{1.0, 0, 0}}, ""});
    return rank_measurement(rank_row("all_gather", bytes, 2), ranks);
  };
  write_profile({{{"host", "a"}}, {row(1)}}, file);
  RankRows rows(file, scratch.path());
  CHECK(rows.has(rank_row("all_gather", 1, 2)));
  CHECK_FALSE(rows.has(rank_row("all_gather", 2, 2)));
  rows.add({{}, {row(2)}, {{row(3).name(), "wrong"}}});
  CHECK(rows.has(row(2)));
  const Profile written = read_profile(file);
  CHECK(written.fingerprint.at("host") == "a");
  CHECK(written.measurements.size() == 2);
  CHECK(written.failures.size() == 1);
  const RankRows next(file, scratch.path());
  CHECK(next.has(row(1)));
  CHECK(next.has(row(2)));
  CHECK_FALSE(next.has(row(3)));
  CHECK(folder.entries() == 1);
  CHECK(scratch.entries() == 0);
}

TEST_CASE("ranks agree on the order of samples") {
  const auto order = sample_order(4, 3, 7);
  CHECK(order == sample_order(4, 3, 7));
  for (std::size_t round = 0; round < 3; ++round)
    CHECK(std::set<std::size_t>(order.begin() + static_cast<std::ptrdiff_t>(4 * round),
                                order.begin() + static_cast<std::ptrdiff_t>(4 * round + 4))
              .size() == 4);
}

TEST_CASE("a device under stress has a time for every repetition, and the same bits each time") {
  const auto clock = make_step_clock(at::kCPU);
  const DeviceObservation seen =
      stress_device(*clock, 3, {.width = 48, .products = 4, .copy_bytes = 4096, .copies = 2});
  CHECK(seen.stress_s.size() == 3);
  CHECK(seen.memory_Bps.size() == 3);
  for (double s : seen.stress_s) CHECK(s > 0);
  for (double Bps : seen.memory_Bps) CHECK(Bps > 0);
  CHECK(seen.wrong_results == 0);
}

namespace {

/// The argument that an op writes to, and how many more calls with it until one of its bits flips.
struct Flip {
  const char* op;
  at::ScalarType dtype;
  int in_calls;
};
Flip flip;

std::unique_ptr<at::ObserverContext> nothing(const at::RecordFunction&) { return nullptr; }

void flip_bit(const at::RecordFunction& call, at::ObserverContext*) {
  if (std::string_view(call.name()) != flip.op) return;
  const auto inputs = call.inputs();
  const at::Tensor written = (std::string_view(flip.op) == "aten::mm" ? inputs.back() : inputs.front()).toTensor();
  if (written.scalar_type() == flip.dtype && --flip.in_calls == 0)
    static_cast<unsigned char*>(written.data_ptr())[8] ^= 16;
}

}  // namespace

TEST_CASE("one bit that flips in a product or a copy is a wrong result") {
  const auto clock = make_step_clock(at::kCPU);
  const StressSize size{.width = 48, .products = 4, .copy_bytes = 4096, .copies = 2};
  // The second product of the first repetition, behind three to warm up; the last copy of the second, behind one.
  for (const Flip& planted : {Flip{"aten::mm", at::kFloat, 3 * 4 + 2}, Flip{"aten::copy_", at::kInt, 2 + 2 * 2}}) {
    flip = planted;
    const auto handle = at::addGlobalCallback(
        at::RecordFunctionCallback(nothing, flip_bit).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
    const DeviceObservation seen = stress_device(*clock, 3, size);
    at::removeCallback(handle);
    INFO(planted.op);
    CHECK(flip.in_calls <= 0);
    CHECK(seen.wrong_results == 1);
  }
}
