// One simulated step of a tiny model, op by op, as text.
#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "sim/replay/replay.hpp"
#include "tests/fixtures/fake_cost.hpp"
#include "tests/fixtures/golden.hpp"

using namespace wt;
using namespace wt::test;

namespace {

const char* const kFile = "tests/golden/replay_tiny.txt";

std::string transcript(bool host, const Layout& layout, const ClusterSpec& cluster) {
  const ModelSpec model = small_model(2);
  const auto routing = histogram_routing(model, 256, {{4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1}}, "test");
  FakeCost cost;
  cost.host_computes = host, cost.cpu_per_byte = host ? 2e-10 : 0;
  const auto set = build_program_set(model, layout, {256, 1, Precision::bf16, host});
  const ReplayResult r = replay(set, layout, model, cluster, cost, *routing);
  const StepTimeline& t = r.timelines[0];
  std::string out = fmt::format(
      "{} on {}: step {:.3f} us, interval {:.3f} .. {:.3f} us, exposed {:.3f} us, {} of {} ranks simulated\n",
      layout.name(), cluster.name, r.step_s * 1e6, r.low_s * 1e6, r.high_s * 1e6, r.exposed_s * 1e6, r.simulated_ranks,
      layout.world());
  out += fmt::format("{:28} {:>15} {:>12} {:>12} {:>10} {:>8}\n", "rank 0", "lane", "issued us", "done us", "waited us",
                     "rows");
  for (const OpRecord& op : t.ops)
    out += fmt::format("{:28} {:>15} {:>12.3f} {:>12.3f} {:>10.3f} {:>8.1f}\n", op.id, to_string(op.lane),
                       op.issued_s * 1e6, op.done_s * 1e6, op.waited_s * 1e6, op.rows);
  return out;
}

}  // namespace

TEST_CASE("simulated times of a tiny step, on GPUs and on shared cores") {
  const std::string found = transcript(false, {2, 8, 4, 1, Recompute::none, {}}, small_cluster(4, 2)) + "\n" +
                            transcript(true, {2, 2, 2, 1, Recompute::none, {}}, shared_host(4, 2));
  CHECK(found == golden(kFile, found));
}
