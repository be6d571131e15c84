// The commands by which `windtunnel watch --act` changes a job and its nodes: a strict YAML file, examples in
// configs/watch. A command is a list of arguments. No shell reads them, so no name or reason can become a command.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "planner/watch/rules.hpp"

namespace wt {

enum class HookKind {
  save,      ///< writes a checkpoint now; may end the job
  stop,      ///< ends the job if it runs; its nodes stay allocated
  sweep,     ///< measures all nodes, as windtunnel health does, and writes {output}
  cordon,    ///< {node} gets no more jobs
  uncordon,  ///< {node} gets jobs again
  start,     ///< starts the job from the newest checkpoint that its run file allows; returns once it runs
  tell,      ///< tells a human; the only optional hook
};
std::string to_string(HookKind kind);

struct HookCommand {
  /// Program and arguments, with placeholders. A relative program with a folder is relative to the hooks file.
  std::vector<std::string> words;
  double timeout_s = 0;
};

/// Values of the placeholders. An empty value gives the argument "".
struct HookValues {
  std::string run = {};       ///< folder of the run, absolute
  std::string node = {};      ///< cordon, uncordon
  std::string reason = {};    ///< one sentence
  std::string layout = {};    ///< start: the run file; "" = as before
  std::string excluded = {};  ///< start: cordoned nodes, "node-003,node-007"
  std::string output = {};    ///< sweep: the file to write
};

struct WatchHooks {
  std::map<HookKind, HookCommand> commands;
  std::int64_t spares = 0;  ///< standby nodes, which `start` uses in place of excluded ones
  std::filesystem::path file;
};

/// Reads a preset of configs/watch or a file. Throws Error{usage} with file, line, found and allowed: for a missing
/// hook, a placeholder that is unknown or has no value for the hook, and a placeholder as the program or inside a shell
/// script.
WatchHooks read_watch_hooks(const std::string& name_or_file);
/// The command that tells a human, of a file that may have no other one. Throws as read_watch_hooks, and without
/// `tell`.
HookCommand read_tell_hook(const std::string& name_or_file);

/// Throws Error{usage} if loss or gradients are watched and `start` has no {layout}, because a rollback needs a run
/// file.
void check_start(const WatchHooks& hooks, const WatchRules& rules);

/// The arguments with the placeholders filled in.
std::vector<std::string> filled_in(const HookCommand& command, const HookValues& values);

}  // namespace wt
