// What tables say of interconnects, as typed facts.
#include "sim/cost/collectives/interconnect.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "sim/measurements/collective_rows.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;

TEST_CASE("adapters of a node are read in the forms that sources have") {
  const auto GBps = [](const std::string& said) { return read_interconnect(said, 8).node_Bps / 1e9; };
  CHECK(GBps("8x400G IB") == Approx(400));
  CHECK(GBps("4x100 Gb RoCE per node") == Approx(50));
  CHECK(GBps("8x50 GB/s") == Approx(400));  // bytes
  CHECK(GBps("8x400GbE") == Approx(400));
  CHECK(GBps("1600 Gbps node-node RoCE") == Approx(200));
  CHECK(GBps("Selene: 8x HDR200 IB per node (recalled)") == Approx(200));
  CHECK(GBps("4 x NDR-400") == Approx(200));
  CHECK(GBps("8 NICs of 400 Gb/s") == Approx(400));
  CHECK(GBps("400 Gb/s NDR InfiniBand per GPU") == Approx(400));
  CHECK(GBps("EFA, 3200 Gb/s a node") == Approx(400));
  CHECK(GBps("RoCE 3.2 Tb/s") == Approx(400));
  CHECK(GBps("AWS p4d.24xlarge") == Approx(50));
  CHECK(GBps("NVLink5 1800 GB/s") == 0);
  CHECK(GBps("NVLink 7200 Gb/s, 8x200G IB") == Approx(200));
  CHECK(GBps("InfiniBand, adapters not said") == 0);
  CHECK(GBps("EFA v4 16x400G (p6-b300, 6.4 Tb/s per node)") == Approx(800));
  CHECK(GBps("EFA v2 32x100G (p5)") == Approx(400));
  CHECK(GBps("AWS p6-b300.48xlarge") == Approx(800));
  CHECK(GBps("u-p6e-gb200x72") == 0);  // the rack's name; its instance is read
  CHECK(read_interconnect("p6e-gb200.36xlarge", 4).node_Bps == Approx(200e9));
  CHECK(read_interconnect("Slingshot 4x200G per node (Alps, recalled)", 4).node_Bps == Approx(100e9));
  CHECK(GBps("XGMI 7x64 GB/s, 8x400G RoCE") == Approx(400));
  for (const char* inside : {"NVL72 domain", "NVLink single node", "XGMI single node", "Infinity Fabric 448 GB/s"})
    CHECK(GBps(inside) == 0);
}

TEST_CASE("an AWS instance has EFA, whether the text says so or not") {
  const auto transport = [](const std::string& said) { return read_interconnect(said, 8).transport; };
  CHECK(transport("AWS p4d.24xlarge") == "EFA v1");
  CHECK(transport("AWS p5.48xlarge") == "EFA v2");
  CHECK(transport("p5en, EFA") == "EFA v3");
  CHECK(transport("P6-B200") == "EFA v4");
  CHECK(transport("EFA v2 32x100G (p5)") == "EFA v2");
  CHECK(transport("AWS p6-b300.48xlarge") == "EFA v4");
  CHECK(transport("p6e-gb200.36xlarge") == "EFA v4");
  CHECK(transport("EFA v4 16x400G (p6-b300, 6.4 Tb/s per node)") == "EFA v4");
  CHECK(transport("GCP A3 Mega TCPXO 8x200G") == "TCPX");
  CHECK(transport("Slingshot 4x200G per node (Alps, recalled)") == "Slingshot");
  CHECK(transport("IB NDR 8x400G CX7") == "IB");
  CHECK(transport_family("EFA v2") == "EFA");
}

TEST_CASE("racks are one NVLink domain, however they are spelled, and Grace-Blackwell comes in racks") {
  const auto domain = [](const std::string& said, const std::string& gpu) {
    return interconnect_of(said, gpu, 4).nvlink_domain;
  };
  for (const char* said : {"NVL72 (GB200)", "nvl72", "NVL-72 rack", "NVL 72", "GB200 NVLink72"})
    CHECK(domain(said, "GB200") == 72);
  CHECK(domain("NVL72 domain", "GB300") == 72);
  CHECK(domain("XGMI single node", "MI355X") == 4);
  CHECK(domain("NVL36", "GB200") == 36);
  CHECK(domain("NVL4 + 8x400G RDMA (DGX H100)", "H100-SXM") == 4);  // NVLink's generation
  const Interconnect unsaid = interconnect_of("4x400G IB", "GB300", 4);
  CHECK(unsaid.nvlink_domain == 72);
  CHECK(unsaid.assumed(4).empty());
  CHECK(unsaid.assumed(64) == "racks of 72 GPUs");
  CHECK(domain("", "GH200") == 4);
}

TEST_CASE("what a source does not say is assumed, and matters only where it is used") {
  const Interconnect hopper = interconnect_of("", "H200-SXM", 4), ampere = interconnect_of("", "A100-80GB", 8);
  CHECK(hopper.node_Bps == Approx(4 * 50e9));
  CHECK(hopper.assumed(4).empty());
  CHECK(hopper.assumed(8) == "fabric of 4x400G IB");
  CHECK(ampere.assumed(16) == "fabric of 8x200G IB");
  CHECK(interconnect_of("8x400G", "H100", 8).assumed(16).empty());
  CHECK(interconnect_of("", "B300", 8).node_Bps == Approx(8 * 100e9));  // ConnectX-8
  CHECK(interconnect_of("", "MI300X", 8).node_Bps == Approx(8 * 50e9));
}

TEST_CASE("a table counts hosts, and those of one rack are one domain") {
  const test::TempDirectory folder;
  const auto file = folder.path() / "t.csv";
  std::ofstream(file) << "gpus,nodes,collective,gpu,busbw_GBps,fabric,fewest_on_node\n"
                         "4,1,all_reduce,GB200,600,NVLink (one host of 4),\n"
                         "72,18,all_reduce,GB200,800,NVL72 + 4x400G IB,\n"
                         "144,36,all_reduce,GB200,800,NVL72 + 4x400G IB,\n"
                         "128,32,all_reduce,GB200,800,NVL72 + 4x400G IB,64\n"
                         "8,2,all_reduce,GB200,100,\"4x400G IB, hosts in two racks\",\n"
                         "64,8,all_reduce,H100,300,8x400G IB,\n"
                         "24,3,all_reduce,GB200,400,\"4x400G IB, 8 GPUs of each of three racks\",\n";
  const auto rows = read_collective_rows(file);
  REQUIRE(rows.size() == 7);
  const auto is = [&](std::size_t row, std::int64_t domains, std::int64_t fewest) {
    INFO(row);
    CHECK(rows[row].unusable.empty());
    CHECK(rows[row].domains() == domains);
    CHECK(rows[row].fewest_on_node == fewest);
  };
  is(0, 1, 4), is(1, 1, 72), is(2, 2, 72), is(3, 2, 64), is(4, 2, 4), is(5, 8, 8), is(6, 3, 8);
  CHECK(rows[6].interconnect.nvlink_domain == 8);
  CHECK(rows[1].interconnect.node_Bps / static_cast<double>(rows[1].interconnect.gpus_per_node) == 50e9);
}

TEST_CASE("a table's own columns count more than the words of its fabric") {
  const test::TempDirectory folder;
  const auto file = folder.path() / "t.csv";
  std::ofstream(file)
      << "gpus,nodes,collective,gpu,busbw_GBps,fabric,transport,node_GBps,reduction,timer,shared,source,"
         "evidence,fewest_on_node\n"
         "12,2,all_reduce,H100,100,8x400G IB,EFA v2,200,ring,torch,1,a talk,derived,4\n"
         "16,2,all_reduce,H100,100,8x400G IB,,,sharp,,,,,\n"
         "16,2,all_reduce,H100,100,8x400G IB,,,,,,,,\n";
  const auto rows = read_collective_rows(file);
  REQUIRE(rows.size() == 3);
  CHECK((rows[0].interconnect.transport == "EFA v2" && rows[0].interconnect.node_Bps == 200e9));
  CHECK((rows[0].ring_only && rows[0].timed_from_python && rows[0].shared_with_other_jobs));
  CHECK((rows[0].origin == "a talk" && rows[0].source == "a talk" && rows[0].evidence == Evidence::derived &&
         rows[0].fewest_on_node == 4));
  CHECK(rows[1].unusable.find("reduction: found 'sharp', allowed any, ring, network") != std::string::npos);
  CHECK((rows[2].interconnect.transport == "IB" && rows[2].interconnect.node_Bps == 400e9 && !rows[2].ring_only));
}
