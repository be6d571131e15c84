// A small report with every kind of item, and one step's timelines. The numbers are made up for the tests.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "reports/model/report.hpp"
#include "reports/render/charts.hpp"
#include "reports/render/timeline_chart.hpp"

namespace wt::fixture {

inline StepTimeline step(std::int64_t rank, double stretch) {
  const double s = stretch * (1.0 + 0.04 * static_cast<double>(rank));
  StepTimeline out;
  out.step = 3;
  out.rank = rank;
  out.step_s = 0.10 * s;
  out.exposed_s = 0.01 * s;
  const auto op = [&](std::string id, Lane lane, double issued, double done, double waited, double rows = 0) {
    out.ops.push_back({.id = std::move(id),
                       .lane = lane,
                       .issued_s = issued * s,
                       .done_s = done * s,
                       .waited_s = waited * s,
                       .rows = rows,
                       .live_bytes = 1e9 + 1e8 * done});
  };
  op("gather.0", Lane::all_gather, 0.000, 0.008, 0.008);
  op("gather.1", Lane::all_gather, 0.001, 0.019, 0.0);
  op("attention.0", Lane::compute, 0.008, 0.022, 0.0);
  op("dispatch.0", Lane::all_to_all, 0.022, 0.028, 0.006, 512);
  op("experts.0", Lane::compute, 0.028, 0.058, 0.0, 512);
  op("collect.0", Lane::all_to_all, 0.058, 0.063, 0.005, 512);
  op("backward.0", Lane::compute, 0.063, 0.092, 0.0);
  op("reduce.0", Lane::reduce_scatter, 0.075, 0.096, 0.004);
  op("adamw", Lane::compute, 0.096, 0.100, 0.0);
  return out;
}

inline Section step_section() {
  Chart times;
  times.kind = ChartKind::grouped_bar;
  times.title = "Step time by layout";
  times.unit = "s";
  times.value_axis = "step time";
  times.labels = {"4x8", "2x16 expert 4", "1x32 expert 8"};
  times.series = {
      {.name = "predicted", .values = {1.31, 1.22, 1.47}, .low = {1.25, 1.17, 1.36}, .high = {1.38, 1.28, 1.59}},
      {.name = "measured", .values = {1.29, 1.25, NAN}, .evidence = Evidence::measured}};
  times.note = "1x32 was not run.";
  Table table;
  table.title = "Where the step goes";
  table.columns = {{"part", "", Align::left},
                   {"predicted", "ms", Align::right},
                   {"measured", "ms", Align::right},
                   {"difference", "", Align::right}};
  table.rows = {
      {"attention", {412.0, Evidence::measured}, {405.2, Evidence::measured}, {1.7, "+1.7 %", {}, Status::good}},
      {"all-gather, exposed",
       {88.5, Evidence::derived},
       {97.1, Evidence::measured},
       {-8.9, "-8.9 %", {}, Status::warn}},
      {"NIC <b>latency</b> | p99", {12.0, Evidence::assumed}, "-", {"not run", Status::bad}}};
  table.note = "Exposed: the compute lane stood still for it.";
  return {"step",
          "Predicted against measured",
          {"The model was calibrated on one node and never saw these layouts."},
          {times, table}};
}

inline Section timeline_section() {
  return {"timeline",
          "Timeline of a step",
          {},
          {timeline_chart("Step 3, ranks 0 and 1",
                          {{"predicted", {step(0, 1), step(1, 1)}}, {"measured", {step(0, 1.05), step(1, 1.02)}}})}};
}

inline Section memory_section() {
  Chart memory;
  memory.kind = ChartKind::stacked_bar;
  memory.title = "Peak memory per rank class";
  memory.unit = "GiB";
  memory.value_axis = "peak allocated";
  memory.label_axis = "rank class";
  memory.labels = {"0 to 7", "8 to 15", "16 to 23", "24 to 31"};
  memory.series = {{.name = "parameters", .values = {14.2, 14.2, 14.2, 14.2}},
                   {.name = "optimizer", .values = {21.3, 21.3, 21.3, 21.3}},
                   {.name = "activations", .values = {31.0, 33.5, 36.9, 30.2}},
                   {.name = "buffers", .values = {4.1, 4.1, 4.1, 4.1}}};
  memory.line = {80.0, "limit"};
  Chart loss;
  loss.kind = ChartKind::line;
  loss.title = "Cost against checkpoint interval";
  loss.unit = "%";
  loss.value_axis = "time lost";
  loss.label_axis = "interval [min]";
  loss.x = {5, 10, 20, 40, 80};
  loss.series = {{.name = "simulated",
                  .values = {9.1, 6.2, 5.4, 6.6, 9.8},
                  .low = {8.7, 5.7, 4.8, 5.8, 8.6},
                  .high = {9.5, 6.7, 6.0, 7.4, 11.0}}};
  return {"memory", "Memory and checkpoints", {}, {memory, loss}};
}

inline Section goodput_section() {
  KeyValues levers{"The three levers",
                   {{"HSDP replica size", "16 ranks"},
                    {"expert placement", {"balanced, gap 0.4 %", Status::good}},
                    {"checkpoint every", {1260.0, "21 min", Evidence::derived}}}};
  return {"goodput",
          "Goodput",
          {},
          {waterfall("From peak to goodput", "%", {"ideal", 100},
                     {{"exposed communication", -9.4},
                      {"imbalance", -3.1},
                      {"checkpoints", -1.2},
                      {"faults and restarts", -2.6},
                      {"overlapped restart", 0.3}},
                     "goodput"),
           tornado("What would change the answer", "days", {3.24, "plan"},
                   {{"MFU of experts, -5 % to +5 %", 3.36, 3.13},
                    {"NIC bandwidth, 40 to 50 GB/s", 3.41, 3.2},
                    {"MTBF, 20 to 60 days", 3.31, 3.21},
                    {"routing skew, p50 to p99", 3.24, 3.3}}),
           levers}};
}

inline Section fault_section() {
  Table faults;
  faults.title = "Injected faults";
  faults.columns = {{"fault", "", Align::left},
                    {"recovered in", "s", Align::right},
                    {"steps lost", "", Align::right},
                    {"state afterwards", "", Align::left}};
  faults.rows = {{"rank 2 killed in step 17", {8.4, Evidence::measured}, {2.0}, {"bitwise equal", Status::good}},
                 {"checkpoint torn", {9.9, Evidence::measured}, {4.0}, {"bitwise equal", Status::good}},
                 {"disk full while writing", {0.2, Evidence::measured}, {0.0}, {"differs in 3 tensors", Status::bad}}};
  Chart shares;
  shares.kind = ChartKind::bar;
  shares.title = "What the step time rests on";
  shares.unit = "%";
  shares.labels = {"measured", "published", "derived", "assumed"};
  shares.series = {{.name = "share of step time", .values = {71, 12, 13, 4}}};
  shares.horizontal = true;
  return {"faults",
          "Faults, recovery, evidence",
          {},
          {faults,
           Callout{Status::bad, "One drill failed",
                   "After the disk was full, three tensors differ from the undisturbed run."},
           shares}};
}

inline Report report() {
  Report out;
  out.title = "Capacity report: tiny-moe on 32 GPUs";
  out.answer = "The run fits and takes 3.2 days on 32 GPUs with a checkpoint every 21 minutes.";
  out.answer_range = "3.1 to 3.4 days in 90 of 100 simulated runs";
  out.status = Status::warn;
  out.sections = {step_section(), timeline_section(), memory_section(), goodput_section(), fault_section()};
  out.provenance.entries = {
      {"command", "windtunnel plan --model tiny-moe --gpus 32"}, {"seed", {17.0}}, {"commit", "0123abcd"}};
  out.payload = {{"days", 3.24}, {"name", "</script><script>alert(1)</script>"}};
  return out;
}

}  // namespace wt::fixture
