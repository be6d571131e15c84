// What an output folder holds of an earlier run is never trained over: a run goes on from it, ends with an error, or,
// where its file says `autoresume: false`, moves it aside and begins anew.
#pragma once
#include <filesystem>
#include <string>

namespace wt {

/// `path`, or path-2, path-3, ...: the first that does not exist.
std::filesystem::path free_name(const std::filesystem::path& path);

/// What a start does about an earlier run in `folder` before anything of it is read or written, on one process.
///
/// Without autoresume, checkpoints, metrics and what else a run leaves are moved to folder/earlier, earlier-2, ...;
/// then the file `.anew` names the launch that begins here. A restart of that launch leaves its own run where it is.
/// The move goes to `earlier.partial`, which gets its name when all is there: one that a kill has cut short is finished
/// first. Throws Error{usage} where something cannot be moved, and, with autoresume, where a move was cut short: no
/// restart of a rank mends that.
///
/// `launch`: see launch_name(); `restart`: the launcher has started it before.
void make_way(const std::filesystem::path& folder, bool autoresume, const std::string& launch, bool restart);

/// Removes what a killed process has left half written of checkpoints and other files, and no process of this machine
/// writes any more. Not of a folder of which nothing could be read: see throw_nothing_to_resume().
void remove_half_written(const std::filesystem::path& folder);

/// The file of an output folder that is there from the first save on, and stays where `checkpoints` is moved, emptied
/// or not mounted.
std::filesystem::path trace_of_saves(const std::filesystem::path& folder);

/// Throws Error{usage} where the trace or checkpoints.jsonl says that a run has saved some: called when none is there
/// to go on from.
void check_nothing_was_saved(const std::filesystem::path& folder);

/// Throws Error{usage}: `folder` holds what a run may not begin over, for the reason `wrong`.
[[noreturn]] void throw_nothing_to_resume(const std::filesystem::path& folder, const std::string& wrong);

}  // namespace wt
