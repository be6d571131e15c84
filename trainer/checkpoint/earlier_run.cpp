#include "trainer/checkpoint/earlier_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <vector>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/running.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

bool there(const fs::path& path) { return fs::exists(fs::symlink_status(path)); }
fs::path unfinished_move(const fs::path& folder) { return folder / "earlier.partial"; }

/// Corrects a relative link that was moved one level down, unless its target was moved with it.
void restore_target(const fs::path& moved) {
  if (!fs::is_symlink(moved)) return;
  const fs::path target = fs::read_symlink(moved);
  if (target.is_absolute()) return;
  const std::string first = target.lexically_normal().begin()->string();
  if (std::ranges::find(kRunFiles, first) != kRunFiles.end()) return;
  const fs::path corrected = moved.string() + ".link";
  fs::remove(corrected);
  fs::create_symlink(fs::canonical(moved.parent_path().parent_path()) / target, corrected);
  fs::rename(corrected, moved);
}

/// Returns the new folder; empty if nothing had to be moved.
fs::path move_earlier_run(const fs::path& folder) try {
  const fs::path partial = unfinished_move(folder);
  for (const std::string_view name : kRunFiles) {
    if (!there(folder / name)) continue;
    if (there(partial / name))  // a rename would replace one by the other
      throw_usage(
          "{}: found {} there and in {}, where a move that was cut short has put it; needs it in one of the two; move "
          "the other away, or choose another output folder",
          folder.string(), name, partial.string());
    fs::create_directories(partial);
    fs::rename(folder / name, partial / name);
  }
  if (!there(partial)) return {};
  for (const std::string_view name : kRunFiles) restore_target(partial / name);
  // Copied, because the new run may be reading it.
  if (there(folder / kRunFile))
    fs::copy_file(folder / kRunFile, partial / kRunFile, fs::copy_options::overwrite_existing);
  const fs::path earlier = free_name(folder / "earlier");
  fs::rename(partial, earlier);
  return earlier;
} catch (const fs::filesystem_error& e) {
  ::rmdir(unfinished_move(folder).c_str());  // succeeds only if nothing was moved
  throw_usage(
      "{}: the earlier run could not be moved aside whole ({}); what was moved, if anything, is in {}; fix that and "
      "start again, which goes on with the move, or choose another output folder",
      folder.string(), e.what(), unfinished_move(folder).string());
}

/// Whether it is a temporary file of write_file_atomically() whose process has ended.
bool is_abandoned(const std::string& name) {
  int process = 0, number = 0, read = 0;
  return std::sscanf(name.c_str(), ".windtunnel-%d-%d.tmp%n", &process, &number, &read) == 2 &&
         read == static_cast<int>(name.size()) && !is_running(process);
}

}  // namespace

void remove_half_written(const fs::path& folder) {
  for (const fs::path& each : {folder, folder / kCheckpointsFolder}) {
    if (!fs::is_directory(each)) continue;
    std::vector<fs::path> gone;
    for (const auto& entry : fs::directory_iterator(each))
      if (const std::string name = entry.path().filename().string();
          (name.starts_with("step-") && name.ends_with(".partial")) || is_abandoned(name))
        gone.push_back(entry.path());
    for (const fs::path& path : gone) fs::remove_all(path);
  }
}

fs::path free_name(const fs::path& path) {
  fs::path name = path;
  for (int i = 2; there(name); ++i) name = fmt::format("{}-{}", path.string(), i);
  return name;
}

void make_way(const fs::path& folder, bool autoresume, const std::string& launch, bool restart) {
  const bool unfinished = there(unfinished_move(folder));
  if (autoresume && unfinished)
    throw_usage(
        "{}: found {}: moving an earlier run aside was cut short, and this run has no autoresume: false; start once "
        "with it, which finishes the move, or move what is there back; nothing was changed",
        folder.string(), unfinished_move(folder).filename().string());
  if (autoresume) return;
  const fs::path begun = folder / ".anew";
  std::ifstream in(begun);
  if (std::string by; restart && !unfinished && std::getline(in, by) && by == launch) return;
  const fs::path earlier = move_earlier_run(folder);
  write_file_atomically(begun, launch + "\n");
  if (!earlier.empty())
    print_error("autoresume: false: what {} held was moved to {}\n", folder.string(), earlier.string());
}

fs::path trace_of_saves(const fs::path& folder) { return folder / kSavedTrace; }

void check_nothing_was_saved(const fs::path& folder) {
  const fs::path saves = folder / kSavesFile, trace = trace_of_saves(folder);
  std::error_code absent;
  if (const auto bytes = fs::file_size(saves, absent); !absent && bytes > 0)
    throw_nothing_to_resume(folder, saves.string() + " lists some that are gone");
  if (fs::exists(trace, absent)) throw_nothing_to_resume(folder, trace.string() + " says that some were saved");
}

void throw_nothing_to_resume(const fs::path& folder, const std::string& wrong) {
  throw_usage(
      "{}: found checkpoints, or traces of them, and none that can be read ({}); needs one to go on from, or a folder "
      "without; bring one back, take the build that wrote them, choose another output folder, or set autoresume: "
      "false, which moves what is there to a folder `earlier` and begins anew; nothing was changed",
      folder.string(), wrong);
}

}  // namespace wt
