// Rows of a CPU kernel over several threads. Every row, or run of rows that is summed, is computed alone, so that the
// bits do not depend on the number of threads.
#pragma once
#include <stdint.h>

namespace wt::kernels {

/// body(context, begin, end) over runs of [0, rows), one of them in the calling thread. `row_bytes`, what a row reads
/// and writes, or takes as long as to copy, decides how many threads are worth starting, up to wt_kernel_set_threads().
void run_rows(int64_t rows, int64_t row_bytes, void (*body)(void* context, int64_t begin, int64_t end), void* context);

}  // namespace wt::kernels
