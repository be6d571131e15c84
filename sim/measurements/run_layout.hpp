// A published run's parallelism as our Layout, and the run as a run file.
#pragma once
#include "configs/files/layout.hpp"
#include "configs/files/run.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

/// The layout that the run's framework uses. Throws Error{usage} if our Layout cannot describe it.
Layout layout_of(const RunRow& run);
/// The same with pipeline stages and their chunks, which layout_of leaves out.
Layout staged_layout_of(const RunRow& run);
/// The run as a run file, from which its step and memory are predicted.
RunSpec run_spec_of(const RunRow& row);

}  // namespace wt
