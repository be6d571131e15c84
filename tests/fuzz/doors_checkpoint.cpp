// The doors of the trainer's own side, which is linked with LibTorch: copies of the state in the memory of nodes.
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/base/text.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "tests/fuzz/door.hpp"
#include "trainer/checkpoint/local_copy.hpp"
#include "trainer/safetensors/manifest.hpp"
#include "trainer/safetensors/safetensors.hpp"
#include "trainer/safetensors/sealed_document.hpp"

namespace wt::fuzz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kStep = 12;
constexpr std::size_t kNumbers = 6;

std::string bytes_in(const fs::path& file) { return read_file(file, "a part that was just written"); }

/// What one rank wrote: the record, and the numbers beside it.
struct Part {
  std::string record, numbers;
};

Part part_of(const RunSpec& run) {
  const ScratchFolder scratch("fuzz-copy");
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  write_copy(scratch.path() / "local", {kStep, "history", 0, {}}, run, values);
  const fs::path folder = scratch.path() / "local" / step_name(kStep);
  return {bytes_in(folder / "shard-00001.json"), bytes_in(folder / "shard-00001.safetensors")};
}

/// Found and read as a start of the run does it. A record that cannot be read is passed over, whatever the reason, so
/// that only what ends the process is a finding there.
void read_copies(const fs::path& node, const RunSpec& run) {
  std::vector<PassedOverCopy> passed_over;
  for (const FoundCopy& copy : find_copies(node, run, passed_over)) {
    std::vector<float> values(kNumbers);
    read_copy(copy, values);
  }
  if (!passed_over.empty()) throw_usage("{}", passed_over.front().why);
}

}  // namespace

std::vector<Door> all_doors() {
  const RunSpec run = test::small_run();
  const Part whole = part_of(run);
  std::vector<Door> doors;
  doors.push_back({"local_copy_record", {whole.record}, [run, whole](const auto& input, const fs::path& folder) {
                     const fs::path step = folder / "local" / step_name(kStep);
                     fs::create_directories(step);
                     json changed = json::parse(input, nullptr, false);  // sealed again: else that alone is looked at
                     if (changed.is_object()) changed = sealed(changed);
                     written(step, "shard-00001.json", changed.is_object() ? changed.dump() : input);
                     written(step, "shard-00001.safetensors", whole.numbers);
                     read_copies(folder, run);
                   }});
  doors.push_back({"local_copy_numbers", {whole.numbers}, [](const auto& input, const fs::path& folder) {
                     FoundCopy copy;
                     copy.file = written(folder, "shard-00001.safetensors", input);
                     copy.bytes = static_cast<std::int64_t>(input.size());
                     copy.header_xxh3 = read_safetensors(copy.file).header_xxh3;
                     std::vector<float> values(kNumbers);
                     read_copy(copy, values);
                   }});
  return doors;
}

}  // namespace wt::fuzz
