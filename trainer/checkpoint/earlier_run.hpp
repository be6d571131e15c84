// A run never overwrites an earlier run in its output folder: it continues from it, ends with an error or, with
// `autoresume: false` in its file, moves it aside and starts from the beginning.
#pragma once
#include <filesystem>
#include <string>

namespace wt {

/// The first of `path`, path-2, path-3, ... that does not exist.
std::filesystem::path free_name(const std::filesystem::path& path);

/// Handles an earlier run in `folder`. One process calls it at the start, before any file of the folder is read or
/// written.
///
/// Without autoresume, checkpoints, metrics and all other files of a run are moved to folder/earlier, earlier-2, ...;
/// then the file `.anew` names the launch that begins here. A restart of that launch does not move its own run. Files
/// are moved to `earlier.partial`, which is renamed when all are there; a move that was interrupted by a kill is
/// completed first. Throws Error{usage} where something cannot be moved and, with autoresume, where a move was
/// interrupted, because no restart of a rank can repair that.
///
/// `launch`: see launch_name(); `restart`: the launcher has already started this launch once.
void make_way(const std::filesystem::path& folder, bool autoresume, const std::string& launch, bool restart);

/// Removes incomplete checkpoints and other incomplete files of killed processes, unless a process of this machine
/// still writes them. Must not be called for a folder whose checkpoints could not be read: see
/// throw_nothing_to_resume().
void remove_half_written(const std::filesystem::path& folder);

/// The file in an output folder that exists from the first save on. It remains when `checkpoints` is moved, emptied or
/// not mounted.
std::filesystem::path trace_of_saves(const std::filesystem::path& folder);

/// Called when no checkpoint is found. Throws Error{usage} if the trace of saves or checkpoints.jsonl shows that a run
/// has saved some.
void check_nothing_was_saved(const std::filesystem::path& folder);

/// Throws Error{usage}: the run must not start from the beginning in `folder`, for the reason `wrong`.
[[noreturn]] void throw_nothing_to_resume(const std::filesystem::path& folder, const std::string& wrong);

}  // namespace wt
