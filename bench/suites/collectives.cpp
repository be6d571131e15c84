// Measures collectives one after another over the trainer's own groups.
#include <algorithm>
#include <span>

#include "bench/suites/collective_case.hpp"
#include "bench/suites/rank_suite.hpp"
#include "configs/base/error.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

constexpr std::int64_t kManySamples_bytes = 16 << 20;
constexpr std::int64_t kLargest_bytes = std::int64_t{8} << 30;
constexpr double kBuffers = 3;  // input, output, the transport's copy
// A stop loses the current block: about half a minute on two cores.
constexpr std::size_t kBlock = 32;
constexpr std::int64_t kBlock_bytes = 1 << 30;

Measurement row_of(const RankSuite& suite, const CollectiveCase& c) {
  Measurement m = rank_row(to_string(c.kind()), c.bytes(), c.ranks());
  m.shape["nodes"] = 1;
  if (suite.options.replicate > 1) {
    m.shape["groups"] = suite.mesh.world() / c.ranks();
    m.shape["stride"] = suite.mesh.stride(c.axis());
  }
  if (!suite.clock.device().is_cpu()) m.clock = "device";
  return m;
}

Measurement measurement(const RankSuite& suite, const CollectiveCase& c, const std::vector<RankCase>& by_rank) {
  Measurement m = rank_measurement(row_of(suite, c), by_rank);
  if (m.samples.empty() || !(m.median() > 0)) return m;
  m.counters["algbw_Bps"] = static_cast<double>(c.bytes()) / m.median();
  m.counters["busbw_Bps"] = m.counters["algbw_Bps"] * bus_factor(c.kind(), c.ranks());
  return m;
}

Profile measured(const RankSuite& suite, std::span<CollectiveCase> cases, const std::string& key) {
  const RankSuiteOptions& o = suite.options;
  const bool on_cpu = suite.clock.device().is_cpu();
  std::vector<RankCase> own(cases.size());
  // A wrong result on one rank does not end its loop, because the others wait for it in the next collective.
  const auto checked = [&](std::size_t i) {
    cases[i].prepare();
    take_sample(suite, cases[i], 1);
    if (own[i].error.empty()) own[i].error = cases[i].wrong();
  };
  for (std::size_t i = 0; i < cases.size();
       ++i) {  // creates connections and buffers of every kind before timing starts
    checked(i);
    cases[i].release();
  }
  CaseWindows windows(suite.clock.device(), cases.size());
  for (std::size_t i : sample_order(cases.size(), o.samples, o.seed)) {
    if (static_cast<int>(own[i].samples.size()) >= samples_of(cases[i].bytes(), o.samples)) continue;
    checked(i);
    windows.begin(i);
    own[i].samples.push_back(take_sample(suite, cases[i], on_cpu ? host_calls(cases[i].bytes()) : kDeviceCalls));
    windows.end(i);
    cases[i].release();
  }
  const auto seen = windows.conditions();
  for (std::size_t i = 0; i < own.size(); ++i) own[i].device = seen[i];
  const auto all = gather_cases(suite, key, own);
  Profile out;
  for (std::size_t i = 0; i < all.size(); ++i) add_row(out, measurement(suite, cases[i], all[i]), all[i]);
  return out;
}

}  // namespace

std::vector<std::int64_t> collective_sizes(bool quick, std::int64_t largest) {
  std::vector<std::int64_t> out;
  for (std::int64_t bytes = quick ? 4096 : 1024; bytes <= (quick ? std::min(largest, kManySamples_bytes) : largest);
       bytes *= quick ? 8 : 2)
    out.push_back(bytes);
  return out;
}

std::int64_t largest_collective(double available_bytes, std::int64_t ranks) {
  std::int64_t bytes = 1024;
  while (bytes < kLargest_bytes && 2.0 * static_cast<double>(bytes * ranks) * kBuffers <= available_bytes) bytes *= 2;
  return bytes;
}

RankSample take_sample(const RankSuite& suite, CollectiveCase& c, int calls) {
  StepClock& events = suite.clock;
  const bool on_device = !events.device().is_cpu();
  suite.communicators.barrier();
  if (on_device) events.begin(), events.mark();
  const Clocks begin = Clocks::now();
  for (int i = 0; i < calls; ++i) c.issue()->wait();  // on a device only the stream waits
  const StepClock::Mark done = on_device ? events.mark() : StepClock::Mark{};
  suite.communicators.before_host_read();  // a dead link ends in a time-out instead of a hang
  wait_for_device(events.device());
  const Clocks end = Clocks::now();
  const double n = calls, seconds = on_device ? events.seconds(done) : end.wall_s - begin.wall_s;
  return {seconds / n, (end.process_cpu_s - begin.process_cpu_s) / n, (end.thread_cpu_s - begin.thread_cpu_s) / n};
}

std::vector<std::size_t> block_ends(const std::vector<std::int64_t>& bytes) {
  std::vector<std::size_t> out;
  std::size_t cases = 0;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (cases > 0 && (cases == kBlock || sum + bytes[i] > kBlock_bytes)) out.push_back(i), cases = 0, sum = 0;
    ++cases, sum += bytes[i];
  }
  if (cases > 0) out.push_back(bytes.size());
  return out;
}

int samples_of(std::int64_t bytes, int samples) {
  return bytes <= kManySamples_bytes ? samples : std::max(3, samples / 4);
}

void bench_collectives(const RankSuite& suite, RankRows& rows) {
  const RankSuiteOptions& o = suite.options;
  std::vector<CollectiveCase> cases;
  for (Axis axis : {Axis::shard, Axis::replicate})
    for (CollectiveKind kind : kCollectiveKinds)
      for (std::int64_t bytes : o.bytes)
        if (suite.mesh.size(axis) > 1 && has_group(kind, axis) && (!o.quick || kind <= CollectiveKind::broadcast)) {
          cases.emplace_back(suite.communicators, suite.mesh, axis, kind, bytes, o.seed, suite.clock.device());
          if (rows.has(row_of(suite, cases.back()))) cases.pop_back();
        }
  std::vector<std::int64_t> sizes;
  for (const CollectiveCase& c : cases) sizes.push_back(c.bytes());
  std::size_t begin = 0;
  for (std::size_t end : block_ends(sizes)) {
    rows.add(measured(suite, std::span(cases).subspan(begin, end - begin), fmt::format("collectives/{}", begin)));
    begin = end;
  }
}

}  // namespace wt
