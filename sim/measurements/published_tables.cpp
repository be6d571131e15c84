#include "sim/measurements/published_tables.hpp"

namespace wt {

PublishedTables read_published_tables(const std::filesystem::path& folder) {
  PublishedTables out{read_kernel_rows(folder / "kernel_times.csv"),
                      read_collective_rows(folder / "collectives.csv"),
                      published_runs(folder),
                      published_memory_runs(folder),
                      read_outside_rows(folder / "outside_allocator.csv"),
                      read_step_errors(folder / "left_out_steps.csv")};
  for (KernelRow& row : read_kernel_rows(folder / "kernel_rates.csv"))
    if (row.op != "gemm") out.kernels.push_back(std::move(row));
  return out;
}

}  // namespace wt
