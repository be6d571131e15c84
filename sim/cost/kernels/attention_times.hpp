// Times of attention by its shape alone. The factor of the library's kernel is in libraries.hpp.
#pragma once
#include "sim/cost/kernels/kernel_task.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

/// Seconds of attention at the tensor cores' full rate. Each query meets the keys of its tile of rows: with a causal
/// mask, half of all keys and half a tile of masked ones; in a window, fewer keys and half a tile of masked ones at
/// either end. kStartupKeys more keys account for the tile's start and end. The softmax of a score costs as much as
/// kSoftmaxWidth more of the head's width.
double attention_time_s(const KernelShape& attention, double relative_rate, const DataSheet& gpu);
/// Seconds of a step program's item, in a 16-bit type.
double attention_time_s(const WorkItem& attention, const DataSheet& gpu);

/// Attention that keeps its scores. It computes both triangles with the library's products: two forward, four backward.
/// Between the products, every score passes through memory.
struct UnfusedAttention {
  double products_s = 0, memory_s = 0;
};
UnfusedAttention unfused_attention(const WorkItem& attention, const DataSheet& gpu);

}  // namespace wt
