// Time of a memory-bound kernel that works row by row (normalisation, activation, addition): the launch, then the
// longer of two times. One is the pass over one row, which a single block makes however few rows there are. The other
// is moving the bytes, at one rate while they fit the L2 cache and at another rate beyond.
#pragma once
#include "configs/files/data_sheet.hpp"

namespace wt {

struct RowKernel {
  double rows = 0, width = 0;
  double bytes = 0;  ///< read and written
};

struct MemoryBoundConstants {
  double launch_s = 0;
  double pass_s = 0;        ///< per element of a row's width
  double cache_share = 0;   ///< reached share of the data sheet's memory bandwidth in L2; may be above 1
  double memory_share = 0;  ///< the same beyond L2
};

double memory_bound_time_s(const RowKernel& kernel, const DataSheet& gpu, const MemoryBoundConstants& constants);

/// Values between those of A100 and H100: the start of a fit.
MemoryBoundConstants typical_memory_bound();

}  // namespace wt
