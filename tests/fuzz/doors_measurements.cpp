#include <nlohmann/json.hpp>

#include "bench/formats/google_benchmark.hpp"
#include "bench/formats/kineto.hpp"
#include "bench/formats/memory_snapshot.hpp"
#include "bench/formats/nccl_tests.hpp"
#include "bench/formats/nsight.hpp"
#include "bench/formats/nvbench.hpp"
#include "bench/formats/traced_ranks.hpp"
#include "bench/formats/traced_step.hpp"
#include "bench/gate/gate.hpp"
#include "bench/gate/selftest.hpp"
#include "bench/work/work_list.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/files/model.hpp"
#include "configs/files/profile.hpp"
#include "planner/validate/published_plans.hpp"
#include "sim/cost/kernels/machine_data.hpp"
#include "sim/measurements/collective_rows.hpp"
#include "sim/measurements/kernel_rows.hpp"
#include "sim/measurements/outside_rows.hpp"
#include "sim/measurements/routing_rows.hpp"
#include "sim/measurements/row_exchange_rows.hpp"
#include "sim/measurements/run_rows.hpp"
#include "sim/measurements/step_errors.hpp"
#include "sim/program/routing/load_scenario.hpp"
#include "sim/program/routing/load_windows.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "tests/fuzz/door.hpp"

namespace wt::fuzz {
namespace {

namespace fs = std::filesystem;

Door table(const std::string& name, const std::vector<std::string>& files, std::function<void(const fs::path&)> read) {
  Door door{name, {}, [read = std::move(read)](const std::string& input, const fs::path& folder) {
              read(written(folder, "table.csv", input));
            }};
  for (const std::string& file : files) door.seeds.push_back(sample(fs::path("configs/measurements") / file, 2500));
  return door;
}

}  // namespace

std::vector<Door> measurement_doors() {
  std::vector<Door> doors;
  doors.push_back({"profile", {}, [](const auto& input, const auto&) {
                     to_json(profile_from_json(parse_json(input, "profile.json"), "profile.json"));
                   }});
  doors.push_back({"machine", {}, [](const auto& input, const auto&) {
                     machine_from_json(parse_json(input, "machine.json"), "machine.json");
                   }});
  doors.push_back(
      {"gate_input",
       {sample("tests/fuzz/corpus/profile/h100.json"), sample("tests/fuzz/corpus/google_benchmark/two.json")},
       [](const auto& input, const fs::path& folder) { read_gate_input({written(folder, "profile.json", input)}); }});
  doors.push_back({"google_benchmark", {}, [](const auto& input, const auto&) {
                     from_google_benchmark(parse_json(input, "benchmark.json"), "benchmark.json");
                   }});
  doors.push_back({"nvbench", {}, [](const auto& input, const fs::path& folder) {
                     const nlohmann::json document = lax_json(input);
                     fs::create_directories(folder / "result.json-bin");
                     written(folder / "result.json-bin", "0.bin", std::string(12, '1'));
                     if (is_nvbench(document)) from_nvbench(document, folder / "result.json");
                   }});
  doors.push_back({"kineto", {}, [](const auto& input, const auto&) {
                     const nlohmann::json document = lax_json(input);
                     if (is_chrome_trace(document)) from_kineto(document, "trace.json");
                   }});
  doors.push_back(
      {"gpu_trace",
       {R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 10, "dur": 5,
"args": {"Collective name": "all_reduce", "Process Group Name": "3", "Process Group Ranks": "[0, 1]", "Seq": 4}},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "ts": 1, "dur": 20}, {"ph": "M", "name": "a"}],
"distributedInfo": {"rank": 0, "world_size": 2}})"},
       [](const auto& input, const fs::path& folder) {
         const GpuTrace trace = read_gpu_trace(written(folder, "trace.json", input));
         traced_step(trace);
         GpuTrace other = trace;
         other.rank = -1;
         traced_ranks({trace, other}, {"trace.json", "other.json"});
       }});
  doors.push_back({"nsight", {}, [](const auto& input, const fs::path& folder) {
                     const fs::path file = written(folder, "report.sqlite", input);
                     if (is_sqlite(file)) traced_step(read_gpu_trace(file));
                   }});
  doors.push_back(
      {"memory_snapshot", {}, [](const auto& input, const auto&) { memory_snapshot_from(input, "snapshot.pickle"); }});
  doors.push_back({"nccl_tests", {}, [](const auto& input, const auto&) {
                     if (is_nccl_tests(input)) profile_of(read_nccl_tests(input, "log"), "log", 72);
                   }});
  doors.push_back({"nccl_tests_json", {}, [](const auto& input, const auto&) {
                     const nlohmann::json document = lax_json(input);
                     if (is_nccl_tests_json(document))
                       profile_of(read_nccl_tests_json(document, "log.json"), "log.json");
                   }});
  doors.push_back({"work_list", {}, [](const auto& input, const fs::path& folder) {
                     read_work_list(written(folder, "work.json", input));
                   }});
  doors.push_back(table("recorded_runs", {}, [](const fs::path& file) { read_recorded_runs(file); }));
  doors.push_back(table("training_runs",
                        {"training_runs.csv", "torchtitan_runs.csv", "large_runs.csv", "simulator_tables.csv"},
                        [](const fs::path& file) { read_run_rows(file); }));
  doors.push_back(table("collectives", {"collectives.csv"}, [](const fs::path& file) { read_collective_rows(file); }));
  doors.push_back(table("kernel_times", {"kernel_rates.csv", "kernel_times.csv", "grouped_products.csv"},
                        [](const fs::path& file) { read_kernel_rows(file); }));
  doors.push_back(
      table("placed_steps", {"routing_step_times.csv"}, [](const fs::path& file) { read_placed_steps(file); }));
  doors.push_back(table("rank_loads", {"routing_rank_loads.csv"}, [](const fs::path& file) {
    std::vector<std::string> refused;
    read_rank_loads(file, refused);
  }));
  doors.push_back(table("routed_setups", {"routing_setups.csv"}, [](const fs::path& file) {
    std::vector<std::string> refused;
    read_routed_setups(file, refused);
  }));
  doors.push_back(
      table("row_exchanges", {"row_exchanges.csv"}, [](const fs::path& file) { read_row_exchanges(file); }));
  doors.push_back(
      table("outside_allocator", {"outside_allocator.csv"}, [](const fs::path& file) { read_outside_rows(file); }));
  doors.push_back({"published_plans",
                   {sample("configs/measurements/published_plans.yaml")},
                   [](const std::string& input, const fs::path& folder) {
                     static const std::map<std::string, RunRow> kRows = published_rows();
                     read_published_plans(written(folder, "plans.yaml", input), kRows);
                   }});
  doors.push_back(table("step_errors", {"left_out_steps.csv"}, [](const fs::path& file) { read_step_errors(file); }));
  doors.push_back(table("load_histogram", {}, [](const fs::path& file) { read_load_scenario(file.string(), 0); }));
  doors.push_back(table("recorded_routing", {}, [](const fs::path& file) {
    static const ModelSpec kModel = [] {
      ModelSpec m = read_model("dbrx");
      m.experts = 4, m.top_k = 2, m.layers = 2;
      return m;
    }();
    read_routing({file.string()}, kModel, 32, 1);
    read_load_windows({file.string()}, 1, kModel);
  }));
  return doors;
}

}  // namespace wt::fuzz
