// Times of attention by its shape alone: what a library makes of it is libraries.hpp.
#pragma once
#include "sim/cost/kernels/kernel_task.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

/// Attention at the tensor cores' full rate: for each query the keys that its tile of rows meets (with a causal mask
/// half of them and half a tile of masked ones; in a window fewer, and half a tile of masked ones at either end),
/// kStartupKeys more for the tile's start and end, and the softmax of a
/// score as kSoftmaxWidth more of the head's width.
double attention_time_s(const KernelShape& attention, double relative_rate, const DataSheet& gpu);
/// Of a step program's item, in a 16-bit type.
double attention_time_s(const WorkItem& attention, const DataSheet& gpu);

/// Attention that keeps its scores: both triangles by products of the library, forward two, backward four; between them
/// every score passes through memory.
struct UnfusedAttention {
  double products_s = 0, memory_s = 0;
};
UnfusedAttention unfused_attention(const WorkItem& attention, const DataSheet& gpu);

}  // namespace wt
