#include "kernels/cpu/isa_table.hpp"

namespace wt::kernels {
const Backend* cpu_avx512() { return kTable; }
}  // namespace wt::kernels
