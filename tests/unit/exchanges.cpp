// All-to-alls over nodes, dispatches and combines: what their times consist of, and what their tables say.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/fit/link_fit.hpp"
#include "sim/fit/row_exchange_fit.hpp"
#include "sim/validate/judge_collectives.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;

namespace {

CollectiveMachine machine(const std::string& transport) {
  CollectiveMachine out = machine_of_link(300e9, 12.5e9);
  out.transport = transport;
  return out;
}

LinkLoad exchange(double bytes, RankGroup group) {
  const CollectiveMachine on = machine("Slingshot");
  return link_load({OpKind::all_to_all, bytes, group, on});
}

std::vector<CollectiveRow> collectives(const std::string& text) {
  const test::TempDirectory folder;
  test::write_bytes(folder / "t.csv",
                    "source,gpu,nodes,gpus,fabric,collective,bytes,time_us,node_gpus,transport\n" + text);
  return read_collective_rows(folder / "t.csv");
}

std::vector<RowExchangeRow> dispatches(const std::string& text) {
  const test::TempDirectory folder;
  test::write_bytes(
      folder / "t.csv",
      "source,gpu,transport,nodes,dispatcher,kernels,operation,row_bytes,GBps,tokens,topk,time_us\n" + text);
  return read_row_exchanges(folder / "t.csv");
}

/// A dispatch of `tokens` that takes a start and a rate.
RowExchangeRow dispatch(const std::string& library, std::int64_t nodes, double tokens) {
  RowExchangeRow row;
  row.source = row.origin = library;
  row.library = library;
  row.gpu = "H200", row.transport = "IB", row.operation = "dispatch";
  row.nodes = nodes, row.topk = 8, row.tokens = tokens, row.row_bytes = 7168;
  row.seconds = 100e-6 + row.nic_bytes() / 40e9;
  return row;
}

}  // namespace

TEST_CASE("an all-to-all sends a message to each peer on other nodes, and only what is for these over the NICs") {
  const LinkLoad load = exchange(32e6, {32, 8});
  CHECK(load.steps == 28);
  CHECK(load.transfer_s == Approx(32e6 * 28 / 32 / 12.5e9));
  CHECK(load.crowding == Approx(std::pow(4, 0.05)));
  CHECK(exchange(32e6, {8, 2}).crowding == 1);
  const LinkConstants::Constants c = {10e-6, 0, 0.5};
  CHECK(link_seconds(load, c) == Approx(60e-6 + 28 * 10e-6 + load.crowding * load.transfer_s / 0.5));
  // On nodes of 8 and 4, those of the 4 have more peers elsewhere.
  CHECK(exchange(12e6, {12, 2, 4}).steps == 8);
}

TEST_CASE("an all-to-all takes longer with more bytes and with more nodes") {
  const CollectiveEstimator& published = CollectiveEstimator::published();
  for (const char* transport : {"IB", "EFA v2", "Slingshot", "never measured"}) {
    INFO(transport);
    const CollectiveMachine on = machine(transport);
    for (double bytes = 1024; bytes < 1e10; bytes *= 8) {
      double before_s = 0;
      for (std::int64_t nodes = 2; nodes <= 1024; nodes *= 2) {
        const double now_s = published.seconds({OpKind::all_to_all, bytes, {4 * nodes, nodes}, on});
        CHECK(now_s >= before_s);
        CHECK(published.seconds({OpKind::all_to_all, 2 * bytes, {4 * nodes, nodes}, on}) >= now_s);
        before_s = now_s;
      }
    }
  }
}

TEST_CASE("a table says how many GPUs a host has, and cannot use more") {
  const auto rows = collectives(
      "s,A100,2,8,2x200G Slingshot 11,alltoall,1048576,200,4,\n"
      "s,A100,2,8,2x200G Slingshot 11,alltoall,1048576,200,,\n"
      "s,A100,2,16,2x200G Slingshot 11,alltoall,1048576,200,4,\n"
      "s,A100,2,8,2x200G Slingshot 11,alltoall,1048576,200,four,\n"
      "s,A100,2,8,2x200G Slingshot 11,alltoall,1048576,200,4,TCP\n");
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].interconnect.gpus_per_node == 4);
  CHECK(rows[0].interconnect.node_Bps == 50e9);
  CHECK(rows[1].interconnect.gpus_per_node == 8);
  CHECK(rows[2].unusable.find("t.csv: line 4: node_gpus: found 16 GPUs on 2 nodes of 4, needs at most 8") !=
        std::string::npos);
  CHECK(rows[3].unusable.find("line 5: column 'node_gpus': found 'four'") != std::string::npos);
  const auto judged = judge_collectives(rows, rows);
  CHECK(judged[4].forecast.reason == "NCCL over TCP sockets is not modelled");
}

TEST_CASE("an unknown link's share of an all-to-all is the usual one, however few links were measured") {
  std::vector<TimedLoad> times;
  for (double bytes = 64e6; bytes < 10e9; bytes *= 2)
    times.push_back({.load = exchange(bytes, {16, 2}),
                     .form = CollectiveForm::exchange,
                     .many = true,
                     .fabric = "a site",
                     .seconds = link_seconds(exchange(bytes, {16, 2}), {5e-6, 1e-6, 0.4})});
  const LinkConstants fitted = fit_links(times);
  CHECK(fitted.constants("Slingshot", "a site").share == Approx(0.4).epsilon(0.1));
  CHECK(fitted.constants("another", "").share == Approx(0.8).epsilon(0.2));
}

TEST_CASE("libraries send a token once to a node, or once for each expert") {
  const auto rows = dispatches(
      "s,H200,IB,2,deepep,normal,dispatch,7168,,100,8,10\n"
      "s,H200,IB,2,deepep,low_latency,dispatch,7168,,100,8,10\n"
      "s,H200,IB,4,pplx,normal,dispatch,7168,,100,8,10\n"
      "s,H200,IB,2,mori,low_latency,dispatch,7168,,100,1,10\n"
      "s,H200,IB,2,mori,rdma,dispatch,7168,,100,1,10\n"
      "s,H200,IB,2,mori,normal,dispatch,7168,,100,1,\n"
      "s,H200,IB,2,mori,normal,dispatch,7168,,many,1,10\n");
  REQUIRE(rows.size() == 7);
  CHECK(rows[0].nic_bytes() == Approx(100 * 7168 * (1 - std::pow(0.5, 8))));
  CHECK(rows[1].nic_bytes() == Approx(100 * 7168 * 4));
  CHECK(rows[2].nic_bytes() == Approx(100 * 7168 * 6));
  CHECK(rows[3].nic_bytes() == Approx(100 * 7168 * 0.5));
  CHECK(rows[4].unusable == "raw writes are neither a dispatch nor a combine");
  CHECK(rows[5].unusable == "neither GBps nor tokens, topk and time_us");
  CHECK(rows[6].unusable.find("line 8: column 'tokens': found 'many'") != std::string::npos);
}

TEST_CASE("dispatches are predicted from other set-ups of their library, or from other libraries") {
  std::vector<RowExchangeRow> rows;
  for (const char* library : {"deepep", "mori", "pplx"})
    for (const std::int64_t nodes : {2, 4, 8})
      for (double tokens = 128; tokens <= 8192; tokens *= 4) rows.push_back(dispatch(library, nodes, tokens));
  const RowExchangeFit fit(rows);
  for (const RowExchangeRow& row : rows) CHECK(fit.seconds(row) == Approx(row.seconds).epsilon(0.02));
  for (const LeftOut left_out : {LeftOut::group, LeftOut::origin})
    for (const Judged& j : judge_row_exchanges(rows, rows, left_out)) {
      INFO(j.name);
      REQUIRE(j.forecast.value);
      CHECK(*j.forecast.value == Approx(j.measured).epsilon(0.1));
      CHECK((j.regime.find("never measured") != std::string::npos) == (left_out == LeftOut::origin));
    }
  CHECK(fit.seconds(dispatch("another", 2, 4096)) > fit.seconds(dispatch("another", 2, 128)));
  rows.resize(1);
  CHECK(judge_row_exchanges(rows, rows).front().forecast.reason == "no measurement of others");
}
