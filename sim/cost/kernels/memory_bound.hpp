// Time of a kernel that works row by row and is bound by memory (normalisation, activation, addition): launch, then the
// longer of one row's pass, which a single block makes however few rows there are, and of moving the bytes, at one rate
// while they fit the L2 cache and at another beyond.
#pragma once
#include "configs/files/data_sheet.hpp"

namespace wt {

struct RowKernel {
  double rows = 0, width = 0;
  double bytes = 0;  ///< read and written
};

struct MemoryBoundConstants {
  double launch_s = 0;
  double pass_s = 0;        ///< for each element of a row's width
  double cache_share = 0;   ///< of the data sheet's memory bandwidth, while in L2; may be above 1
  double memory_share = 0;  ///< beyond
};

double memory_bound_time_s(const RowKernel& kernel, const DataSheet& gpu, const MemoryBoundConstants& constants);

/// Middle values of A100 and H100, where a fit begins.
MemoryBoundConstants typical_memory_bound();

}  // namespace wt
