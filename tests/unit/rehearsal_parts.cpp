// The parts of a rehearsal that run in the trainer: forced choices, made-up weights, faked collectives.
#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <set>

#include "configs/base/error.hpp"
#include "trainer/launch/rehearsal_communicators.hpp"
#include "trainer/model/forced_routing.hpp"
#include "trainer/parameters/plausible_weights.hpp"

using namespace wt;
using Catch::Contains;

namespace {

RunSpec run_of_eight() {
  RunSpec run;
  ModelSpec& m = run.model;
  m.name = "small", m.layers = 2, m.d_model = 16, m.heads = 2, m.kv_heads = 1, m.head_dim = 8, m.ffn = 8;
  m.experts = 8, m.top_k = 2, m.vocab = 32;
  run.layout.replicate = 2, run.layout.shard = 4, run.layout.expert = 4;
  run.seq = 8, run.global_batch = 8, run.rehearsal.rank = 6;
  return run;
}

at::Tensor numbers(std::int64_t n) { return at::arange(1, n + 1, at::kFloat); }

}  // namespace

TEST_CASE("every expert is chosen as often as the counts say, by no token twice") {
  const std::vector<std::int64_t> counts{7, 1, 0, 5, 3};
  const auto chosen = choose_experts(counts, 8, 2, 3);
  std::vector<std::int64_t> found(counts.size());
  for (std::size_t token = 0; token < 8; ++token) {
    CHECK(chosen[2 * token] != chosen[2 * token + 1]);
    for (std::size_t k = 0; k < 2; ++k) ++found[static_cast<std::size_t>(chosen[2 * token + k])];
  }
  CHECK(found == counts);
  CHECK_THROWS_WITH(choose_experts(counts, 9, 2, 3), Contains("16") && Contains("18"));
}

TEST_CASE("made-up weights leave the own slice alone and have the spread of initial ones") {
  const RunSpec run = run_of_eight();
  for (const Group group : {Group::dense, Group::expert, Group::embedding, Group::head}) {
    const GroupLayout layout = group_layout(run.model, run.layout, group, 0, run.rehearsal.rank);
    at::Tensor full = at::full({layout.padded()}, 7.0);
    if (layout.shard_ranks == 1) continue;
    PlausibleWeights(1).fill(full, layout);
    const std::int64_t n = layout.shard_elements, own = layout.shard_index * n;
    CHECK(full.narrow(0, own, n).eq(7.0).all().item<bool>());
    for (const ParameterInfo& p : layout.parameters) {
      const at::Tensor part = full.narrow(0, p.offset, p.elements()), others = part.masked_select(part.ne(7.0));
      if (p.init_std == 0)
        CHECK(others.eq(1.0).all().item<bool>());
      else if (others.numel() > 100)
        CHECK(others.std().item<double>() == Approx(p.init_std).epsilon(0.2));
    }
  }
}

TEST_CASE("faked ranks hold what this one holds: sums are times the group, slices are the own ones") {
  RunSpec run = run_of_eight();
  run.layout.expert = 1;  // expert weights are sharded like the dense ones
  const auto routing = balanced_routing(run.model, run.tokens_per_microbatch());
  RehearsalCommunicators c(run, *routing);
  c.begin_step(1);
  const GroupLayout embedding = group_layout(run.model, run.layout, Group::embedding, -1, 6);
  at::Tensor full = at::zeros({embedding.padded()});
  const at::Tensor part = numbers(embedding.shard_elements);
  c.all_gather(Axis::shard, full, part)->wait();
  CHECK(full.narrow(0, 2 * part.size(0), part.size(0)).equal(part));  // rank 6 is the third of its four
  CHECK(full.ne(0).all().item<bool>());
  CHECK(c.last_issued().bytes == static_cast<std::int64_t>(full.nbytes()));
  CHECK_THROWS_WITH(c.end_step(), Contains("1 collectives") && Contains("is missing"));
}

TEST_CASE("a collective out of order, of another kind or size ends the rehearsal with what the program has there") {
  const RunSpec run = run_of_eight();
  const auto routing = balanced_routing(run.model, run.tokens_per_microbatch());
  RehearsalCommunicators c(run, *routing);
  c.begin_step(1);
  CHECK_THROWS_WITH(c.all_reduce(Axis::world, numbers(3)),
                    Contains("all_reduce") && Contains("mb0.embedding.unshard.fwd there: all_gather"));
  c.begin_step(2);
  CHECK_THROWS_WITH(c.all_gather(Axis::shard, numbers(8), numbers(2)),
                    Contains("32 bytes") && Contains("over axis shard"));
}

TEST_CASE("the own store knows what was set and asks nobody else") {
  const RunSpec run = run_of_eight();
  const auto routing = balanced_routing(run.model, 8);
  RehearsalCommunicators c(run, *routing);
  c.store().set("a", "1");
  CHECK(c.store().reconnect()->get("a") == "1");
  CHECK_THROWS_WITH(c.store().get("b"), Contains("'b'") && Contains("another rank"));
}
