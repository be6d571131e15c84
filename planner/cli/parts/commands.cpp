#include "planner/cli/parts/commands.hpp"

#include <fmt/core.h>

#include "configs/base/atomic_file.hpp"

namespace wt {
namespace {

int status = 0;

}  // namespace

void set_status(int found) { status = found; }

int status_found() { return status; }

void put_document(const std::string& document, const std::string& file) {
  if (file.empty() || file == "-") return fmt::print("{}{}", document, document.ends_with('\n') ? "" : "\n");
  write_file_atomically(file, document);
  fmt::print(stderr, "wrote {}\n", file);
}

}  // namespace wt
