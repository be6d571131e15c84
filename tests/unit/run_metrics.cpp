// What a step's line of metrics says of routing and of the device's use.
#include "trainer/run_folder/run_metrics.hpp"

#include <catch2/catch.hpp>

using namespace wt;

namespace {

RunSpec run_of(std::int64_t expert_ranks) {
  RunSpec run;
  run.model.layers = 2, run.model.experts = 4, run.model.top_k = 2;
  run.model.d_model = 64, run.model.heads = 4, run.model.kv_heads = 2, run.model.head_dim = 16, run.model.ffn = 96,
  run.model.vocab = 264;
  run.layout.shard = run.layout.expert = expert_ranks;
  run.seq = 128, run.global_batch = 8;
  return run;
}

}  // namespace

TEST_CASE("imbalance is that of the most loaded expert rank, over microbatches together and layers alike") {
  // Layer 0: experts 4 1 2 1 of 8 rows; layer 1: 2 2 2 2.
  const std::vector<std::vector<std::vector<std::int64_t>>> routing{{{3, 0, 1, 0}, {1, 1, 1, 1}},
                                                                    {{1, 1, 1, 1}, {1, 1, 1, 1}}};
  CHECK(*expert_imbalance(run_of(4), routing) == Approx((4.0 / 2 + 1) / 2));
  CHECK(*expert_imbalance(run_of(2), routing) == Approx((5.0 / 4 + 1) / 2));
  CHECK_FALSE(expert_imbalance(run_of(1), routing));
}

TEST_CASE("rows beyond an expert's capacity load nobody") {
  RunSpec run = run_of(4);
  run.model.router.capacity_factor = 1.5;
  CHECK(*expert_imbalance(run, {{{5, 1, 1, 1}, {2, 2, 2, 2}}}) == Approx((3.0 * 4 / 6 + 1) / 2));
}

TEST_CASE("a dense layer has no balance, a dense model no imbalance") {
  CHECK(*expert_imbalance(run_of(2), {{{}, {6, 1, 1, 0}}}) == Approx(7.0 / 4));
  CHECK_FALSE(expert_imbalance(run_of(2), {{{}, {}}}));
}

TEST_CASE("everything on one rank is an imbalance of as many as there are") {
  CHECK(*expert_imbalance(run_of(4), {{{0, 0, 9, 0}, {0, 9, 0, 0}}}) == 4);
}

TEST_CASE("peaks are those of data sheets, or not known") {
  CHECK(peak_flops("NVIDIA H100 80GB HBM3", Precision::bf16) == 989e12);
  CHECK(peak_flops("NVIDIA H200", Precision::bf16) == 989e12);
  CHECK(peak_flops("NVIDIA A100-SXM4-40GB", Precision::bf16) == 312e12);
  CHECK(*peak_flops("NVIDIA H100 80GB HBM3", Precision::fp32) == Approx(67e12));  // without tensor cores
  CHECK_FALSE(peak_flops("Tesla V100-SXM2-32GB", Precision::bf16));               // has fp16 alone
  CHECK_FALSE(peak_flops("cpu", Precision::bf16));
}

TEST_CASE("MFU is the model's FLOPs over what all ranks could do") {
  const RunSpec run = run_of(4);
  const double flops = 8 * 128 * run.model.flops_per_token(128);
  CHECK(model_flops_utilisation(run, 0.5, 1e9) == Approx(flops / (0.5 * 4e9)));
}
