#include "planner/watch/hooks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "configs/base/quantity.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"
#include "configs/files/study.hpp"

namespace wt {
namespace {

const std::vector<std::string> kKinds{"save", "stop", "sweep", "cordon", "uncordon", "start", "tell"};

using Value = std::string HookValues::*;
const std::map<std::string, Value> kPlaceholders{{"run", &HookValues::run},           {"node", &HookValues::node},
                                                 {"reason", &HookValues::reason},     {"layout", &HookValues::layout},
                                                 {"excluded", &HookValues::excluded}, {"output", &HookValues::output}};

std::set<std::string> placeholders_of(HookKind kind) {
  std::set<std::string> out{"run", "reason"};
  if (kind == HookKind::cordon || kind == HookKind::uncordon) out.insert("node");
  if (kind == HookKind::start) out.insert({"layout", "excluded"});
  if (kind == HookKind::sweep) out.insert("output");
  return out;
}

/// Names of placeholders: "nodename={node}" has "node".
std::vector<std::string> names_in(const std::string& word) {
  std::vector<std::string> out;
  for (std::size_t open = 0; (open = word.find('{', open)) != std::string::npos;) {
    const std::size_t close = word.find('}', open);
    if (close == std::string::npos) break;
    const std::string name = word.substr(open + 1, close - open - 1);
    const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
    if (plain) out.push_back(name);
    open = plain ? close : open + 1;
  }
  return out;
}

/// "/usr/bin/python3.11" gives "python".
std::string name_of(const std::string& program) {
  const std::string name = std::filesystem::path(program).filename().string();
  return name.substr(0, name.find_first_of("0123456789."));
}
/// Programs that may get a script as an argument.
bool interprets(const std::string& program) {
  static const std::set<std::string> kNames{"sh",   "bash", "dash", "ash",  "zsh",     "ksh",  "mksh",
                                            "fish", "csh",  "tcsh", "su",   "runuser", "perl", "python",
                                            "ruby", "node", "awk",  "gawk", "mawk"};
  return kNames.contains(name_of(program));
}
/// Programs that pass their arguments to a shell, on this or another machine.
bool gives_to_shell(const std::string& program) {
  static const std::set<std::string> kNames{"ssh", "rsh", "pdsh", "clush", "eval", "watch"};
  return kNames.contains(name_of(program));
}

/// Index after an interpreter's script: the first argument that is no option is the script (-c, -lc, -ce, -e) or its
/// file. Its arguments follow.
std::size_t script_end(const std::vector<std::string>& words, std::size_t interpreter) {
  std::size_t i = interpreter + 1;
  for (; i < words.size() && (words[i].starts_with('-') || words[i].starts_with('+')); ++i)
    if (!words[i].starts_with("--") && (words[i].ends_with('o') || words[i].ends_with('O'))) ++i;  // sh -o pipefail -c
  return i + 1;
}
bool asks_for_script(const std::string& option) {
  return option.starts_with('-') && !option.starts_with("--") && (option.ends_with('c') || option.ends_with('e'));
}

/// Whether a shell reads words[index] as commands. After the first interpreter's script come its arguments, unless one
/// of these starts a script again (su user -c).
bool is_script(const std::vector<std::string>& words, std::size_t index) {
  const auto before = words.begin() + static_cast<std::ptrdiff_t>(index);
  if (std::any_of(words.begin(), before, gives_to_shell)) return true;
  const auto interpreter = std::find_if(words.begin(), before, interprets);
  if (interpreter == before) return false;
  return index < script_end(words, static_cast<std::size_t>(interpreter - words.begin())) ||
         asks_for_script(words[index - 1]);
}

void check_words(YamlMap& map, HookKind kind, const std::vector<std::string>& words) {
  if (words.empty() || words[0].empty())
    map.fail("command", "found no program, needs a list: [program, argument, ...]");
  const std::set<std::string> allowed = placeholders_of(kind);
  bool writes = false;
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const std::string& name : names_in(words[i])) {
      if (!allowed.contains(name))
        map.fail_entry("command", i, "found {{{}}}, allowed for {}: {{{}}}", name, to_string(kind),
                       fmt::join(allowed, "}, {"));
      if (i == 0) map.fail_entry("command", i, "found {{{}}} as the program, needs a fixed one", name);
      if (is_script(words, i))
        map.fail_entry("command", i,
                       "found {{{}}} where {} would have a shell read it; give it behind the script of sh -c, which "
                       "reads it as \"$1\", or to a script of your own",
                       name, words[0]);
      writes = writes || name == "output";
    }
  if (kind == HookKind::sweep && !writes) map.fail("command", "found no {output}, needs the file that it writes");
}

HookCommand read_hook(YamlMap map, HookKind kind) {
  HookCommand out{.words = map.texts("command")};
  check_words(map, kind, out.words);
  if (const std::filesystem::path program = out.words[0]; program.has_parent_path() && program.is_relative())
    out.words[0] = std::filesystem::absolute(map.file().parent_path() / program).lexically_normal().string();
  out.timeout_s = map.quantity("timeout", parse_seconds);
  if (!(out.timeout_s > 0)) map.fail("timeout", "found 0, needs a time above 0");
  map.finish();
  return out;
}

}  // namespace

std::string to_string(HookKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

namespace {

WatchHooks read_hooks(const std::string& name_or_file, bool tell_alone) {
  WatchHooks out;
  out.file = find_config("watch", name_or_file);
  YamlMap map = YamlMap::from_file(out.file);
  out.spares = map.integer_or("spares", 0, 0);
  if (out.spares > kMostSpares) map.fail("spares", "found {}, allowed up to {}", out.spares, kMostSpares);
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    const auto kind = static_cast<HookKind>(i);
    const bool needed = (kind == HookKind::tell) == tell_alone;
    if (needed || map.has(kKinds[i])) out.commands[kind] = read_hook(map.map(kKinds[i]), kind);
  }
  map.finish();
  return out;
}

}  // namespace

WatchHooks read_watch_hooks(const std::string& name_or_file) { return read_hooks(name_or_file, false); }
HookCommand read_tell_hook(const std::string& name_or_file) {
  return read_hooks(name_or_file, true).commands.at(HookKind::tell);
}

void check_start(const WatchHooks& hooks, const WatchRules& rules) {
  const auto lost = std::ranges::find_if(rules.signals, is_loss_metric, &SignalRule::metric);
  if (lost == rules.signals.end()) return;
  for (const std::string& word : hooks.commands.at(HookKind::start).words)
    if (std::ranges::count(names_in(word), "layout") > 0) return;
  throw_usage(
      "{}: start.command: found no {{layout}}, which the rule '{}' needs: a run goes back to an older checkpoint by "
      "the run file that it is started with",
      hooks.file.string(), lost->name);
}

std::vector<std::string> filled_in(const HookCommand& command, const HookValues& values) {
  std::vector<std::string> out;
  for (const std::string& word : command.words) {
    std::string text;
    std::size_t from = 0;
    for (const std::string& name : names_in(word)) {
      const std::string mark = "{" + name + "}";
      const std::size_t at = word.find(mark, from);
      text += word.substr(from, at - from) + values.*kPlaceholders.at(name);
      from = at + mark.size();
    }
    out.push_back(text + word.substr(from));
  }
  return out;
}

}  // namespace wt
