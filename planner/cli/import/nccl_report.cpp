#include "planner/cli/import/nccl_report.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "configs/base/quantity.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"
#include "planner/cli/parts/cells.hpp"

namespace wt {
namespace {

Cell gigabytes(double Bps) { return {Bps / 1e9, fmt::format("{:.4g}", Bps / 1e9)}; }

Status status_of(Usual usual) {
  return usual == Usual::slow ? Status::warn : usual == Usual::normal ? Status::good : Status::none;
}

/// "16 NVIDIA H100 80GB HBM3 on 2 nodes", with hosts where a node is a rack of them.
std::string cluster_text(const NcclTests& tests, std::int64_t nodes) {
  std::string out = fmt::format("{} {} on {}", tests.ranks(), tests.gpu, counted(nodes, "node"));
  if (nodes != tests.hosts) out += fmt::format(" of NVLink ({})", counted(tests.hosts, "host"));
  if (tests.groups > 1) out += fmt::format(", in one of {} groups at once", tests.groups);
  return out;
}

/// What the largest size says of the fabric.
std::string judgement(const UsualCollective& at, std::int64_t bytes, double bus_Bps) {
  std::string out =
      fmt::format("At {} {:.4g} GB/s of bus bandwidth", format_bytes(static_cast<double>(bytes)), bus_Bps / 1e9);
  if (at.usual != Usual::unknown) out += fmt::format(": {} for this fabric", to_string(at.usual));
  if (at.low_Bps > 0)
    out += fmt::format("; the model expects {:.4g} to {:.4g} (80 %)", at.low_Bps / 1e9, at.high_Bps / 1e9);
  if (const std::size_t all = at.below + at.above; all > 0)
    out += fmt::format("; of {} published on similar fabrics ({}), {} below and {} above",
                       counted(static_cast<std::int64_t>(all), "measurement"),
                       counted(static_cast<std::int64_t>(at.origins), "source"), at.below, at.above);
  else
    out += "; nothing published on a similar fabric";
  return out + ".";
}

}  // namespace

Report nccl_tests_report(const NcclTests& tests, const UsualCollectives* usual, std::int64_t nodes) {
  Report report;
  report.title = "Import of nccl-tests";
  report.answer = fmt::format("{} of {} over {}.", counted(static_cast<std::int64_t>(tests.sizes.size()), "size"),
                              tests.test, cluster_text(tests, nodes));
  Table table{.title = "Out of place",
              .columns = {numeric("bytes"), numeric("samples"), numeric("median", "us"),
                          numeric("algorithm bandwidth", "GB/s"), numeric("bus bandwidth", "GB/s")}};
  if (usual)
    for (const Column& column :
         {numeric("usual", "GB/s"), numeric("published below"), numeric("above"), Column("verdict")})
      table.columns.push_back(column);
  nlohmann::json sizes = nlohmann::json::array();
  std::string unpredicted;
  for (const auto& [bytes, size] : tests.sizes) {
    const double seconds = median(size.out_of_place_s);
    const double algorithm_Bps = static_cast<double>(bytes) * tests.buffer_factor() / seconds,
                 bus_Bps = algorithm_Bps * tests.bus_factor();
    table.rows.push_back({whole(bytes), whole(static_cast<std::int64_t>(size.out_of_place_s.size())),
                          Cell(seconds * 1e6), gigabytes(algorithm_Bps), gigabytes(bus_Bps)});
    nlohmann::json entry = {{"bytes", bytes},
                            {"samples", size.out_of_place_s.size()},
                            {"median_s", seconds},
                            {"algorithm_Bps", algorithm_Bps},
                            {"bus_Bps", bus_Bps}};
    if (usual) {
      const UsualCollective at = usual->of(bytes, seconds);
      auto& row = table.rows.back();
      row.emplace_back(at.low_Bps > 0 ? fmt::format("{:.4g} to {:.4g}", at.low_Bps / 1e9, at.high_Bps / 1e9)
                                      : "not known");
      row.push_back(whole(static_cast<std::int64_t>(at.below)));
      row.push_back(whole(static_cast<std::int64_t>(at.above)));
      row.emplace_back(to_string(at.usual), status_of(at.usual));
      entry.update({{"published_below", at.below}, {"published_above", at.above}, {"verdict", to_string(at.usual)}});
      if (at.low_Bps > 0) entry["usual_bus_Bps"] = {at.low_Bps, at.high_Bps};
      if (unpredicted.empty()) unpredicted = at.unpredicted;
      if (bytes == tests.sizes.rbegin()->first) {
        report.answer_range = judgement(at, bytes, bus_Bps);
        report.status = status_of(at.usual);
      }
    }
    sizes.push_back(std::move(entry));
  }
  if (usual) {
    table.note = "Usual: 80 % interval of the model's bus bandwidth on this machine.";
    if (!usual->machine().assumed.empty())
      table.note += fmt::format(" Assumed: {}; name the cluster with --cluster.", usual->machine().assumed);
    if (!unpredicted.empty()) table.note += fmt::format(" Not known: {}.", unpredicted);
    table.note += " Published: measurements of this collective on similar fabrics, of 2/3 to 3/2 of the size.";
  }
  Section section{.id = "collectives", .title = "What was measured", .items = {table}};
  for (const std::string& note : tests.notes) section.paragraphs.push_back("Note: " + note + ".");
  if (tests.groups > 1)
    section.paragraphs.push_back(
        fmt::format("{} groups ran the test at once (NCCL_TESTS_SPLIT). The times are those of rank 0's. calibrate "
                    "leaves them out.",
                    tests.groups));
  report.sections.push_back(std::move(section));
  report.payload = {{"kind", "nccl-tests"},   {"measurements", tests.sizes.size()},
                    {"test", tests.test},     {"ranks", tests.ranks()},
                    {"nodes", nodes},         {"hosts", tests.hosts},
                    {"groups", tests.groups}, {"sizes", std::move(sizes)},
                    {"notes", tests.notes}};
  return report;
}

}  // namespace wt
