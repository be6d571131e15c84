// Splits the rows of a CPU kernel over threads. Every row, or run of rows that is summed, is computed by one thread, so
// that the bits do not depend on the number of threads.
#pragma once
#include <stdint.h>

namespace wt::kernels {

/// body(context, begin, end) over parts of [0, rows), one of them in the calling thread. `row_bytes` is what a row
/// reads and writes, or an equivalent cost. It determines how many threads are started, up to wt_kernel_set_threads().
void run_rows(int64_t rows, int64_t row_bytes, void (*body)(void* context, int64_t begin, int64_t end), void* context);

}  // namespace wt::kernels
