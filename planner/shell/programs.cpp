// The programs that a script starts: launchers and trainers with their words, and scripts in a shell of their own.
#include <algorithm>

#include "configs/base/error.hpp"
#include "planner/shell/interpreter.hpp"

namespace wt::shell {
namespace {

bool names_a_shell(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  return name == "bash" || name == "sh" || name == "zsh" || name == "dash";
}

}  // namespace

void Interpreter::start(const Words& words, const Command& command) {
  const bool batch = words.front() == "sbatch" || words.front() == "qsub";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!names_a_shell(words[i]) && !(batch && i == 0) && !(i == 0 && words[i].ends_with(".sh"))) continue;
    const Words launcher(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(batch ? 0 : i));
    std::size_t next = words[i].ends_with(".sh") ? i : i + 1;
    bool text = false;
    for (; next < words.size() && words[next].starts_with("-") && words[next] != "-"; ++next) {
      text = text || (!batch && !words[next].starts_with("--") && words[next].find('c') != std::string::npos);
      if (words[next] == "-o" || words[next] == "-O") ++next;
    }
    if (next < words.size() && text) {
      start_script(launcher, words[next], origin_,
                   {words.begin() + static_cast<std::ptrdiff_t>(std::min(next + 2, words.size())), words.end()});
      return;
    }
    if (next < words.size() && words[next] != "-") {
      if (const auto script = file_text(words[next])) {
        start_script(launcher, *script, words[next],
                     {words.begin() + static_cast<std::ptrdiff_t>(next) + 1, words.end()});
        return;
      }
      if (words[next].ends_with(".sh")) out_.not_read.push_back(shown(words[next]));
    } else if (const auto document = input_of(command)) {
      start_script(launcher, *document, origin_, {});
      return;
    }
  }
  out_.commands.push_back({.words = words,
                           .line = command.line,
                           .condition = conditions_.empty() ? "" : conditions_.back(),
                           .input = input_of(command).value_or("")});
}

void Interpreter::start_script(const Words& launcher, const std::string& text, const std::string& origin,
                               Words arguments) {
  const std::size_t first = out_.commands.size();
  State before = state_;
  std::erase_if(state_.variables, [](const auto& one) { return !one.second.exported; });
  state_.arguments = std::move(arguments), state_.arguments_known = true;
  if (has_unknown(text) && text.find('\n') == std::string::npos && text.find(' ') == std::string::npos)
    out_.not_read.push_back(shown(text));
  else
    run_text(text, origin);
  before.files = std::move(state_.files);
  state_ = std::move(before);
  for (std::size_t i = first; i < out_.commands.size(); ++i)
    out_.commands[i].words.insert(out_.commands[i].words.begin(), launcher.begin(), launcher.end());
}

ReadScript read_script(const ScriptSource& source) { return Interpreter(source).result(source.text); }

}  // namespace wt::shell
