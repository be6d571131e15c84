// windtunnel completion: a script for bash or zsh that completes subcommands, flags and presets. All of its words are
// those of the command line: a flag's presets are of the folder of configs/ that its help names.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <regex>

#include "configs/base/installed.hpp"
#include "configs/base/lists.hpp"
#include "configs/files/find.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/words.hpp"

namespace wt {
namespace {

/// Branches of the script's two `case` lists, for a command and those below it.
struct Branches {
  std::string words;    ///< by command: subcommands and long flags
  std::string presets;  ///< by command and flag, or by command for its positional words; "-": other values
};

std::string presets_of(const std::string& help) {
  static const std::regex folder("configs/([a-z]+(/[a-z]+)*)");
  std::smatch found;
  const bool named = std::regex_search(help, found, folder);
  return named && !preset_names(found[1]).empty() ? found[1].str() : "";
}

/// Not echo, to which words that begin with a dash are options; a dash alone is one in zsh.
std::string branch(const std::string& pattern, const std::string& words) {
  return fmt::format("    '{}') printf '%s\\n' '{}' ;;\n", pattern, words);
}

/// Of a command whose words another program reads, that program's help is asked.
std::string asks_help(const std::string& path) {
  return fmt::format(
      "    '{}'*) \"$_windtunnel_program\" $1 --help 2>/dev/null |\n"
      "      sed -nE 's/^  (-[a-z],)?(--[a-z-]+|[a-z]+) .*/\\2/p' | tr '\\n' ' ' ;;\n",
      path);
}

void add_command(const CLI::App& command, const std::string& path, Branches& out) {
  std::vector<std::string> words;
  std::string positional;
  const auto subcommands = command.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : subcommands) words.push_back(sub->get_name());
  for (const CLI::Option* option : command.get_options()) {
    const std::string presets = presets_of(option->get_description());
    if (option->get_positional() && !presets.empty()) positional += (positional.empty() ? "" : " ") + presets;
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    if (option->get_items_expected_min() == 0) continue;
    for (const std::string& name : option->get_lnames())
      out.presets += branch(path + " --" + name, presets.empty() ? "-" : presets);
    for (const std::string& name : option->get_snames())
      out.presets += branch(path + " -" + name, presets.empty() ? "-" : presets);
  }
  if (!positional.empty()) out.presets += branch(path, positional);
  out.words += command.get_prefix_command() ? asks_help(path) : branch(path, joined(words, " "));
  for (const CLI::App* sub : subcommands) add_command(*sub, (path.empty() ? "" : path + " ") + sub->get_name(), out);
}

/// For a word: the subcommands so far, then what may follow them, or the flag before. zsh runs it under bashcompinit,
/// where `words` is an array of its own.
constexpr const char* kFunction = R"script(_windtunnel() {
  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" offered="" kinds="" i kind
  if [[ $before == "=" ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
  if [[ $current == "=" ]]; then current=""; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case " $(_windtunnel_words "$command") " in
      *" ${COMP_WORDS[i]} "*) [[ ${COMP_WORDS[i]} == -* ]] || command="${command:+$command }${COMP_WORDS[i]}" ;;
    esac
  done
  [[ $before != -* ]] || kinds=$(_windtunnel_presets "$command $before")
  if [[ -z $kinds ]]; then
    offered=$(_windtunnel_words "$command")
    kinds=$(_windtunnel_presets "$command")
  fi
  if [[ $current != -* ]]; then
    [[ -z $kinds ]] || offered=""
    for kind in $kinds; do
      [[ $kind == - ]] || offered+=" "$("$_windtunnel_program" list "$kind" 2>/dev/null | sed 's/ .*//')
    done
  fi
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
}
complete -o default -F _windtunnel windtunnel
)script";

std::string script(const CLI::App& app) {
  Branches branches;
  add_command(app, "", branches);
  const auto function = [](const char* name, const std::string& cases) {
    return fmt::format("{}() {{\n  case $1 in\n{}  esac\n}}\n", name, cases);
  };
  return fmt::format("_windtunnel_program='{}'\n", (program_folder() / "windtunnel").string()) +
         function("_windtunnel_words", branches.words) + function("_windtunnel_presets", branches.presets) + kFunction;
}

}  // namespace

void add_completion(CLI::App& app) {
  const Command command(app, "completion", "Script that completes subcommands, flags and presets in a shell");
  command.require_subcommand();
  const auto shell = [&](const std::string& name, const std::string& before) {
    const Command sub =
        command.subcommand(name, fmt::format("For {0}, in ~/.{0}rc: source <(windtunnel completion {0})\n"
                                             "Example: windtunnel completion {0} > completion.{0}",
                                             name));
    sub.runs([&app, before] { put_document(before + script(app), ""); });
  };
  shell("bash", "");
  shell("zsh", "autoload -U +X bashcompinit && bashcompinit\n");
}

}  // namespace wt
