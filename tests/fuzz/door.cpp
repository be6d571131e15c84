#include "tests/fuzz/door.hpp"

#include <fstream>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/text.hpp"

namespace wt::fuzz {

void need_refusal() {
  try {
    throw;
  } catch (const Error& e) {
    if (e.code() != Code::usage || std::string(e.what()).empty()) throw;
  }
}

std::string sample(const std::filesystem::path& file, std::size_t most) {
  const std::string text = read_file(file, "a sample, from the root of the source tree");
  return text.size() <= most ? text : text.substr(0, text.rfind('\n', most) + 1);
}

std::filesystem::path written(const std::filesystem::path& folder, const std::string& name, const std::string& bytes) {
  std::ofstream(folder / name, std::ios::binary | std::ios::trunc) << bytes;
  return folder / name;
}

}  // namespace wt::fuzz
