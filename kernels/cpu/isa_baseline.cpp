#include "kernels/cpu/isa_table.hpp"

namespace wt::kernels {
const Backend* cpu_baseline() { return kTable; }
}  // namespace wt::kernels
