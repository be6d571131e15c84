// `windtunnel simulate` and `plan` name the loads that they took, and take balance only where that is asked for or
// nothing else is known.
#include <catch2/catch.hpp>
#include <string>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"

using namespace wt::test;

namespace {

/// tiny-moe as GPUs would run it: in 16 bits.
Ended simulate(const std::string& arguments) {
  static const TempDirectory folder;
  std::string run = read_bytes("configs/runs/tiny-moe.yaml");
  const std::size_t at = run.find("precision: fp32");
  REQUIRE(at != std::string::npos);
  write_bytes(folder / "tiny.yaml", run.replace(at, 15, "precision: amp_bf16"));
  return windtunnel("simulate " + (folder / "tiny.yaml").string() + " --cluster hgx-h100 --stack torchtitan " +
                    arguments);
}
Ended plan(const std::string& arguments) {
  return windtunnel("plan --model olmoe-1b-7b --cluster hgx-h100 --gpus 16 " + arguments);
}

/// The fact in the report, not the provenance below.
std::string routing_in(const std::string& text) {
  const std::size_t at = text.find("  routing  "), end = text.find('\n', at);
  REQUIRE(at != std::string::npos);
  const std::string line = text.substr(at, end - at);
  return line.substr(line.find_first_not_of(' ', 9));
}

}  // namespace

TEST_CASE("loads are those of models in training, named in the report; recordings and balance are choices") {
  const auto [status, usual] = simulate("");
  CHECK(status == 0);
  CHECK(routing_in(usual) == "trained: loads of other models in training, balanced by loss (assumed)");
  CHECK(routing_in(simulate("--routing trained-bias").said) ==
        "trained-bias: loads of other models in training, balanced by bias (assumed)");
  CHECK(routing_in(simulate("--routing capacity-1.5").said).find("% of the rows dropped (assumed)") !=
        std::string::npos);
  CHECK(routing_in(simulate("--routing balanced").said) == "balanced (assumed)");
  CHECK(routing_in(simulate("--routing mixtral-c4").said) == "histogram mixtral-c4 (published)");
  CHECK(routing_in(simulate("--routing mixtral-c4 --routing mixtral-arxiv").said) ==
        "mean of 2 histograms (published)");
  CHECK(routing_in(simulate("--routing stretched-olmoe-c4").said) == "histogram stretched-olmoe-c4 (assumed)");
}

TEST_CASE("a plan says which loads it rests on") {
  const auto [status, usual] = plan("");
  CHECK(status == 0);
  CHECK(usual.find("Routing: trained (memory at p99 over layers and microbatches)") != std::string::npos);
  CHECK(plan("--routing olmoe-c4").said.find("Routing: the mean of olmoe-c4 (") != std::string::npos);
  CHECK(plan("--routing balanced").said.find("Routing is balanced by assumption") != std::string::npos);
}

TEST_CASE("loads that cannot be are usage errors") {
  CHECK(plan("--routing balanced --routing olmoe").status == 2);
  CHECK(plan("--routing '[no-such'").status == 2);
  CHECK(simulate("--routing balanced --routing mixtral").status == 2);
  CHECK(simulate("--routing no-such").status == 2);
  CHECK(simulate("--routing trained-luck").status == 2);
  CHECK(simulate("--routing olmoe").status == 2);  // 64 experts
}
