// The GEMM staircase: which products it finds, and that both gradients are what they are called.
#include "bench/suites/staircase.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "bench/suites/kernels_suite.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;

TEST_CASE("the staircase has every dense product of its models once, forward and both backward products") {
  const ModelSpec olmoe = read_model("olmoe-1b-7b");
  const Staircase stairs = gemm_staircase({olmoe, olmoe}, at::kCPU, true);
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>> rows;
  for (const WorkItem& item : stairs.forward) {
    rows[{item.dims[0], item.dims[1]}].push_back(item.rows.fixed);
    CHECK(item.flops(0) <= 1e10);
  }
  CHECK(rows.size() == 3);
  CHECK(rows.at({6144, 2048}) == std::vector<double>{256});  // queries, keys and values of 16 heads of 128
  CHECK(rows.at({2048, 2048}) == std::vector<double>{256, 512, 1024});
  CHECK(rows.at({64, 2048}) == std::vector<double>{256, 512, 1024, 2048, 4096, 8192, 16384});  // the router
  CHECK(stairs.left_out == std::vector<std::string>{"50304 x 2048"});  // the head: 53 GFLOP at 256 rows
  CHECK(stairs.backward.size() == 2 * stairs.forward.size());

  for (const WorkItem& item :
       gemm_staircase({read_model("falcon-7b")}, at::kCPU, false).forward)  // dense, with products of its FFN
    CHECK((item.dims[0] % 4544 == 0 || item.dims[1] % 4544 == 0));

  ModelSpec tiny = olmoe;
  tiny.layers = 1, tiny.d_model = tiny.ffn = 32, tiny.heads = tiny.kv_heads = 2, tiny.head_dim = 16, tiny.vocab = 40;
  Staircase few = gemm_staircase({tiny}, at::kCPU, true);
  std::erase_if(few.backward, [](const BenchCase& c) { return c.row.shape.at("rows") > 256; });
  CHECK(few.backward.size() == 2 * 4);
  const Profile profile = bench_kernels({{}, {}, few.backward}, {true, 17, 3, "cpu"});
  for (const FailedMeasurement& f : profile.failures) FAIL_CHECK(f.name << ": " << f.error);
  CHECK(profile.measurements.size() == few.backward.size());
  NormalPool normal(5);
  for (const BenchCase& c : few.backward) {  // from the definition, element by element
    const KernelProblem p = c.make(normal);
    const bool of_weight = c.row.kernel == "gemm_weight";
    const at::Tensor dy = p.inputs[0], other = p.inputs[1], got = p.run(p.inputs)[0];
    REQUIRE(got.sizes() == at::IntArrayRef({of_weight ? dy.size(1) : dy.size(0), other.size(1)}));
    const at::Tensor terms = of_weight ? dy.select(1, 3) * other.select(1, 5) : dy.select(0, 3) * other.select(1, 5);
    CHECK(got[3][5].item<float>() == Approx(terms.to(at::kDouble).sum().item<double>()).epsilon(1e-4).margin(1e-4));
  }
}
