// A published run's parallelism as our layout says it, and the run as a run file does.
#pragma once
#include "configs/files/layout.hpp"
#include "configs/files/run.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

/// How the run's framework arranges it. Throws Error{usage} where no layout of ours does.
Layout layout_of(const RunRow& run);
/// The same with its stages and their chunks, which layout_of leaves out.
Layout staged_layout_of(const RunRow& run);
/// The run as a run file says it: what steps and memory are asked of.
RunSpec run_spec_of(const RunRow& row);

}  // namespace wt
