// DualPipe's V (dualpipe_v): its idle time by DeepSeek-V3's formula, and where its chunks are.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "sim/program/compose/pipeline_schedule.hpp"
#include "tests/fixtures/pipelines.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Seconds of DualPipe's V by its order alone. A forward pass and the backward pass beside it begin and end together
/// (`as_one`), or follow each other; forward, gradients of inputs and of weights take a second each.
double by_order(std::int64_t p, std::int64_t microbatches, bool as_one) {
  Layout layout = stages(p, 2, Schedule::dualpipe_v);
  layout.exchange_overlap = as_one;
  using Pass = StageWork::Pass;
  using Done = std::tuple<bool, std::int64_t, int>;  // forward, chunk, microbatch
  std::map<Done, double> done;
  std::vector<std::vector<StageWork>> order;
  for (std::int64_t s = 0; s < p; ++s) order.push_back(stage_schedule(layout, s, microbatches));
  std::vector<std::size_t> next(order.size(), 0);
  std::vector<double> now(order.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::int64_t s = 0; s < p; ++s) {
      const std::size_t at = static_cast<std::size_t>(s);
      while (next[at] < order[at].size()) {
        const std::size_t end = next[at] + (order[at][next[at]].overlapped ? 2 : 1);
        double begin = now[at], takes = 0;
        bool ready = true;
        std::vector<Done> ends;
        const auto needs = [&](const Done& what) {
          if (const auto found = done.find(what); found != done.end())
            begin = std::max(begin, found->second);
          else
            ready = false;
        };
        for (std::size_t i = next[at]; i < end; ++i) {
          const StageWork& work = order[at][i];
          const std::int64_t chunk = work.chunk == 0 ? s : 2 * p - 1 - s;
          const bool forward = work.pass == Pass::forward;
          takes += work.pass == Pass::backward ? 2 : 1;
          if (work.pass == Pass::weights) continue;
          if (forward && chunk > 0) needs({true, chunk - 1, work.microbatch});
          if (!forward) needs({true, chunk, work.microbatch});
          if (!forward && chunk + 1 < 2 * p) needs({false, chunk + 1, work.microbatch});
          ends.emplace_back(forward, chunk, work.microbatch);
        }
        if (!ready) break;
        now[at] = begin + takes;
        for (const Done& what : ends) done[what] = now[at];
        next[at] = end, moved = true;
      }
    }
  }
  for (std::size_t s = 0; s < order.size(); ++s) CHECK(next[s] == order[s].size());
  return *std::max_element(now.begin(), now.end());
}

}  // namespace

TEST_CASE(
    "DualPipe's V: p-1 forward passes of idle time, and DeepSeek-V3's (PP/2-1)(F&B + B - 3W) where pairs end as one") {
  for (const std::int64_t p : {2, 3, 4, 8})
    for (const std::int64_t m : {2 * p, 2 * p + 1, 5 * p}) {
      // Chunks of two layers: forward, gradients of inputs and of weights take 2 s each.
      const double P = static_cast<double>(p), busy = 2 * 3 * 2.0 * static_cast<double>(m);
      INFO(p << " stages, " << m << " microbatches");
      CHECK(in_layers(4 * p, stages(p, 2, Schedule::dualpipe_v), m) == Approx(busy + (P - 1) * 2).epsilon(1e-9));
      CHECK(by_order(p, m, false) == Approx(busy / 2 + (P - 1)));
      CHECK(by_order(p, m, true) == Approx(busy / 2 + (P - 1) * (3 + 2 - 3)));
    }
}

TEST_CASE("DualPipe's V turns round at the last stage: embedding and head on the first, no message at the turn") {
  const Layout layout = stages(3, 2, Schedule::dualpipe_v);
  ModelSpec model = dense_model(6);
  model.tied = true;
  const ProgramSet set = programs(model, layout, 6);
  for (std::size_t s = 0; s < 3; ++s) {
    std::map<std::string, int> ops;
    for (const OpInstance& instance : unroll(set.programs[s])) ++ops[instance.op->name];
    INFO("stage " << s);
    CHECK(ops["head"] == (s == 0 ? 6 : 0));
    CHECK(ops["embed.fwd"] == (s == 0 ? 6 : 0));
    const int messages = s == 1 ? 12 : 6;  // one way each of both ends, both ways in the middle
    for (const char* name : {"send.fwd", "receive.fwd", "send.bwd", "receive.bwd"}) CHECK(ops[name] == messages);
    CHECK(ops["tied.send"] == 0);
  }
}
