#include "trainer/checkpoint/earlier_run.hpp"

#include "configs/spec/support/error.hpp"

namespace wt {

namespace fs = std::filesystem;

fs::path free_name(const fs::path& path) {
  fs::path name = path;
  for (int i = 2; fs::exists(fs::symlink_status(name)); ++i) name = fmt::format("{}-{}", path.string(), i);
  return name;
}

fs::path move_earlier_run(const fs::path& folder) try {
  const fs::path earlier = free_name(folder / "earlier");
  const auto there = [&](const char* name) { return fs::exists(fs::symlink_status(folder / name)); };
  bool moved = false;
  for (const char* name : {"checkpoints", "checkpoints.jsonl", "metrics.jsonl", "summary.json", "profile.json",
                           "routing.csv", "timeline.json", "trace.json", "agent.json", ".saved"}) {
    if (!there(name)) continue;
    fs::create_directories(earlier);
    fs::rename(folder / name, earlier / name);
    moved = true;
  }
  // A copy: the run that begins may be reading it.
  if (moved && there("run.yaml")) fs::copy_file(folder / "run.yaml", earlier / "run.yaml");
  return moved ? earlier : fs::path();
} catch (const fs::filesystem_error& e) {
  throw_error(Code::usage,
              "{}: the earlier run could not be moved aside whole ({}); move what is left of it by hand, or choose "
              "another output folder",
              folder.string(), e.what());
}

fs::path trace_of_saves(const fs::path& folder) { return folder / ".saved"; }

void check_nothing_was_saved(const fs::path& folder) {
  const fs::path saves = folder / "checkpoints.jsonl", trace = trace_of_saves(folder);
  std::error_code absent;
  if (const auto bytes = fs::file_size(saves, absent); !absent && bytes > 0)
    throw_nothing_to_resume(folder, saves.string() + " lists some that are gone");
  if (fs::exists(trace, absent)) throw_nothing_to_resume(folder, trace.string() + " says that some were saved");
}

void throw_nothing_to_resume(const fs::path& folder, const std::string& wrong) {
  throw_error(Code::usage,
              "{}: found checkpoints, or traces of them, and none that can be read ({}); needs one to go on from, or a "
              "folder without; bring one back, take the build that wrote them, choose another output folder, or set "
              "autoresume: false, which moves what is there to a folder `earlier` and begins anew; nothing was changed",
              folder.string(), wrong);
}

}  // namespace wt
