#include "kernels/cpu/isa_table.hpp"

namespace wt::kernels {
const Backend* cpu_avx2() { return kTable; }
}  // namespace wt::kernels
