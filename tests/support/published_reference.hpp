// The published measurements in the tree, read once a test program.
#pragma once
#include "configs/spec/find.hpp"
#include "configs/spec/stack.hpp"
#include "sim/validate/runs.hpp"

namespace wt::test {

inline const RunReference& published_reference() {
  static const RunReference tables = run_reference(configs_folder() / "measurements", read_stacks());
  return tables;
}

}  // namespace wt::test
