// Command lines. Reads the parts of the shell's language that launch scripts use: quotes, comments, continued lines,
// variables with and without defaults, and lists (ARGS=(...) and "${ARGS[@]}"). Runs nothing.

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <ranges>
#include <sstream>

#include "configs/base/error.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {
namespace {

using Words = std::vector<std::string>;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Script {
 public:
  Script(const std::string& text, const std::string& origin) : text_(text), origin_(origin) {}

  /// The words of the command with the most flags.
  Words command() {
    Words best;
    std::ptrdiff_t most = -1;
    while (at_ < text_.size()) {
      const Words words = statement();
      const std::ptrdiff_t flags = std::ranges::count_if(
          words, [](const std::string& word) { return word.starts_with("--") || word.find('=') != std::string::npos; });
      if (flags > most && !words.empty()) best = words, most = flags;
    }
    return best;
  }

 private:
  /// Reads up to the end of the line or a separator. Remembers assignments.
  Words statement() {
    Words words;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (std::strchr("\n;|&()", c) != nullptr) {
        ++at_;
        break;
      }
      if (c == '#' && (at_ == 0 || std::isspace(static_cast<unsigned char>(text_[at_ - 1])) != 0))
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::isspace(static_cast<unsigned char>(c)) != 0)
        ++at_;
      else if (text_.compare(at_, 2, "\\\n") == 0)
        at_ += 2;
      else if (!redirection() && !assignment(words))
        add_word(words);
    }
    return words;
  }

  /// Skips redirections such as 2>&1 and >> file.
  bool redirection() {
    std::size_t end = at_;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) != 0) ++end;
    if (end >= text_.size() || (text_[end] != '>' && text_[end] != '<')) return false;
    at_ = std::min(text_.find_first_not_of("<>&", end), text_.size());
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    Words file;
    add_word(file, false);
    return true;
  }

  /// NAME=value, NAME=(list) or NAME+=(list), before any word other than export and similar.
  bool assignment(const Words& words) {
    if (!words.empty() && words != Words{"export"} && words != Words{"local"} && words != Words{"declare"})
      return false;
    std::size_t end = at_;
    while (end < text_.size() && is_name(text_[end])) ++end;
    const bool more = text_.compare(end, 2, "+=") == 0;
    if (end == at_ || (!more && text_.compare(end, 1, "=") != 0)) return false;
    const std::string name = text_.substr(at_, end - at_);
    at_ = end + (more ? 2 : 1);
    Words values = more ? variables_[name] : Words{};
    if (at_ < text_.size() && text_[at_] == '(')
      ++at_, list(values);
    else
      add_word(values, false);
    variables_[name] = std::move(values);  // after the value is read: X=${X:-1}
    return true;
  }

  void list(Words& out) {
    while (at_ < text_.size() && text_[at_] != ')') {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '\\')
        ++at_;
      else if (std::strchr(";|&(", text_[at_]) != nullptr)
        ++at_;
      else
        add_word(out);
    }
    ++at_;
  }

  /// Reads one word, removes its quotes and expands its variables. May add several words.
  void add_word(Words& out, bool splits = true) {
    std::string word;
    bool quoted = false;
    char quote = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote == 0 && (std::isspace(static_cast<unsigned char>(c)) != 0 || std::strchr(";|&()", c) != nullptr)) break;
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c, quoted = true;
      } else if (c == quote) {
        quote = 0;
      } else if (c == '\\' && quote != '\'' && at_ + 1 < text_.size()) {
        if (text_[++at_] != '\n') word += text_[at_];
      } else if (c == '$' && quote != '\'') {
        const Words values = variable();
        const bool apart = splits && (quote == 0 || values.size() > 1);
        for (std::size_t i = 0; i < values.size(); ++i) {
          if ((made_ += values[i].size() + 1) > kMostMade)
            throw_usage("{}: found variables that stand for more than {} bytes", origin_, kMostMade);
          if (apart && i > 0) out.push_back(std::exchange(word, ""));
          word += (!apart && i > 0 ? " " : "") + values[i];
        }
      } else {
        word += c;
      }
    }
    if (splits && !quoted)
      split_at_blanks(word, out);
    else
      out.push_back(word);
  }

  static void split_at_blanks(const std::string& word, Words& out) {
    std::istringstream parts(word);
    for (std::string part; parts >> part;)
      if (part != "\\") out.push_back(part);
  }

  /// Reads a variable at `$`; leaves at_ at its last character. Variables that the script does not set, and $(...),
  /// stay as written.
  Words variable() {
    const std::size_t begin = at_;
    if (text_.compare(at_ + 1, 1, "(") == 0) {
      std::ptrdiff_t open = 0;
      while (++at_ + 1 < text_.size()) {
        open += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
        if (open == 0) break;
      }
      return {text_.substr(begin, at_ + 1 - begin)};
    }
    const bool braces = text_.compare(at_ + 1, 1, "{") == 0;
    std::size_t end = at_ + (braces ? 2 : 1);
    const std::size_t name = end;
    while (end < text_.size() && is_name(text_[end])) ++end;
    const auto known = variables_.find(text_.substr(name, end - name));
    at_ = end - 1;
    std::string fallback;
    if (braces) {
      const std::size_t close = std::min(text_.find('}', end), text_.size() - 1);
      const std::string rest = text_.substr(end, close - end);
      if (rest.starts_with(":-") || rest.starts_with("-")) fallback = rest.substr(rest.find('-') + 1);
      std::erase_if(fallback, [](char c) { return c == '"' || c == '\''; });
      at_ = close;
    }
    if (known != variables_.end()) return known->second;
    if (!fallback.empty()) return {fallback};
    return {text_.substr(begin, at_ + 1 - begin)};
  }

  static constexpr std::size_t kMostMade = 1 << 22;  // A="$A $A" is short, and soon fills the memory

  const std::string& text_;
  const std::string& origin_;
  std::size_t at_ = 0, made_ = 0;
  std::map<std::string, Words> variables_;
};

/// a.b=c or +a.b=c.
bool is_override(const std::string& word) {
  const std::size_t begin = std::min(word.find_first_not_of('+'), word.size()), equals = word.find('=');
  if (equals == std::string::npos || equals <= begin || std::isdigit(static_cast<unsigned char>(word[begin])) != 0)
    return false;
  return std::all_of(word.begin() + static_cast<std::ptrdiff_t>(begin),
                     word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) { return is_name(c) || c == '.'; });
}

bool ends_values(const std::string& word) {
  return word.starts_with("--") || is_override(word) || word.ends_with(".py");
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

}  // namespace

Settings settings_from_shell(const std::string& text, const std::string& origin) {
  Settings out(origin);
  const Words words = Script(text, origin).command();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_override(words[i])) {
      const std::size_t begin = words[i].find_first_not_of('+'), equals = words[i].find('=');
      out.put(words[i].substr(begin, equals - begin), value_from_yaml(words[i].substr(equals + 1)));
      continue;
    }
    if (!words[i].starts_with("--") || words[i].size() == 2) continue;
    std::string flag = words[i].substr(2);
    Settings::Value values = Settings::Value::array();
    if (const std::size_t equals = flag.find('='); equals != std::string::npos)
      values.push_back(scalar_of_word(flag.substr(equals + 1))), flag.resize(equals);
    else
      while (i + 1 < words.size() && !ends_values(words[i + 1])) values.push_back(scalar_of_word(words[++i]));
    std::ranges::replace(flag, '_', '-');
    out.put(flag, values.empty() ? Settings::Value(true) : values.size() == 1 ? values[0] : values);
  }
  return out;
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
