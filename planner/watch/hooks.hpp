// The commands by which `windtunnel watch --act` touches a job and its nodes: a strict YAML file, examples in
// configs/watch. A command is a list of arguments; no shell reads them, so no name or reason can become a command.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "planner/watch/rules.hpp"

namespace wt {

enum class HookKind {
  save,      ///< a checkpoint, now; the job may end with it
  stop,      ///< the job, if it still runs; its nodes stay allocated
  sweep,     ///< the health of all nodes, as windtunnel health writes it, into {output}
  cordon,    ///< {node} gets no jobs
  uncordon,  ///< it gets them again
  start,     ///< the job, from the newest checkpoint that its run file allows; returns once it is started
  tell,      ///< a human; the only hook that may be missing
};
std::string to_string(HookKind kind);

struct HookCommand {
  /// Program and arguments, with placeholders. A relative program with a folder is beside the hooks' file.
  std::vector<std::string> words;
  double timeout_s = 0;
};

/// What stands for the placeholders. Each may be empty: then its argument is "".
struct HookValues {
  std::string run = {};       ///< folder of the run, absolute
  std::string node = {};      ///< cordon, uncordon
  std::string reason = {};    ///< one sentence
  std::string layout = {};    ///< start: the run file to start with; "" = as before
  std::string excluded = {};  ///< start: nodes that are cordoned, "node-003,node-007"
  std::string output = {};    ///< sweep: the file to write
};

struct WatchHooks {
  std::map<HookKind, HookCommand> commands;
  std::int64_t spares = 0;  ///< nodes that stand by, which `start` takes for those that are excluded
  std::filesystem::path file;
};

/// A preset of configs/watch or a file. Throws Error{usage} with file, line, found and allowed: a hook that is missing,
/// an unknown placeholder or one that the hook has no value for, a placeholder for the program or inside a shell's
/// script.
WatchHooks read_watch_hooks(const std::string& name_or_file);

/// Throws Error{usage} where loss or gradients are watched and `start` has no {layout}: a run goes back by a run file.
void check_start(const WatchHooks& hooks, const WatchRules& rules);

/// The arguments with the placeholders filled in.
std::vector<std::string> filled_in(const HookCommand& command, const HookValues& values);

}  // namespace wt
