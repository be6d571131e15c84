// Command lines, alone or in a launch script (planner/shell): which command a script starts, how many GPUs its launcher
// takes, and the program's flags and overrides.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <ranges>
#include <set>

#include "configs/base/error.hpp"
#include "planner/recipes/recipe.hpp"
#include "planner/recipes/settings.hpp"
#include "planner/shell/evaluate.hpp"
#include "planner/shell/shell.hpp"
#include "planner/shell/unknown_text.hpp"

namespace wt {
namespace {

using Words = std::vector<std::string>;
using shell::has_unknown;
using shell::plain;
using shell::shown;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// a.b=c, +a.b=c or ~a.b of Hydra.
bool is_override(const std::string& word) {
  const std::size_t begin = std::min(word.find_first_not_of("+~"), word.size()), equals = word.find('=');
  if (equals == std::string::npos || equals <= begin || std::isdigit(static_cast<unsigned char>(word[begin])) != 0)
    return false;
  return std::all_of(word.begin() + static_cast<std::ptrdiff_t>(begin),
                     word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) { return is_name(c) || c == '.'; });
}

bool is_flag(const std::string& word) { return word.starts_with("--") && word.size() > 2; }

/// Flags and overrides, also of words that are there on a condition.
std::ptrdiff_t flags_in(const Words& words, std::size_t first = 0) {
  std::ptrdiff_t out = 0;
  for (std::size_t i = first; i < words.size(); ++i) {
    const auto optional = shell::optional_of(words[i]);
    out += is_flag(words[i]) || is_override(words[i]) || (optional && is_flag(optional->first)) ? 1 : 0;
  }
  return out;
}

/// What torchrun takes (torch.distributed.run); true: without a value.
const std::map<std::string, bool>& torchrun_words() {
  static const std::map<std::string, bool> all{{"nnodes", false},
                                               {"nproc-per-node", false},
                                               {"rdzv-backend", false},
                                               {"rdzv-endpoint", false},
                                               {"rdzv-id", false},
                                               {"rdzv-conf", false},
                                               {"standalone", true},
                                               {"max-restarts", false},
                                               {"monitor-interval", false},
                                               {"start-method", false},
                                               {"role", false},
                                               {"module", true},
                                               {"no-python", true},
                                               {"run-path", true},
                                               {"log-dir", false},
                                               {"redirects", false},
                                               {"tee", false},
                                               {"local-ranks-filter", false},
                                               {"node-rank", false},
                                               {"master-addr", false},
                                               {"master-port", false},
                                               {"local-addr", false},
                                               {"logs-specs", false},
                                               {"numa-binding", false}};
  return all;
}

std::string with_dashes(std::string word) {
  std::ranges::replace(word, '_', '-');
  return word;
}

bool starts_program(const std::string& word) {
  const std::string name = plain(word).substr(plain(word).rfind('/') + 1);
  return name == "torchrun" || name.starts_with("python") || name.starts_with("torch.distributed");
}

/// Where the program's own words begin: behind its file or module, or behind what a launcher starts; 0 if a command
/// names none.
std::size_t program_of(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = shown(words[i]);
    if (word.ends_with(".py")) return i + 1;
    const bool module = word == "-m" && i + 1 < words.size();
    if (module && !words[i + 1].starts_with("torch.distributed") && !words[i + 1].starts_with("accelerate"))
      return i + 2;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {  // a file that is not known
    if (!starts_program(words[i]) || (i + 1 < words.size() && words[i + 1] == "-m")) continue;
    for (++i; i < words.size() && words[i].starts_with("-"); ++i) {
      const std::string name = with_dashes(words[i].substr(std::min<std::size_t>(2, words[i].size())));
      const auto known = torchrun_words().find(name);
      if (known != torchrun_words().end() && !known->second) ++i;
    }
    return std::min(i + 1, words.size());
  }
  return 0;
}

/// The words of torchrun (torch.distributed.run) and of Slurm's and MPI's launchers that say how many processes start.
struct Launcher {
  std::string nodes, gpus, tasks, tasks_per_node;  ///< with marks; "" = not said
  bool torchrun = false, slurm = false;
};

Launcher launcher_of(const Words& words, std::size_t end) {
  Launcher out;
  for (std::size_t i = 0; i < end; ++i) {
    std::string name = words[i], value = i + 1 < end ? words[i + 1] : "";
    const std::string program = plain(name).substr(plain(name).rfind('/') + 1);
    out.torchrun = out.torchrun || program == "torchrun" || name.starts_with("torch.distributed");
    out.slurm = out.slurm || program == "srun" || program == "mpirun" || program == "mpiexec";
    if (const std::size_t equals = name.find('='); equals != std::string::npos && name.starts_with("-"))
      value = name.substr(equals + 1), name.resize(equals);
    name = with_dashes(name);
    if (name == "--nnodes" || name == "--nodes" || name == "-N") out.nodes = value;
    if (name == "--nproc-per-node") out.gpus = value;
    if (name == "--ntasks" || (name == "-n" && out.slurm) || name == "-np") out.tasks = value;
    if (name == "--ntasks-per-node") out.tasks_per_node = value;
  }
  return out;
}

/// Fallbacks of these say how a job is started where nobody starts it.
bool is_one_node_fallback(const std::string& word) { return plain(word) == "1" && !shell::fallbacks_in(word).empty(); }

/// Puts the number of processes as launch.gpus, or what is missing as launch.asks. launch.fallback names variables that
/// nobody set, and whose fallbacks are in that number.
void put_launch(const Launcher& launcher, const std::map<std::string, std::string>& directives, Settings& out) {
  const auto directive = [&](const char* name) {
    const auto found = directives.find(name);
    return found == directives.end() ? std::string() : found->second;
  };
  std::vector<std::string> factors;
  if (launcher.torchrun || !launcher.gpus.empty())
    factors = {launcher.nodes.empty() ? "1" : launcher.nodes, launcher.gpus.empty() ? "1" : launcher.gpus};
  else if (!launcher.tasks.empty())
    factors = {launcher.tasks};
  else if (launcher.slurm && !directive("ntasks").empty() && launcher.tasks_per_node.empty())
    factors = {directive("ntasks")};
  else if (launcher.slurm)
    factors = {launcher.nodes.empty() ? directive("nodes") : launcher.nodes,
               launcher.tasks_per_node.empty() ? directive("ntasks-per-node") : launcher.tasks_per_node};
  if (factors.empty() || std::ranges::find(factors, std::string()) != factors.end()) return;
  std::int64_t gpus = 1;
  std::set<std::string> fallbacks;
  for (const std::string& factor : factors) {
    for (const std::string& name : shell::fallbacks_in(factor)) fallbacks.insert(name);
    const Settings::Value number = scalar_of_word(plain(factor));
    const bool counts = number.is_number_integer() && number > 0 && number < (1 << 24);
    if (!counts || (is_one_node_fallback(factor) && &factor == &factors.front() && factors.size() > 1)) {
      const auto names = shell::fallbacks_in(factor);
      out.put("launch.asks", names.empty() ? shown(factor) : fmt::format("${{{}:-{}}}", names.front(), plain(factor)));
      return;
    }
    gpus *= number.get<std::int64_t>();
  }
  out.put("launch.gpus", gpus);
  if (!fallbacks.empty()) out.put("launch.fallback", fmt::format("{}", fmt::join(fallbacks, ", ")));
}

/// A word of the program's that stands for flags, and that nobody knows.
[[noreturn]] void refuse_unknown(const std::string& word, const std::string& origin, int line, const Words& not_read) {
  const std::string name = shell::first_unknown(word);
  const bool variable = name.size() > 1 && name[0] == '$' && name[1] != '(';
  std::string bare = name;
  std::erase_if(bare, [](char c) { return c == '$' || c == '{' || c == '}'; });
  throw_usage("{}: line {}: found {} among the flags, which {}{}; needs to be known; {}", origin, line, shown(word),
              variable ? "the script does not set" : "is not read",
              not_read.empty() ? "" : fmt::format(" (it reads {}, which is not there)", not_read.front()),
              variable && name.find(' ') == std::string::npos
                  ? fmt::format("give --env {}='...', or run the script's own words with --evaluate", bare)
                  : "write what it stands for, or run the script's own words with --evaluate");
}

class Reader {
 public:
  Reader(const std::string& origin, const shell::ReadScript& script) : origin_(origin), script_(script), out_(origin) {}

  void program(const shell::StartedCommand& command, std::size_t first) {
    const Words& words = command.words;
    alone_ = first == 0;
    for (std::size_t i = first; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (const auto optional = shell::optional_of(word)) {
        if (optional->first.starts_with("--")) out_.add_optional(optional->first, optional->second);
        continue;
      }
      if (has_unknown(word) && word.front() == '\x01') refuse_unknown(word, origin_, command.line, script_.not_read);
      if (is_override(word)) {
        override_word(word);
        continue;
      }
      if (is_flag(word)) i = flag(words, i);
    }
  }
  Settings take() {
    if (!fallbacks_.empty())
      out_.note(fmt::format("{}: set by nobody, taken as the script's own fallback; --env NAME=VALUE changes one",
                            fmt::join(fallbacks_, ", ")));
    return std::move(out_);
  }
  Settings& settings() { return out_; }

 private:
  void override_word(const std::string& word) {
    const std::size_t begin = word.find_first_not_of("+~"), equals = word.find('=');
    const std::string key = word.substr(begin, equals - begin);
    if (word[0] == '~') throw_usage("{}: found {}, which deletes a key; needs key=value", origin_, shown(word));
    out_.put(key, value_from_yaml(text_of(key, word.substr(equals + 1))));
  }
  /// Returns the place of its last value.
  std::size_t flag(const Words& words, std::size_t i) {
    std::string name = words[i].substr(2);
    Settings::Value values = Settings::Value::array();
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      const std::string value = name.substr(equals + 1);
      name.resize(equals);
      values.push_back(scalar_of_word(text_of(name, value)));
    } else {
      // A whole word that is not known may be a value, but behind another one it is as likely to be flags.
      while (i + 1 < words.size() && !ends_values(words[i + 1]) && !(!values.empty() && words[i + 1].front() == '\x01'))
        values.push_back(scalar_of_word(text_of(name, words[++i])));
    }
    name = with_dashes(name);
    if (alone_ && torchrun_words().contains(name)) return i;
    out_.put(shown(name), values.empty() ? Settings::Value(true) : values.size() == 1 ? values[0] : values);
    return i;
  }
  static bool ends_values(const std::string& word) {
    return word.starts_with("--") || is_override(word) || word.ends_with(".py") || shell::optional_of(word).has_value();
  }
  std::string text_of(const std::string& key, const std::string& word) {
    for (const std::string& name : shell::fallbacks_in(word)) fallbacks_.insert(name);
    if (has_unknown(word)) {
      out_.hint(key.find('.') == std::string::npos ? with_dashes(key) : key,
                fmt::format("the script does not say {}: write its value, give --env NAME=VALUE, or --evaluate",
                            shell::first_unknown(word)));
    }
    return shown(word);
  }

  const std::string& origin_;
  const shell::ReadScript& script_;
  Settings out_;
  bool alone_ = false;  ///< flags without a program, among which a launcher's may be
  std::set<std::string> fallbacks_;
};

/// The command with the most flags. Throws if another one has nearly as many and which one runs is not known.
const shell::StartedCommand* chosen(const shell::ReadScript& script, const std::string& origin, Settings& notes) {
  const shell::StartedCommand* best = nullptr;
  std::ptrdiff_t most = 0;
  for (const shell::StartedCommand& one : script.commands)
    if (const std::ptrdiff_t flags = flags_in(one.words, program_of(one.words)); flags > most)
      best = &one, most = flags;
  if (best == nullptr) return nullptr;
  std::size_t alike = 0;
  for (const shell::StartedCommand& one : script.commands) {
    if (&one == best || one.words == best->words || 2 * flags_in(one.words, program_of(one.words)) < most) continue;
    const bool open = !one.condition.empty() || !best->condition.empty();
    const Words a(one.words.begin() + static_cast<std::ptrdiff_t>(program_of(one.words)), one.words.end()),
        b(best->words.begin() + static_cast<std::ptrdiff_t>(program_of(best->words)), best->words.end());
    if (open && a != b)
      throw_usage(
          "{}: found two commands, in lines {} and {}, and which one runs depends on {}; needs one; give --env "
          "NAME=VALUE for what it asks, or the "
          "one command alone",
          origin, best->line, one.line, best->condition.empty() ? one.condition : best->condition);
    ++alike;
  }
  if (alike > 0)
    notes.note(fmt::format("line {}: {} more commands have as many flags, and are not read", best->line, alike));
  if (!best->condition.empty())
    notes.note(fmt::format("line {}: it runs only if {}, taken as so", best->line, best->condition));
  return best;
}

/// Of a script that starts nothing: the flags in its variables, which another script sources.
void read_variables(const shell::ReadScript& script, const std::string& origin, Reader& reader) {
  Words names;
  for (const auto& [name, words] : script.variables) {
    if (flags_in(words) == 0) continue;
    shell::StartedCommand command{.words = words, .line = 1, .condition = "", .input = ""};
    Settings before = reader.settings();
    reader.program(command, 0);
    for (const Settings::Entry& entry : before.entries())
      if (reader.settings().at(entry.key) != entry.value)
        reader.settings().fail(entry.key,
                               "found {} in {} and {} elsewhere, and no command that uses one of them; needs one",
                               shown(reader.settings().at(entry.key).dump()), name, entry.value.dump());
    names.push_back(name);
  }
  if (!names.empty())
    reader.settings().note(
        fmt::format("{}: no command uses {}; its flags are read alone", origin, fmt::join(names, ", ")));
}

std::string shell_word(const Settings::Value& value) {
  if (value.is_number()) return plain_number(value);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Only letters, digits, _ and `others`.
bool is_plain(const std::string& word, const std::string& others) {
  return !word.empty() &&
         std::ranges::all_of(word, [&](char c) { return is_name(c) || others.find(c) != std::string::npos; });
}

std::string in_quotes(const std::string& word) {
  if (is_plain(word, "./:=,+@%-")) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// A list as an override: [a,b].
std::string override_value(const Settings::Value& value) {
  if (value.is_string() && !is_plain(value.get<std::string>(), "./:+@%-")) return value.dump();
  if (!value.is_array()) return value.is_null() ? "null" : shell_word(value);
  return fmt::format("[{}]", fmt::join(value | std::views::transform(shell_word), ","));
}

shell::ReadScript evaluated(const std::string& origin, const RecipeSource& source) {
  shell::ReadScript out;
  out.commands = shell::evaluate_script(origin, source.variables);
  return out;
}

}  // namespace

Settings settings_from_shell(const std::string& text, const std::string& origin, const RecipeSource& source) {
  const shell::ReadScript script =
      source.evaluate
          ? evaluated(origin, source)
          : shell::read_script({.text = text, .origin = origin, .variables = source.variables, .file = source.file});
  Reader reader(origin, script);
  const shell::StartedCommand* command = chosen(script, origin, reader.settings());
  if (command == nullptr) {
    read_variables(script, origin, reader);
    return reader.take();
  }
  const std::size_t first = program_of(command->words);
  put_launch(launcher_of(command->words, first == 0 ? command->words.size() : first), script.directives,
             reader.settings());
  reader.program(*command, first);
  return reader.take();
}

Settings settings_from_shell(const std::string& text, const std::string& origin) {
  return settings_from_shell(text, origin, {});
}

std::string settings_to_shell(const std::string& command, const Settings& settings) {
  std::string out = command;
  for (const auto& [key, value] : settings.entries()) {
    out += " \\\n  ";
    if (key.find_first_of("._") != std::string::npos) {
      out += in_quotes(key + "=" + override_value(value));
      continue;
    }
    out += "--" + key;
    if (value == true) continue;
    for (const Settings::Value& one : value.is_array() ? value : Settings::Value::array({value}))
      out += " " + in_quotes(shell_word(one));
  }
  return out + "\n";
}

}  // namespace wt
