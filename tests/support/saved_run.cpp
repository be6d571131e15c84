#include "tests/support/saved_run.hpp"

#include "configs/spec/support/error.hpp"
#include "tests/support/temp_directory.hpp"

namespace wt::test {

namespace fs = std::filesystem;

RunSpec saved_run(std::int64_t steps) {
  RunSpec run = with_layout(small_run(), 2, 2, 2);
  run.optimizer.final_lr_fraction = 1;
  run.save = true, run.save_interval = 2, run.keep_checkpoints = 6, run.steps = steps;
  return run;
}

fs::path copy_of_straight_run(const std::string& name) {
  fs::copy(trained(saved_run(12)), scratch(name), fs::copy_options::recursive);
  return scratch(name);
}

fs::path shard(const fs::path& checkpoint, int index) {
  for (const auto& entry : fs::directory_iterator(checkpoint))
    if (entry.path().filename().string().starts_with(fmt::format("shard-{:05}-model-00001-of-", index)))
      return entry.path();
  throw_error(Code::runtime, "{}: no file of rank {}", checkpoint.string(), index - 1);
}

void flip_byte(const fs::path& file) {
  std::string bytes = read_bytes(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_bytes(file, bytes);
}

std::map<std::string, std::string> bytes_below(const fs::path& folder) {
  std::map<std::string, std::string> out;
  std::error_code unopenable;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file(unopenable)) out[fs::relative(entry.path(), folder).string()] = read_bytes(entry.path());
  return out;
}

}  // namespace wt::test
