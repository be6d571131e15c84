// One door under libFuzzer, which keeps the inputs that reached new code and changes those (preset fuzz, needs clang):
//   build/fuzz/bin/fuzz_door --door=model -max_total_time=60 -timeout=10 -malloc_limit_mb=1024 out/fuzz/model
// A folder that is not there is made, with what fuzz_doors knows of the door. A file is read alone. An input that the
// door neither reads nor refuses by Error{usage} ends the process, as a finding of a sanitizer does.
#include <fmt/ranges.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/base/scratch_folder.hpp"
#include "tests/fuzz/door.hpp"

// The names are libFuzzer's.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace wt::fuzz {
namespace {

namespace fs = std::filesystem;

struct Opened {
  Door door;
  ScratchFolder folder{"fuzz"};
};
std::unique_ptr<Opened> opened;

void open_door(const std::string& name, const fs::path& inputs) {
  std::vector<std::string> names;
  for (Door& door : all_doors()) {
    names.push_back(door.name);
    if (door.name == name) opened.reset(new Opened{std::move(door)});
  }
  if (!opened) throw_usage("found no door '{}', needs --door= with one of {}", name, fmt::join(names, ", "));
  if (inputs.empty() || fs::exists(inputs)) return;
  fs::create_directories(inputs);
  const std::vector<std::string> known = known_inputs(opened->door);
  for (std::size_t i = 0; i < known.size(); ++i)
    std::ofstream(inputs / fmt::format("known-{}", i), std::ios::binary) << known[i];
}

}  // namespace
}  // namespace wt::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) try {
  std::string name, inputs;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (word.substr(0, 7) == "--door=")
      name = word.substr(7);
    else if (inputs.empty() && word.substr(0, 1) != "-")
      inputs = word;
  }
  wt::fuzz::open_door(name, inputs);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  std::string refused;
  const std::string wrong = wt::fuzz::answer(wt::fuzz::opened->door, input, wt::fuzz::opened->folder.path(), refused);
  if (wrong.empty()) return 0;
  fmt::print(stderr, "{}: {}\n", wt::fuzz::opened->door.name, wrong);
  std::abort();
}
