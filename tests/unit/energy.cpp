// Power of nodes by state, energy of a step, and tables of measured power.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"
#include "sim/cost/power/node_power.hpp"
#include "sim/measurements/energy_rows.hpp"
#include "sim/replay/step_shares.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;

namespace {

PriceAmount watts(double low, double high) { return {low, high, "2026-03-01", {Evidence::assumed, "this test"}}; }
PriceAmount watts(double value) { return watts(value, value); }

/// 10 s on two nodes of 8 GPUs, of which each computes for 7 s and waits for 3 s.
ChargedStep ten_seconds() {
  return {
      .step_s = 10, .low_s = 10, .high_s = 10, .shares = {0.7, 0.3}, .tokens = 1000, .gpus = 16, .gpus_per_node = 8};
}

const PowerSpec kCertain{watts(700), watts(400), watts(100), watts(1600)};

}  // namespace

TEST_CASE("a GPU draws the power of its state, a share of the step each") {
  const NodeWatts node{.compute = 700, .communicate = 400, .idle = 100, .host = 2000};
  CHECK(node.of_gpu({1, 0}) == 700);
  CHECK(node.of_gpu({0.5, 0.3}) == Approx(0.5 * 700 + 0.3 * 400 + 0.2 * 100));
  CHECK(node.of_gpu({0.8, 0.9}) == Approx(0.8 * 700 + 0.2 * 400));  // shares are at most 1 together
  CHECK(node.of_gpu({1.2, -1}) == 700);
}

TEST_CASE("ranges of power are 80 % intervals of one error") {
  const PowerSpec power{watts(600, 800), watts(300, 500), watts(100), watts(0, 2000)};
  const NodeWatts middle = node_watts(power), high = node_watts(power, kAt90), far = node_watts(power, -10);
  CHECK(middle.compute == 700);
  CHECK(high.compute == Approx(800));
  CHECK(high.communicate == Approx(500));
  CHECK(high.idle == Approx(100));
  CHECK(far.host == 0);  // never less
}

TEST_CASE("energy of a token is power times time over tokens") {
  const StepEnergy e = step_energy(kCertain, ten_seconds());
  const double gpu_W = 0.7 * 700 + 0.3 * 400 + 1600.0 / 8;
  CHECK(e.gpu_W.value == Approx(gpu_W));
  CHECK(e.token_J.value == Approx(gpu_W * 16 * 10 / 1000));
  for (const EnergyAmount& amount : {e.gpu_W, e.token_J}) {
    CHECK(amount.low == Approx(amount.value));
    CHECK(amount.high == Approx(amount.value));
  }
}

TEST_CASE("a step that takes longer waits longer, and draws less") {
  ChargedStep step = ten_seconds();
  step.low_s = 8, step.high_s = 14;
  const StepEnergy e = step_energy(kCertain, step);
  CHECK(e.gpu_W.low == Approx(7.0 / 14 * 700 + 7.0 / 14 * 400 + 200));
  CHECK(e.gpu_W.high == Approx(7.0 / 8 * 700 + 1.0 / 8 * 400 + 200));
  CHECK(e.token_J.low == Approx((7 * 700 + 1 * 400 + 8 * 200) * 0.016));
  CHECK(e.token_J.high == Approx((7 * 700 + 7 * 400 + 14 * 200) * 0.016));
  step.low_s = 5;  // less than it computes: all of it is computation
  CHECK(step_energy(kCertain, step).gpu_W.high == Approx(900));
}

TEST_CASE("errors of power and of the step are independent") {
  const PowerSpec uncertain{watts(600, 800), watts(300, 500), watts(100), watts(1600)};
  ChargedStep step = ten_seconds();
  const double by_power = step_energy(uncertain, step).gpu_W.high - step_energy(uncertain, step).gpu_W.value;
  CHECK(by_power == Approx(100));
  step.low_s = 8, step.high_s = 14;
  const double by_step = step_energy(kCertain, step).gpu_W.high - step_energy(kCertain, step).gpu_W.value;
  const EnergyAmount both = step_energy(uncertain, step).gpu_W;
  CHECK(both.high - both.value == Approx(std::hypot(by_power, by_step)));
}

TEST_CASE("power from data sheets") {
  for (const char* gpu : {"V100", "A100-80GB", "H100-80GB", "H200", "B200", "GB200", "MI300X", "L40S", "T4"}) {
    INFO(gpu);
    const DataSheet sheet = data_sheet(gpu).value();
    const PowerSpec air = data_sheet_power(sheet, 8, NodeCooling::air),
                    liquid = data_sheet_power(sheet, 8, NodeCooling::liquid);
    CHECK(sheet.power_W > 0);
    CHECK(air.compute_W.high <= sheet.power_W);
    CHECK(air.communicate_W.high < air.compute_W.low);
    CHECK(air.idle_W.high < air.communicate_W.low);
    CHECK(liquid.host_W.middle() < air.host_W.middle());  // no fans
    CHECK(usual_cooling(sheet) == (sheet.name == "GB200" ? NodeCooling::liquid : NodeCooling::air));
  }
  CHECK(data_sheet("H100-80GB")->power_W == 700);
  CHECK(data_sheet("B200 750 W")->power_W == 750);
  // What 8 H100 draw in training, with fans (arXiv 2506.14551), from whose figure the host's comes.
  const NodeWatts node = node_watts(data_sheet_power(*data_sheet("H100"), 8, NodeCooling::air));
  CHECK(8 * node.compute + node.host == Approx(0.76 * 10200).epsilon(0.01));
}

TEST_CASE("kernels compute, a tensor group's collectives wait") {
  std::vector<OpClassTotal> totals(3);
  totals[0].busy_s = 6;
  totals[1].busy_s = 1, totals[1].action = Action::share_tensor;
  totals[2].busy_s = 5, totals[2].lane = Lane::all_gather;
  const StepShares shares = step_shares(totals, 10);
  CHECK(shares.computing == Approx(0.6));
  CHECK(shares.communicating == Approx(0.4));
}

TEST_CASE("tables of measured power: what a row needs, and what is wrong with it") {
  const std::string header =
      "measured_at,cooling,runs,watts_per_gpu,joules_per_token,lora_rank,assumed,gpu,n_gpus,model,layers,hidden,heads,"
      "seq_len,"
      "vocab,grad_accum\n";
  const std::string run = "H100-80GB,8,m,2,1024,8,1024,32000,1\n";
  const test::TempDirectory folder;
  const std::filesystem::path file = folder.path() / "energy.csv";
  std::ofstream(file) << header << "node,immersion,3,863.4,1.12,16,as many GPUs," << run << "gpu,,,621,,,," << run
                      << "wall,air,1,700,,,," << run << "node,,1,700,,,," << run << "gpu,oil,1,700,,,," << run
                      << "node,air,1,,,,," << run << "node,air,1,-5,,,," << run << "node,air,1,700,,,,,8,m,2,1024\n"
                      << "node,air,0,700,,,," << run;
  const std::vector<EnergyRow> rows = read_energy_rows(file);
  REQUIRE(rows.size() == 9);
  CHECK(rows[0].run.unusable.empty());
  CHECK(rows[0].at_node);
  CHECK(rows[0].cooling == NodeCooling::liquid);
  CHECK(rows[0].runs == 3);
  CHECK(rows[0].gpu_W == 863.4);
  CHECK(rows[0].token_J == 1.12);
  CHECK(rows[0].lora_rank == 16);
  CHECK_THAT(rows[0].run.assumed, Catch::VectorContains(std::string("as many GPUs")));
  CHECK(rows[1].run.unusable.empty());
  CHECK_FALSE(rows[1].at_node);
  CHECK(rows[1].token_J == 0);
  const std::vector<const char*> reasons{"",
                                         "",
                                         "found 'wall', allowed are node",
                                         "found '', allowed are air",
                                         "found 'oil'",
                                         "watts_per_gpu",
                                         "watts_per_gpu",
                                         "too few",
                                         "runs"};
  for (std::size_t i = 2; i < rows.size(); ++i) CHECK_THAT(rows[i].run.unusable, Catch::Contains(reasons[i]));

  std::ofstream(file) << "measured_at,cooling,watts,gpu,n_gpus,model,layers,hidden,seq_len\n";
  CHECK_THAT(test::usage_error([&] { read_energy_rows(file); }), Catch::Contains("watts_per_gpu"));
}
