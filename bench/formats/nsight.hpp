// Reads the SQLite export of NVIDIA Nsight Systems (nsys export --type sqlite). Source of the tables: "SQLite Export
// Schema Reference" of its documentation. Tables exist only where they have rows.
#pragma once
#include <filesystem>

#include "bench/formats/gpu_trace.hpp"

namespace wt {

/// Whether the file begins as SQLite's do.
bool is_sqlite(const std::filesystem::path& file);

/// Kernels, copies and fills of one GPU; NVTX ranges that are called ProfilerStep#k, "step k" or "iteration k" are
/// marks. Such a trace says neither the rank nor the process group of a collective. Throws Error{usage}: no such
/// database, damage, no kernels, kernels of a second GPU, CUDA graphs that were traced as a whole, more than 20 million
/// rows.
GpuTrace read_nsight(const std::filesystem::path& file);

}  // namespace wt
