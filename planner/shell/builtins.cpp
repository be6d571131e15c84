// Builtins that change what a script knows, and the few filters that scripts pass texts through.
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "planner/shell/interpreter.hpp"

namespace wt::shell {
namespace {

const std::set<std::string> kWithoutEffect{
    ":",    "true",   "trap", "ulimit", "umask", "wait", "sleep", "shopt", "hash", "alias", "mkdir", "echo",  "printf",
    "date", "module", "ml",   "chmod",  "touch", "rm",   "cp",    "mv",    "ln",   "tee",   "kill",  "disown"};

std::string joined(const Words& words, std::size_t from, const std::string& between = " ") {
  std::string out;
  for (std::size_t i = from; i < words.size(); ++i) out += (i > from ? between : "") + words[i];
  return out;
}

/// The escapes of printf and echo -e.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'n' || c == 't' || c == '\\')
      out += c == 'n' ? '\n' : c == 't' ? '\t' : '\\';
    else
      out += std::string("\\") + c;
  }
  return out;
}

/// The characters of a set of tr: a-z, [:upper:], \n. Empty: one that is not read.
std::string set_of(const std::string& written) {
  if (written == "[:lower:]") return set_of("a-z");
  if (written == "[:upper:]") return set_of("A-Z");
  if (written == "[:space:]") return " \t\n";
  if (written.find("[:") != std::string::npos) return "";
  const std::string text = unescaped(written);
  const auto byte = [](char c) { return static_cast<unsigned char>(c); };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 2 < text.size() && text[i + 1] == '-' && byte(text[i]) <= byte(text[i + 2])) {
      for (unsigned c = byte(text[i]); c <= byte(text[i + 2]); ++c) out += static_cast<char>(c);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::filesystem::path Interpreter::path_of(const std::string& path) const {
  std::filesystem::path out = plain(path);
  if (out.is_absolute()) return out;
  if (!state_.folder.empty() && !has_unknown(state_.folder)) return std::filesystem::path(state_.folder) / out;
  return out;
}

std::optional<std::string> Interpreter::file_text(const std::string& path) {
  if (path.empty() || has_unknown(path)) return std::nullopt;
  if (const auto written = state_.files.find(plain(path)); written != state_.files.end()) return written->second;
  if (!source_.file) return std::nullopt;
  constexpr std::size_t kLargest = 1 << 20;
  const std::filesystem::path place = path_of(path);
  // Where a script is started is not known: beside it is the likely place.
  const std::filesystem::path beside = std::filesystem::path(source_.origin).parent_path() / place;
  for (const std::filesystem::path& one : {beside, place})
    if (auto text = source_.file(one); text && text->size() <= kLargest && text->find('\0') == std::string::npos)
      return without_marks(*text);
  return std::nullopt;
}

std::optional<std::string> Interpreter::input_of(const Command& command) {
  for (const Redirection& one : command.redirections) {
    if (one.operation == "<<") return one.expands ? expand_document(*one.document) : *one.document;
    if (one.operation == "<<<") return expand_text(one.target) + "\n";
    if (one.operation == "<") return file_text(expand_text(one.target));
  }
  return piped_;
}

Flow Interpreter::source(const Words& words) {
  const auto text = words.size() > 1 ? file_text(words[1]) : std::nullopt;
  state_.last = text ? Status::yes : Status::unknown;
  if (!text) {
    out_.not_read.push_back(words.size() > 1 ? shown(words[1]) : "source");
    return Flow::goes_on;
  }
  const Flow flow = run_text(*text, plain(words[1]));
  return flow == Flow::returns ? Flow::goes_on : flow;
}

/// echo and printf; false if the words are none of them. What is printed goes to a substitution, a pipe or a file.
bool Interpreter::print(const Words& words) {
  std::string text;
  if (words[0] == "echo") {
    std::size_t first = 1;
    bool escapes = false, line = true;
    for (; first < words.size() &&
           (words[first] == "-n" || words[first] == "-e" || words[first] == "-ne" || words[first] == "-en");
         ++first) {
      escapes = escapes || words[first].find('e') != std::string::npos;
      line = line && words[first].find('n') == std::string::npos;
    }
    text = joined(words, first);
    if (escapes) text = unescaped(text);
    if (line) text += "\n";
  } else if (words[0] == "printf" && words.size() > 1) {
    const std::string format = unescaped(words[1]);
    std::size_t next = 2;
    do {
      for (std::size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%' || i + 1 == format.size()) {
          text += format[i];
        } else if (format[++i] == '%') {
          text += '%';
        } else if (format[i] == 's' || format[i] == 'd') {
          text += next < words.size() ? words[next] : "";
          ++next;
        } else {
          text += unknown("printf " + format);
          next = words.size();
          break;
        }
      }
    } while (next < words.size() && next > 2);
  } else {
    return false;
  }
  if (output_ != nullptr) *output_ += text;
  return true;
}

/// What a filter makes of a pipe's text; false for anything else, and where it is not known.
bool Interpreter::filter(const Words& words) {
  const std::string& name = words[0];
  std::optional<std::string> in = piped_;
  std::string marks;
  if (name == "cat" && words.size() == 2 && words[1] != "-") in = file_text(words[1]);
  if ((name == "cat" || name == "tee" || name == "head") && in && (words.size() <= 2 || name == "tee") &&
      !(name == "head" && in->find('\n') + 1 < in->size())) {
    *output_ += *in;
  } else if (name == "tr" && in && words.size() >= 3) {
    const bool deletes = words[1] == "-d", squeezes = words[1] == "-s";
    const std::string from = set_of(words[deletes || squeezes ? 2 : 1]);
    std::string to = deletes ? "" : squeezes ? (words.size() > 3 ? set_of(words[3]) : from) : set_of(words[2]);
    if (from.empty() || (!deletes && to.empty()) || (!deletes && words[1].starts_with("-") && !squeezes)) {
      return false;
    }
    if (!deletes && to.size() < from.size()) to.append(from.size() - to.size(), to.back());
    for (std::size_t at = 0; at < in->size(); ++at) {
      if (const std::size_t mark = mark_at(*in, at); mark > 0) {
        *output_ += in->substr(at, mark), at += mark - 1;
        continue;
      }
      const std::size_t place = from.find((*in)[at]);
      if (place == std::string::npos)
        *output_ += (*in)[at];
      else if (!deletes && !(squeezes && !output_->empty() && output_->back() == to[place]))
        *output_ += to[place];
    }
  } else if (name == "xargs" && in && words.size() == 1) {
    std::istringstream parts(*in);
    Words all;
    for (std::string part; parts >> part;) all.push_back(part);
    *output_ += joined(all, 0) + "\n";
  } else if (name == "bc" && in) {
    *output_ += arithmetic(*in) + "\n";
  } else if (name == "expr" && words.size() > 1) {
    *output_ += arithmetic(joined(words, 1)) + "\n";
  } else if (name == "seq" && words.size() > 1 && words.size() < 4) {
    const std::string first = plain(words.size() > 2 ? words[1] : "1"), last = plain(words.back());
    constexpr long kMost = 10000;
    const bool numbers = (first + last).find_first_not_of("0123456789") == std::string::npos;
    if (!numbers || std::strtol(last.c_str(), nullptr, 10) > kMost) {
      return false;
    }
    for (long i = std::strtol(first.c_str(), nullptr, 10); i <= std::strtol(last.c_str(), nullptr, 10); ++i)
      *output_ += std::to_string(i) + "\n";
  } else if ((name == "dirname" || name == "basename" || name == "realpath" || name == "readlink") &&
             words.size() > 1) {
    std::string path = plain(words[1].starts_with("-") && words.size() > 2 ? words.back() : words[1]);
    if (has_unknown(path)) {
      return false;
    }
    const std::filesystem::path all = path;
    if (name == "basename") {
      path = all.filename().string();
      if (words.size() > 2 && path.ends_with(words[2])) path.resize(path.size() - words[2].size());
    } else if (name == "dirname") {
      path = all.parent_path().empty() ? "." : all.parent_path().string();
    }
    *output_ += path + "\n";
  } else {
    return false;
  }
  return true;
}

void Interpreter::read_lines(const Words& words, const Command& command) {
  const auto text = input_of(command);
  bool list = words[0] != "read", whole = false;
  Words names;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with("-") && words[i].size() > 1) {
      list = list || (words[0] == "read" && words[i].find('a') != std::string::npos);
      const bool delimiter = words[i].ends_with("d");
      whole = whole || delimiter;
      if (delimiter || words[i].ends_with("p") || words[i].ends_with("n")) ++i;
    } else {
      names.push_back(words[i]);
    }
  }
  state_.last = text && !whole ? Status::yes : Status::unknown;
  if (whole && text) state_.last = Status::no;
  if (names.empty()) names.push_back(list ? "MAPFILE" : "REPLY");
  if (!text) {
    for (const std::string& name : names)
      if (is_name(name)) state_.variables[name] = {.items = {{"0", unknown("$" + name)}}};
    return;
  }
  std::string in = *text;
  if (words[0] == "read" && !whole) in.resize(std::min(in.find('\n'), in.size()));
  while (!in.empty() && in.back() == '\n') in.pop_back();
  std::string blanks = words[0] == "read" ? " \t\n" : "\n";
  for (const Assignment& one : command.assignments)
    if (one.name == "IFS") blanks = expand_text(one.value);
  const auto separates = [&](char c) { return blanks.find(c) != std::string::npos; };
  Words parts;
  for (std::size_t at = 0; at < in.size();) {
    std::size_t end = at;
    while (end < in.size() && !separates(in[end])) end += std::max<std::size_t>(1, mark_at(in, end));
    const bool last = !list && parts.size() + 1 >= names.size();
    if (last) end = in.size();
    if (end > at) parts.push_back(in.substr(at, end - at));
    at = end + 1;
  }
  if (list) {
    Variable out{.list = true, .items = {}};
    for (std::string& part : parts) out.items.emplace_back(std::to_string(out.items.size()), std::move(part));
    if (is_name(names[0])) state_.variables[names[0]] = std::move(out);
    return;
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (is_name(names[i])) state_.variables[names[i]] = {.items = {{"0", i < parts.size() ? parts[i] : ""}}};
}

std::optional<Flow> Interpreter::builtin(const Words& words, const Command& command) {
  const std::string& name = words[0];
  const auto done = [&](Status status = Status::yes) {
    state_.last = status;
    return Flow::goes_on;
  };
  if (name == "export" || name == "declare" || name == "local" || name == "readonly" || name == "typeset") {
    const bool local = (name == "local" || name == "declare") && !locals_.empty();
    bool named = false, exports = name == "export";
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].starts_with("-")) {
        named = named || words[i].find('A') != std::string::npos;
        exports = exports || words[i].find('x') != std::string::npos;
        continue;
      }
      if (!is_name(words[i])) continue;
      if (local)
        locals_.back().try_emplace(
            words[i], state_.variables.contains(words[i]) ? std::optional(state_.variables[words[i]]) : std::nullopt);
      if (exports && state_.variables.contains(words[i])) state_.variables[words[i]].exported = true;
      if (named || local) state_.variables[words[i]] = {.list = named, .named = named, .items = {}};
    }
    for (const Assignment& one : command.assignments) {
      if (local)
        locals_.back().try_emplace(
            one.name, state_.variables.contains(one.name) ? std::optional(state_.variables[one.name]) : std::nullopt);
      if (named) state_.variables[one.name].named = true;
      assign(one, exports);
    }
    return done();
  }
  if (name == "source" || name == ".") return source(words);
  if (name == "eval") {
    const std::string text = joined(words, 1);
    if (has_unknown(text) && text.find(' ') == std::string::npos) return done(Status::unknown);
    return run_text(text, origin_);
  }
  if (name == "exit") return Flow::exits;
  if (name == "return") {
    state_.last = words.size() < 2 || words[1] == "0" ? Status::yes : Status::no;
    return Flow::returns;
  }
  if (name == "break") return Flow::breaks;
  if (name == "continue") return Flow::continues;
  if (name == "set") {
    const auto dashes = std::ranges::find(words, "--");
    if (dashes != words.end()) state_.arguments.assign(dashes + 1, words.end()), state_.arguments_known = true;
    return done();
  }
  if (name == "shift") {
    const std::size_t n = words.size() > 1 ? std::strtoul(plain(words[1]).c_str(), nullptr, 10) : 1;
    state_.arguments.erase(state_.arguments.begin(), state_.arguments.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                                    n, state_.arguments.size())));
    return done();
  }
  if (name == "unset") {
    for (std::size_t i = 1; i < words.size(); ++i)
      if (is_name(words[i])) state_.variables[words[i]] = {.exported = false, .items = {{"0", ""}}};
    return done();
  }
  if (name == "cd" || name == "pushd") {
    if (words.size() > 1) state_.folder = has_unknown(words.back()) ? words.back() : path_of(words.back()).string();
    return done();
  }
  if (name == "pwd") {
    if (output_ != nullptr) *output_ += (state_.folder.empty() ? unknown("$(pwd)") : state_.folder) + "\n";
    return done();
  }
  if (name == "[" || name == "test") {
    Words operands(words.begin() + 1, words.end());
    if (name == "[" && !operands.empty() && operands.back() == "]") operands.pop_back();
    return done(test(operands));
  }
  if (name == "let") {
    const std::string value = arithmetic(joined(words, 1, ","));
    return done(has_unknown(value) ? Status::unknown : plain(value) == "0" ? Status::no : Status::yes);
  }
  if (name == "read" || name == "mapfile" || name == "readarray") {
    read_lines(words, command);
    return Flow::goes_on;
  }
  if (name == "false") return done(Status::no);
  if (name == "getopts") return done(state_.arguments.empty() ? Status::no : Status::unknown);
  if (name == "cat" || name == "echo" || name == "printf") {  // into a file that a later command reads
    std::string file;
    bool appends = false;
    for (const Redirection& one : command.redirections)
      if (one.operation == ">" || one.operation == ">>")
        file = plain(expand_text(one.target)), appends = one.operation == ">>";
    if (!file.empty()) {
      std::string text;
      if (name == "cat") {
        text = input_of(command).value_or(unknown("cat"));
      } else {
        std::string* const outside = std::exchange(output_, &text);
        print(words);
        output_ = outside;
      }
      state_.files[file] = appends ? state_.files[file] + text : text;
      return done();
    }
    if (name == "cat" && output_ != nullptr && words.size() == 1)
      if (const auto text = input_of(command)) {
        *output_ += *text;
        return done();
      }
  }
  if (print(words)) return done();
  if (kWithoutEffect.contains(name) && output_ == nullptr)
    return done(name == "mkdir" || name == ":" || name == "true" || name == "sleep" ? Status::yes : Status::unknown);
  return std::nullopt;
}

}  // namespace wt::shell
