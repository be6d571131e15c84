#include "sim/measurements/outside_rows.hpp"

#include "sim/measurements/csv.hpp"
#include "sim/measurements/origins.hpp"

namespace wt {
namespace {

constexpr double kGiB = 1 << 30;

void fill_outside(const CsvTable& table, const CsvRow& cells, OutsideRow& row) {
  const auto text = [&](const char* column) { return cells.cells[table.at(column)]; };
  const auto bytes = [&](const char* column) { return needed_number(table, cells, table.at(column), 0) * kGiB; };
  row.source = text("source");
  row.origin = Origins::published().of(row.source);
  row.framework = text("framework");
  row.gpu = text("gpu");
  row.gpus = whole_number(table, cells, table.at("n_gpus"), 1).value_or(0);
  row.in_use_bytes = bytes("in_use_gib");
  row.reserved_bytes = bytes("allocated_gib") + bytes("reserved_unallocated_gib");
  if (row.source.empty())
    row.unusable = "no source";
  else if (row.in_use_bytes > bytes("capacity_gib"))
    row.unusable = "the process uses more than the GPU has";
  else if (!(row.outside_bytes() > 0))
    row.unusable = "the process uses no more than its allocator reserves";
}

}  // namespace

std::vector<OutsideRow> read_outside_rows(const std::filesystem::path& file) {
  return rows_of<OutsideRow>(read_csv(file,
                                      {"source", "framework", "gpu", "n_gpus", "capacity_gib", "in_use_gib",
                                       "allocated_gib", "reserved_unallocated_gib"},
                                      OtherColumns::ignored),
                             fill_outside);
}

}  // namespace wt
