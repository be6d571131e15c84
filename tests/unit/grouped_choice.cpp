// The grouped GEMM that the trainer takes, by stored measurements.
#include "trainer/model/grouped_choice.hpp"

#include <catch2/catch.hpp>

using namespace wt;

namespace {

Profile timed(const std::string& pass, std::int64_t rows, double own_s, double library_s,
              const std::string& clock = "device") {
  Profile profile;
  for (const auto& [kernel, seconds] :
       {std::pair{"grouped_gemm_own", own_s}, std::pair{"grouped_gemm_library", library_s}}) {
    Measurement m;
    m.kernel = kernel, m.pass = pass, m.dtype = "bf16", m.clock = clock, m.samples = {seconds};
    m.shape = {{"rows", rows}, {"n", 1024}, {"k", 2048}, {"groups", 64}};
    profile.measurements.push_back(m);
  }
  return profile;
}

GroupedQuery forward(std::int64_t rows, std::int64_t groups = 64) { return {"forward", rows, 1024, 2048, groups}; }

}  // namespace

TEST_CASE("without a measurement nearby the library computes grouped products") {
  CHECK(GroupedChoice()(forward(16384)) == GroupedBy::library);
  const GroupedChoice measured({timed("forward", 16384, 1e-3, 2e-3)});
  CHECK(measured(forward(16384)) == GroupedBy::own);
  CHECK(measured(forward(32768)) == GroupedBy::own);
  CHECK(measured(forward(32769)) == GroupedBy::library);
  CHECK(measured(forward(8191)) == GroupedBy::library);
  CHECK(measured(forward(4096, 16)) == GroupedBy::own);  // as many rows a group
  CHECK(measured(forward(0)) == GroupedBy::library);
  CHECK(measured({"backward", 16384, 1024, 2048, 64}) == GroupedBy::library);
  CHECK(measured({"forward", 16384, 4096, 2048, 64}) == GroupedBy::library);
  CHECK(GroupedChoice({timed("forward", 16384, 1e-3, 2e-3, "wall")})(forward(16384)) == GroupedBy::library);
}

TEST_CASE("our grouped kernel must be three per cent ahead where it is nearest") {
  CHECK(GroupedChoice({timed("forward", 16384, 0.98e-3, 1e-3)})(forward(16384)) == GroupedBy::library);
  const GroupedChoice choice({timed("forward", 16384, 0.96e-3, 1e-3), timed("forward", 40000, 3e-3, 2e-3)});
  CHECK(choice(forward(20000)) == GroupedBy::own);
  CHECK(choice(forward(30000)) == GroupedBy::library);
}

TEST_CASE("a device's choice comes from the profiles of its name") {
  CHECK(GroupedChoice::of_device("NVIDIA H100 80GB HBM3")(forward(16384)) ==
        GroupedBy::library);  // published ones alone so far
  CHECK(GroupedChoice::of_device("unheard of")(forward(16384)) == GroupedBy::library);
}
