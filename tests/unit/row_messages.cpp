// Rows that the host sends one by one: the table, and what it makes of an exchange's time.
#include "sim/cost/collectives/row_messages.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/fit/row_message_fit.hpp"
#include "tests/fixtures/temp_directory.hpp"

namespace wt {
namespace {

constexpr const char* kHead = "source,gpu,transport,nodes,dispatcher,kernels,operation,row_bytes,GBps,note\n";

std::vector<RowExchangeRow> rows_of_text(const std::string& text) {
  const test::TempDirectory folder;
  test::write_bytes(folder / "rows.csv", kHead + text);
  return read_row_exchanges(folder / "rows.csv");
}

TEST_CASE("seconds of a row: of nodes alike, one keeps its own") {
  // 4 nodes, 10 kB at 10 GB/s: a microsecond a row, of which three in four travel.
  const auto rows = rows_of_text("s,H100,EFA v2,4,deepep,normal,dispatch,10000,10,\n");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].unusable.empty());
  CHECK(rows[0].seconds_a_row() == Approx(4e-6 / 3));
}

TEST_CASE("bad rows say why they are") {
  const auto rows = rows_of_text(
      ",H100,EFA v2,4,deepep,normal,dispatch,10000,10,\n"
      "s,H100,EFA v2,1,deepep,normal,dispatch,10000,10,\n"
      "s,H100,EFA v2,4,pigeon,normal,dispatch,10000,10,\n"
      "s,H100,EFA v2,4,deepep,slow,dispatch,10000,10,\n"
      "s,H100,EFA v2,4,deepep,normal,dispatch,10000,0,\n");
  const std::vector<std::string> expected = {
      "no source", "no other node to send to", "dispatcher: found 'pigeon', allowed deepep, mori, pplx, uccl",
      "kernels: found 'slow', allowed normal, low_latency", "neither GBps nor tokens, topk and time_us"};
  REQUIRE(rows.size() == expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i].unusable == expected[i]);
  CHECK(rows_of_text("s,H100,EFA v2,four,deepep,normal,dispatch,1,1,\n").at(0).unusable.find("four") !=
        std::string::npos);
}

TEST_CASE("a row takes something between training's kernels and a message a row") {
  const RowMessages messages =
      row_messages(rows_of_text("s,H100,EFA v2,2,deepep,normal,dispatch,10000,20,\n"
                                "s,H100,EFA v2,2,deepep,low_latency,dispatch,10000,5,\n"
                                "s,H100,EFA v3,2,deepep,normal,dispatch,10000,80,\n"));
  const auto found = messages.of(Dispatcher::deepep, "EFA v2");
  REQUIRE(found);
  CHECK(found->low_s == Approx(1e-6));
  CHECK(found->high_s == Approx(4e-6));
  CHECK(found->seconds() == Approx(2e-6));
  CHECK(found->ratio() == Approx(2));
  // Of an EFA without both, those of all.
  const auto other = messages.of(Dispatcher::deepep, "EFA v3");
  REQUIRE(other);
  CHECK(other->low_s == Approx(0.5e-6));
  CHECK(other->high_s == Approx(4e-6));
  CHECK_FALSE(messages.of(Dispatcher::deepep, "IB"));
  CHECK_FALSE(messages.of(Dispatcher::alltoall, "EFA v2"));
  CHECK_FALSE(messages.of(Dispatcher::hybridep, "EFA v2"));
}

TEST_CASE("the host's rate bounds an exchange where it is below the wire's") {
  const RowMessage message{1e-6, 4e-6};  // 2 us in the middle
  const CollectiveEstimate wire{.latency_s = 1e-5, .efficiency = 0.8, .relative_spread = 0.1};
  // 4 kB in 2 us are 2 GB/s of 50.
  const CollectiveEstimate narrow = one_by_one(wire, message, 4000, 50e9);
  CHECK(narrow.efficiency == Approx(0.04));
  CHECK(narrow.relative_spread == kWidestSpread);
  CHECK(narrow.latency_s == wire.latency_s);
  const CollectiveEstimate wide = one_by_one(wire, message, 400000, 50e9);
  CHECK(wide.efficiency == wire.efficiency);
  CHECK(wide.relative_spread == wire.relative_spread);
}

TEST_CASE("published benchmarks have DeepEP and UCCL-EP over EFA") {
  const RowMessages published = row_messages(read_row_exchanges("configs/measurements/row_exchanges.csv"));
  for (const Dispatcher dispatcher : {Dispatcher::deepep, Dispatcher::uccl})
    for (const char* transport : {"EFA v2", "EFA v3", "EFA v4"}) {
      const auto found = published.of(dispatcher, transport);
      INFO(to_string(dispatcher) << " over " << transport);
      REQUIRE(found);
      CHECK(found->low_s > 1e-7);
      CHECK(found->high_s < 1e-5);
    }
}

}  // namespace
}  // namespace wt
