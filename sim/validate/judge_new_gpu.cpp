#include "sim/validate/judge_new_gpu.hpp"

#include "configs/base/error.hpp"
#include "configs/files/data_sheet.hpp"

namespace wt {
namespace {

DataSheet known_sheet(const std::string& gpu) {
  const auto sheet = built_in_data_sheet(gpu);
  if (!sheet) throw_usage("--as-data-sheet: found '{}', needs a GPU whose data sheet is built in, as B200", gpu);
  return *sheet;
}

/// What a cluster file could say of the GPU.
DataSheet written_sheet(const DataSheet& gpu, const DataSheet& like) {
  DataSheet out = gpu;
  out.name = "GPU by its data sheet";
  out.generation = like.generation;
  out.ada = like.ada;
  out.amd = like.amd;
  out.direct_peers = like.direct_peers;
  if (!relative_rate(like, "fp8")) out.fp8_rate = like.fp8_rate;
  if (like.nvfp4_rate == 0) out.nvfp4_rate = 0;
  return out;
}

bool same_generation(const DataSheet& a, const DataSheet& b) { return a.generation == b.generation && a.amd == b.amd; }

}  // namespace

std::vector<Judged> judge_as_new_gpu(std::vector<RunRow> rows, PublishedTables tables, const NewGpu& asked,
                                     const std::function<void(std::size_t done, std::size_t all)>& progress) {
  const DataSheet gpu = known_sheet(asked.gpu), like = known_sheet(asked.like);
  if (same_generation(gpu, like))
    throw_usage("--as-data-sheet: found {} and {}, which are of one generation; needs a GPU of another one", gpu.name,
                like.name);
  std::erase_if(rows, [&](const RunRow& row) {
    const auto sheet = data_sheet(row.gpu);
    return !sheet || sheet->name != gpu.name;
  });
  if (rows.empty()) throw_usage("--as-data-sheet: found no row on {}", gpu.name);
  const auto of_generation = [&](const std::string& name) {
    const auto sheet = data_sheet(name);
    return sheet && same_generation(*sheet, gpu);
  };
  const auto leave_out = [&](auto& measured) {
    std::erase_if(measured, [&](const auto& row) { return of_generation(row.gpu); });
  };
  leave_out(tables.kernels);
  leave_out(tables.collectives);
  leave_out(tables.row_exchanges);
  leave_out(tables.runs);
  std::erase_if(tables.step_errors, [&](const MeasuredRun& run) { return of_generation(run.features.gpu); });
  const std::string written = know_data_sheet(written_sheet(gpu, like));
  for (RunRow& row : rows) row.gpu = written;
  return judge_runs(rows, PublishedTimes(std::move(tables)), {.progress = progress});
}

}  // namespace wt
