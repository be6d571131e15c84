#include "sim/measurements/published_tables.hpp"

#include "configs/base/error.hpp"
#include "sim/measurements/origins.hpp"

namespace wt {
namespace {

/// A row of an unknown origin could be in the fit that judges its own project's steps.
template <typename Row>
void check_origins(const std::vector<Row>& rows) {
  for (const Row& row : rows)
    if (row.unusable.empty() && !Origins::published().knows(row.source))
      throw_usage(
          "measurements: line {} of a table: found source '{}', which origins.csv beside it does not have; add a line "
          "that says who published it",
          row.line, row.source);
}

}  // namespace

PublishedTables read_published_tables(const std::filesystem::path& folder) {
  PublishedTables out{read_kernel_rows(folder / "kernel_times.csv"),
                      read_collective_rows(folder / "collectives.csv"),
                      read_row_exchanges(folder / "row_exchanges.csv"),
                      published_runs(folder),
                      published_memory_runs(folder),
                      read_outside_rows(folder / "outside_allocator.csv"),
                      read_step_errors(folder / "left_out_steps.csv")};
  for (KernelRow& row : read_kernel_rows(folder / "kernel_rates.csv"))
    if (row.op != "gemm") out.kernels.push_back(std::move(row));
  const auto add = [&](const std::vector<KernelRow>& rows) {
    out.kernels.insert(out.kernels.end(), rows.begin(), rows.end());
  };
  add(read_kernel_rows(folder / "grouped_products.csv"));
  for (const char* profile : kGroupedProfiles) add(grouped_rows(read_profile(folder.parent_path() / profile), profile));
  check_origins(out.kernels);
  check_origins(out.collectives);
  check_origins(out.row_exchanges);
  check_origins(out.runs);
  check_origins(out.memory_runs);
  check_origins(out.outside);
  return out;
}

}  // namespace wt
