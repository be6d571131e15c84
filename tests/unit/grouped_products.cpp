// Grouped products: what their terms add up to, what a fit finds, and what is left out of it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/kernels/item_times.hpp"
#include "sim/fit/grouped_fit.hpp"
#include "sim/validate/judge_kernels.hpp"
#include "tests/fixtures/made_up_waves.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using test::h100;

namespace {

const GroupedConstants kMade{.launch_s = 5e-6,
                             .flops = 1.5,
                             .weights = 1.1,
                             .rows = 0.2,
                             .factors = {{"torch", 1}, {"te", 0.9}, {"triton", 1.3}}};

KernelRow grouped_row(const std::string& library, double groups, double rows, double n, double k,
                      const std::string& origin = "one", bool weight_gradient = false) {
  KernelRow row;
  row.gpu = "H100-SXM", row.op = "grouped_gemm", row.dtype = "bf16", row.implementation = library;
  row.groups = groups, row.m = rows, row.n = n, row.k = k, row.origin = row.source = origin;
  row.weight_gradient = weight_gradient;
  row.seconds = grouped_time_s(kernel_point(row).grouped(), h100(), kMade, library);
  return row;
}

/// Rows of three libraries from two origins, as kMade times them.
std::vector<KernelRow> made_rows() {
  std::vector<KernelRow> rows;
  for (const char* library : {"torch", "te", "triton"})
    for (const char* origin : {"one", "two"})
      for (const auto& [n, k] : std::vector<std::pair<double, double>>{{1024, 2048}, {4096, 4096}, {768, 7168}})
        for (const double m : {128., 512., 4096.}) {
          rows.push_back(grouped_row(library, 16, m, n, k, origin));
          if (rows.back().origin == "two") rows.back().seconds *= 1.001;  // else it would be the same measurement
        }
  return rows;
}

GroupedConstants fitted(const std::vector<KernelRow>& rows) { return GroupedFit(usable_points(rows)).constants(); }

}  // namespace

TEST_CASE("a grouped product takes its launch, its FLOPs, its weights and its rows") {
  const GroupedProduct p = equal_groups(8, 512, 1024, 4096);
  const double flops_s = 2. * 8 * 512 * 1024 * 4096 / h100().flops,
               weights_s = 2. * 8 * 1024 * 4096 / h100().memory_Bps,
               rows_s = 2. * 8 * 512 * (1024 + 4096) / h100().memory_Bps;
  const double sum = 5e-6 + 1.5 * flops_s + 1.1 * weights_s + 0.2 * rows_s;
  CHECK(grouped_time_s(p, h100(), kMade, "torch") == Approx(sum));
  CHECK(grouped_time_s(p, h100(), kMade, "te") == Approx(0.9 * sum));
  CHECK(grouped_time_s(p, h100(), kMade, "nobody's") == Approx(sum));
  CHECK(grouped_time_s(p, h100(), kMade, "") == Approx(sum));
  GroupedProduct narrow = p;  // fp8 reads half the bytes, and writes as many
  narrow.relative_rate = 2, narrow.element_bytes = 1;
  const double narrow_rows_s = 8 * 512 * (4096 + 2. * 1024) / h100().memory_Bps;
  CHECK(grouped_time_s(narrow, h100(), kMade, "") ==
        Approx(5e-6 + 1.5 * flops_s / 2 + 1.1 * weights_s / 2 + 0.2 * narrow_rows_s));
  GroupedProduct gradient = narrow;  // reads rows in 8 bits, and adds to weights in fp32
  gradient.weight_gradient = true;
  CHECK(grouped_time_s(gradient, h100(), kMade, "") ==
        Approx(5e-6 + 1.5 * flops_s / 2 + 1.1 * 4 * weights_s + 0.2 * rows_s / 2));
}

TEST_CASE("a weight gradient has its library's own factor where there is one") {
  GroupedConstants constants = kMade;
  constants.factors[grouped_factor_name("te", true)] = 1.2;
  GroupedProduct p = equal_groups(8, 512, 1024, 4096);
  p.weight_gradient = true;
  const double unknown_s = grouped_time_s(p, h100(), constants, "");
  CHECK(grouped_time_s(p, h100(), constants, "te") == Approx(1.2 * unknown_s));
  CHECK(grouped_time_s(p, h100(), constants, "triton") == Approx(1.3 * unknown_s));
  p.weight_gradient = false;
  CHECK(grouped_time_s(p, h100(), constants, "te") == Approx(0.9 * grouped_time_s(p, h100(), constants, "")));
}

TEST_CASE("groups below a tile of rows cost its FLOPs, but not its bytes") {
  const auto terms = [](double rows) { return grouped_terms(equal_groups(64, rows, 1024, 2048), h100()); };
  CHECK(terms(1)[1] == Approx(terms(128)[1]));
  CHECK(terms(128)[3] == Approx(128 * terms(1)[3]));
  CHECK(terms(256)[1] == Approx(2 * terms(128)[1]));
  CHECK(terms(129)[1] == Approx(129. / 128 * terms(128)[1]));  // no rounding above
}

TEST_CASE("no grouped product runs faster than the GPU's power allows") {
  GroupedConstants fast = kMade;
  fast.flops = 1;
  const GroupedProduct large = equal_groups(8, 65536, 8192, 8192);
  const double flops = 2. * 8 * 65536 * 8192 * 8192;
  CHECK(flops / grouped_time_s(large, h100(), fast, "te") == Approx(0.71 * h100().flops));
  CHECK(flops / grouped_time_s(large, h100(), kMade, "triton") < 0.6 * h100().flops);
}

TEST_CASE("experts of a step are grouped products: both gradients, the fullest loads, the stack's library") {
  KernelConstants constants;
  constants.grouped = kMade;
  const ItemTimes items(std::make_shared<KernelTimes>(constants));
  const auto item = [](Pass pass, double rows) {
    return make_item(Kernel::grouped_gemm, pass, Precision::bf16, {rows, 0}, {1024, 2048, 8});
  };
  KernelChoice te;
  te.grouped = "te";
  const auto seconds = [&](const WorkItem& asked, const KernelChoice& choice) {
    return items.item(asked, 0, choice, h100()).sum_s();
  };
  const double forward_s = grouped_time_s(equal_groups(8, 512, 1024, 2048), h100(), kMade, "");
  CHECK(seconds(item(Pass::forward, 4096), {}) == Approx(forward_s));
  CHECK(seconds(item(Pass::forward, 4096), te) == Approx(0.9 * forward_s));
  GroupedProduct weights = equal_groups(8, 512, 1024, 2048);
  weights.weight_gradient = true;
  CHECK(seconds(item(Pass::backward, 4096), {}) ==
        Approx(grouped_time_s(equal_groups(8, 512, 2048, 1024), h100(), kMade, "") +
               grouped_time_s(weights, h100(), kMade, "")));
}

TEST_CASE("a fit finds the constants and the libraries' factors that made its rows") {
  const GroupedConstants found = fitted(made_rows());
  CHECK(found.launch_s == Approx(kMade.launch_s).epsilon(0.05));
  CHECK(found.flops == Approx(kMade.flops).epsilon(0.02));
  CHECK(found.weights == Approx(kMade.weights).epsilon(0.05));
  CHECK(found.rows == Approx(kMade.rows).epsilon(0.1));
  for (const auto& [library, factor] : kMade.factors) {
    INFO(library);
    CHECK(found.factors.at(library) == Approx(factor).epsilon(0.02));
  }
  CHECK(fitted({}).flops == typical_grouped().flops);
}

TEST_CASE("a fit does without a shape, a library or an origin") {
  std::vector<KernelRow> rows = made_rows();
  KernelRow odd = grouped_row("deepgemm", 4, 512, 3000, 3000, "three");
  odd.seconds *= 7;
  rows.push_back(odd);
  const GroupedFit fit(usable_points(rows));
  const KernelPoint point = kernel_point(odd);
  const GroupedConstants all = fit.constants();
  CHECK(all.factors.at("deepgemm") > 3);
  for (const GroupedOut out : {GroupedOut::shape, GroupedOut::library, GroupedOut::origin}) {
    const GroupedConstants& without = fit.without(out, point);
    CHECK_FALSE(knows_library(without, "deepgemm"));
    CHECK(without.flops == Approx(fitted(made_rows()).flops));
  }
  const GroupedConstants& no_te = fit.without(GroupedOut::library, kernel_point(made_rows().at(20)));
  CHECK((!knows_library(no_te, "te") && knows_library(no_te, "torch")));
  CHECK(knows_library(fit.without(GroupedOut::origin, kernel_point(made_rows().front())), "te"));
}

TEST_CASE("rows that time more than the kernel are in no fit") {
  std::vector<KernelRow> rows = made_rows();
  const GroupedConstants alone = fitted(rows);
  rows.push_back(grouped_row("te", 128, 512, 1536, 2048));
  rows.back().seconds *= 4;
  rows.back().apart = true;
  CHECK(fitted(rows).factors == alone.factors);
  const Judged judged =
      judge_kernels({rows.back()}, PublishedKernelFit(usable_points(rows)), usable_points(rows), GroupedOut::origin)
          .front();
  REQUIRE(judged.forecast.value);
  CHECK(*judged.forecast.value / judged.measured == Approx(0.25).epsilon(0.05));
}

TEST_CASE("a grouped product is judged without its shape, its library or its origin") {
  const std::vector<KernelRow> rows = made_rows();
  const PublishedKernelFit fit(usable_points(rows));
  const auto judge = [&](GroupedOut out) { return judge_kernels(rows, fit, usable_points(rows), out); };
  for (const Judged& row : judge(GroupedOut::shape)) {
    CHECK(*row.forecast.value == Approx(row.measured).epsilon(0.05));
    CHECK(row.regime == "grouped_gemm, library measured");
    CHECK((row.forecast.low <= *row.forecast.value && *row.forecast.value <= row.forecast.high));
  }
  for (const Judged& row : judge(GroupedOut::origin)) CHECK(*row.forecast.value == Approx(row.measured).epsilon(0.05));
  for (const Judged& row : judge(GroupedOut::library)) CHECK(row.regime == "grouped_gemm, library never measured");
}

TEST_CASE("tables of grouped products are read by their columns, and a bad line says what is wrong") {
  const test::TempDirectory folder;
  const auto file = folder.path() / "g.csv";
  const std::string header = "source,gpu,library,op,precision,groups,rows_per_group,n,k,time_us,tflops,use\n",
                    good = "s,H100,torch,forward,bf16,16,512,1024,2048,100,,\n";
  const auto read = [&](const std::string& lines) {
    std::ofstream(file) << header << lines;
    return read_kernel_rows(file);
  };
  const KernelRow row = read(good).front();
  CHECK((row.unusable.empty() && row.op == "grouped_gemm" && row.implementation == "torch"));
  CHECK(row.seconds == Approx(1e-4));
  CHECK((row.groups == 16 && row.m == 512 && row.n == 1024 && row.k == 2048));
  const KernelRow input = read("s,H100,te,input_gradient,bf16,16,512,1024,2048,,500,\n").front();
  CHECK((input.n == 2048 && input.k == 1024));
  CHECK(input.seconds == Approx(2. * 16 * 512 * 1024 * 2048 / 500e12));
  CHECK(read("s,H100,te,weight_gradient,fp8,16,512,1024,2048,,500,apart\n").front().weight_gradient);
  CHECK(read("s,H100,te,weight_gradient,fp8,16,512,1024,2048,,500,apart\n").front().apart);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"s,H100,torhc,forward,bf16,16,512,1024,2048,100,,", "line 3: column 'library': found 'torhc', allowed torch, "},
      {"s,H100,torch,back,bf16,16,512,1024,2048,100,,", "line 3: column 'op': found 'back', allowed forward, "},
      {"s,H100,torch,forward,bf16,16,512,1024,2048,100,,maybe", "line 3: column 'use': found 'maybe', allowed apart"},
      {"s,H100,torch,forward,bf16,,512,1024,2048,100,,", "line 3: column 'groups': found nothing"},
      {"s,H100,torch,forward,bf16,16,0,1024,2048,100,,", "line 3: column 'rows_per_group': found '0'"},
      {"s,H100,torch,forward,bf16,16,512,1024,2048,,,", "line 3: columns 'time_us' and 'tflops': found neither"},
      {"s,H100,torch,forward,bf16,16,512,1024,2048,100,100,", "line 3: columns 'time_us' and 'tflops': found 100 us"},
      {"s,H100,torch,forward", "too few or too many cells"}};
  for (const auto& [line, reason] : wrong) {
    const std::vector<KernelRow> rows = read(good + line + "\n" + good);
    REQUIRE(rows.size() == 3);
    INFO(rows[1].unusable);
    CHECK(rows[1].unusable.find(reason) != std::string::npos);
    CHECK((rows[0].unusable.empty() && rows[2].unusable.empty()));
  }
}

TEST_CASE(
    "the published table has a row a measurement, of which those with a shape, and no host in their time, are usable") {
  const std::vector<KernelRow> rows = read_kernel_rows("configs/measurements/grouped_products.csv");
  CHECK(rows.size() == 114);
  CHECK(usable_points(rows).size() == 86);
  CHECK(std::ranges::count(rows, true, &KernelRow::apart) == 15);
}

TEST_CASE("a profile's grouped products are rows of its libraries") {
  const std::vector<KernelRow> rows = grouped_rows(read_profile("configs/profiles/h200-moe.json"), "mine");
  REQUIRE(!rows.empty());
  for (const KernelRow& row : rows) {
    CHECK(kernel_point(row).reason.empty());
    CHECK((row.gpu == "NVIDIA H200" && row.origin == "mine" && row.groups >= 4 && row.m >= 512));
    CHECK((row.implementation == "windtunnel" || row.implementation == "torch" || row.implementation == "te"));
  }
}
