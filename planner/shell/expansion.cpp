// Words after expansion of variables, substitutions and quotes, and split where bash splits them.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "configs/base/error.hpp"
#include "planner/shell/interpreter.hpp"

namespace wt::shell {
namespace {

constexpr std::size_t kMostMade = 1 << 22;  // A="$A $A" is short, and soon fills the memory

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// {1..4} as the words 1 to 4, {a,b} as a and b.
Words brace_words(const std::string& word) {
  if (word.size() < 4 || word.front() != '{' || word.back() != '}' || word.find('{', 1) != std::string::npos) return {word};
  const std::string inner = word.substr(1, word.size() - 2);
  Words out;
  if (const std::size_t dots = inner.find(".."); dots != std::string::npos) {
    char* end = nullptr;
    const long first = std::strtol(inner.c_str(), &end, 10);
    if (end != inner.c_str() + dots) return {word};
    const long last = std::strtol(inner.c_str() + dots + 2, &end, 10);
    constexpr long kMost = 10000;
    if (*end != 0 || end == inner.c_str() + dots + 2 || std::abs(first) > kMost || std::abs(last) > kMost) return {word};
    for (long i = first; first <= last ? i <= last : i >= last; i += first <= last ? 1 : -1) out.push_back(std::to_string(i));
    return out;
  }
  if (inner.find(',') == std::string::npos || inner.find_first_of("$'\"` ") != std::string::npos) return {word};
  for (std::size_t at = 0; at <= inner.size();) {
    const std::size_t comma = std::min(inner.find(',', at), inner.size());
    out.push_back(inner.substr(at, comma - at)), at = comma + 1;
  }
  return out;
}

}  // namespace

/// Words in the making.
struct Interpreter::Fields {
  Words words;
  std::string now;
  bool begun = false;     ///< also by "" in quotes
  bool splits = true;
  bool escapes = false;   ///< quoted characters get a backslash, for patterns

  void add(const std::string& text, bool quoted) {
    begun = begun || quoted || !text.empty();
    if (!quoted && splits) {
      for (std::size_t at = 0; at < text.size(); ++at) {
        if (const std::size_t mark = mark_at(text, at); mark > 0) {
          now += text.substr(at, mark), at += mark - 1;
        } else if (is_blank(text[at])) {
          end();
        } else {
          now += text[at], begun = true;
        }
      }
      if (now.empty() && !text.empty()) begun = false;
      return;
    }
    if (!escapes || !quoted) {
      now += text;
      return;
    }
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (const std::size_t mark = mark_at(text, at); mark > 0) {
        now += text.substr(at, mark), at += mark - 1;
        continue;
      }
      if (std::strchr("*?[]\\", text[at]) != nullptr) now += '\\';
      now += text[at];
    }
  }
  void end() {
    if (begun && (!now.empty() || begun)) {
      if (!now.empty() || quoted_empty) words.push_back(now);
    }
    now.clear(), begun = quoted_empty = false;
  }
  bool quoted_empty = false;
};

Words Interpreter::expand(const Words& words) {
  Words out;
  for (const std::string& word : words)
    for (const std::string& one : brace_words(word))
      for (std::string& made : expand(one)) out.push_back(std::move(made));
  return out;
}

Words Interpreter::expand(const std::string& word) {
  Fields fields;
  expand_into(word, fields, false);
  fields.end();
  std::size_t size = 0;
  for (const std::string& one : fields.words) size += one.size() + 1;
  step(size / 1000);
  if (size > kMostMade) throw_usage("{}:{}: found variables that stand for more than {} bytes, needs shorter ones", origin_, line_, kMostMade);
  return std::move(fields.words);
}

std::string Interpreter::expand_text(const std::string& word) {
  Fields fields;
  fields.splits = false;
  expand_into(word, fields, false);
  step(fields.now.size() / 1000);
  if (fields.now.size() > kMostMade) throw_usage("{}:{}: found variables that stand for more than {} bytes, needs shorter ones", origin_, line_, kMostMade);
  return fields.now;
}

std::string Interpreter::expand_pattern(const std::string& word) {
  Fields fields;
  fields.splits = false, fields.escapes = true;
  expand_into(word, fields, false);
  return fields.now;
}

std::string Interpreter::expand_document(const std::string& text) {
  Fields fields;
  fields.splits = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\\' && at + 1 < text.size() && std::strchr("$`\\\n", text[at + 1]) != nullptr) {
      if (text[at + 1] != '\n') fields.now += text[at + 1];
      at += 2;
    } else if (const std::size_t mark = mark_at(text, at); mark > 0) {
      fields.now += text.substr(at, mark), at += mark;
    } else if (text[at] == '$' || text[at] == '`') {
      dollar(text, at, true, fields);
    } else {
      fields.now += text[at++];
    }
  }
  return fields.now;
}

void Interpreter::expand_into(const std::string& word, Fields& out, bool quoted) {
  for (std::size_t at = 0; at < word.size();) {
    const char c = word[at];
    if (const std::size_t mark = mark_at(word, at); mark > 0) {
      out.add(word.substr(at, mark), true), at += mark;
    } else if (c == '\'' && !quoted) {
      const std::size_t end = behind_part(word, at);
      out.add(word.substr(at + 1, end - at - (end > at + 1 && word[end - 1] == '\'' ? 2 : 1)), true);
      out.quoted_empty = true, at = end;
    } else if (c == '"' && !quoted) {
      const std::size_t end = behind_part(word, at);
      const bool closed = end > at + 1 && word[end - 1] == '"';
      const std::string inner = word.substr(at + 1, end - at - (closed ? 2 : 1));
      if (inner != "$@" && inner != "${@}") out.quoted_empty = inner.find("[@]}") == std::string::npos || out.quoted_empty;
      out.begun = out.begun || out.quoted_empty;
      expand_into(inner, out, true);
      at = end;
    } else if (c == '\\' && at + 1 < word.size()) {
      if (word[at + 1] == '\n') {
      } else if (quoted && std::strchr("$`\"\\", word[at + 1]) == nullptr) {
        out.add(word.substr(at, 2), true);
      } else {
        out.add(word.substr(at + 1, 1), true);
      }
      at += 2;
    } else if (c == '$' || c == '`') {
      dollar(word, at, quoted, out);
    } else {
      std::size_t end = at + 1;
      while (end < word.size() && std::strchr("'\"\\$`\x01\x03", word[end]) == nullptr) ++end;
      if (quoted)
        while (end < word.size() && (word[end] == '\'' || (word[end] == '"' && quoted))) {
          ++end;
          while (end < word.size() && std::strchr("'\"\\$`\x01\x03", word[end]) == nullptr) ++end;
        }
      // what is written in a word is not split: only what expansions make
      const std::string text = word.substr(at, end - at);
      const bool splits = std::exchange(out.splits, false);
      out.add(text, quoted);
      out.splits = splits, out.begun = true;
      at = end;
    }
  }
}

std::string Interpreter::special(char c) const {
  switch (c) {
    case '#': return fallback_of("#", std::to_string(state_.arguments.size()));
    case '?': return state_.last == Status::yes ? "0" : state_.last == Status::no ? "1" : unknown("$?");
    case '0': return origin_;
    default: return unknown(std::string("$") + c);
  }
}

std::optional<Words> Interpreter::values_of(const std::string& name, const std::string& index) {
  if (name == "@" || name == "*") return state_.arguments;
  if (name.size() == 1 && std::strchr("#?$!-0", name[0]) != nullptr) return Words{special(name[0])};
  if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
    const std::size_t n = std::strtoul(name.c_str(), nullptr, 10);
    if (n <= state_.arguments.size()) return Words{state_.arguments[n - 1]};
    if (const auto given = state_.variables.find(name); given != state_.variables.end()) return Words{given->second.text()};
    asked_.insert("#");
    return std::nullopt;
  }
  if (name == "BASH_SOURCE") return Words{origin_};
  if (name == "LINENO") return Words{std::to_string(line_)};
  if (name == "PWD" && !state_.variables.contains(name))
    return Words{state_.folder.empty() ? unknown("$PWD") : state_.folder};
  const auto found = state_.variables.find(name);
  if (found == state_.variables.end()) return std::nullopt;
  const Variable& variable = found->second;
  if (index == "@" || index == "*") {
    Words out;
    for (const auto& [key, value] : variable.items) out.push_back(value);
    return out;
  }
  if (index.empty()) {
    if (variable.list && variable.items.empty()) return std::nullopt;
    return Words{variable.text()};
  }
  const std::string key = variable.named ? expand_text(index) : plain(arithmetic(index));
  if (has_unknown(key) || (!variable.list && has_unknown(variable.text()))) return Words{unknown("${" + name + "[" + index + "]}")};
  for (const auto& [known, value] : variable.items)
    if (known == key) return Words{value};
  return std::nullopt;
}

void Interpreter::dollar(const std::string& word, std::size_t& at, bool quoted, Fields& out) {
  const std::size_t end = behind_part(word, at);
  const std::string source = word.substr(at, end - at);
  at = end;
  if (source[0] == '`') {
    std::string inner = source.substr(1, source.size() - std::min<std::size_t>(2, source.size()));
    for (std::size_t i = 0; (i = inner.find('\\', i)) != std::string::npos; ++i) inner.erase(i, 1);
    out.add(substitution(inner, source), quoted);
    return;
  }
  if (source == "$") return out.add("$", quoted);
  const char second = source[1];
  if (source.starts_with("$((") && source.ends_with("))")) return out.add(arithmetic(source.substr(3, source.size() - 5)), quoted);
  if (second == '(') return out.add(substitution(source.substr(2, source.size() - std::min<std::size_t>(3, source.size())), source), quoted);
  if (second == '{') return braces(source.substr(2, source.size() - std::min<std::size_t>(3, source.size())), quoted, out);
  if (second == '\'') {
    out.quoted_empty = true;
    std::string text = source.substr(2, source.size() - std::min<std::size_t>(3, source.size()));
    for (const auto& [escape, stands] : {std::pair{"\\n", "\n"}, {"\\t", "\t"}, {"\\'", "'"}, {"\\\\", "\\"}})
      for (std::size_t i = 0; (i = text.find(escape, i)) != std::string::npos; ++i) text.replace(i, 2, stands);
    return out.add(text, true);
  }
  if (second == '"') return expand_into(source.substr(1), out, quoted);
  if (!is_name(second) && std::strchr("@*#?$!-", second) == nullptr) return out.add(source, quoted);
  braces(source.substr(1), quoted, out);
}

std::string Interpreter::changed(const std::string& operation, const std::string& value, const std::string& pattern, const std::string& with) {
  const std::size_t size = value.size();
  constexpr std::size_t kLongest = 4096;
  if (size > kLongest) return unknown("a pattern in a long text");
  if (operation == "#" || operation == "##") {
    for (std::size_t i = 0; i <= size; ++i) {
      const std::size_t n = operation == "#" ? i : size - i;
      if (matches(value.substr(0, n), pattern)) return value.substr(n);
    }
    return value;
  }
  if (operation == "%" || operation == "%%") {
    for (std::size_t i = 0; i <= size; ++i) {
      const std::size_t n = operation == "%" ? size - i : i;
      if (matches(value.substr(n), pattern)) return value.substr(0, n);
    }
    return value;
  }
  std::string out;
  for (std::size_t at = 0; at <= size;) {
    std::size_t found = std::string::npos;
    if (pattern.find_first_of("*?[\\") == std::string::npos)
      found = !pattern.empty() && value.compare(at, pattern.size(), pattern) == 0 ? pattern.size() : found;
    else
      for (std::size_t n = size - at; n > 0 && found == std::string::npos; --n)
        if (matches(value.substr(at, n), pattern)) found = n;
    if (found == std::string::npos || found == 0) {
      if (at < size) out += value[at];
      ++at;
      continue;
    }
    out += with, at += found;
    if (operation == "/") return out + value.substr(std::min(at, size));
  }
  return out;
}

void Interpreter::braces(const std::string& inner, bool quoted, Fields& out) {
  const std::string source = is_name(inner) || inner.size() == 1 ? "$" + inner : "${" + inner + "}";
  std::size_t at = 0;
  const bool counts = inner.size() > 1 && inner[0] == '#', follows = inner.size() > 1 && inner[0] == '!';
  if (counts || follows) ++at;
  std::size_t end = at;
  if (end < inner.size() && std::strchr("@*#?$!-", inner[end]) != nullptr)
    ++end;
  else
    while (end < inner.size() && is_name(inner[end])) ++end;
  std::string name = inner.substr(at, end - at), index;
  if (name.empty()) return out.add(unknown(source), quoted);
  if (end < inner.size() && inner[end] == '[') {
    std::size_t close = end + 1;
    for (int open = 1; close < inner.size(); ++close) {
      open += inner[close] == '[' ? 1 : inner[close] == ']' ? -1 : 0;
      if (open == 0) break;
    }
    index = inner.substr(end + 1, close - end - 1), end = std::min(close + 1, inner.size());
  }
  const std::string rest = inner.substr(end);
  if (follows) {
    if (index == "@" || index == "*") {
      const auto named = state_.variables.find(name);
      if (named == state_.variables.end()) return out.add(unknown(source), quoted);
      for (std::size_t i = 0; i < named->second.items.size(); ++i) {
        if (i > 0) quoted ? (out.end(), void()) : out.add(" ", false);
        out.add(named->second.items[i].first, quoted), out.quoted_empty = quoted;
      }
      return;
    }
    const auto pointer = values_of(name, index);
    if (!pointer || pointer->empty() || has_unknown(pointer->front())) return out.add(unknown(source), quoted);
    name = plain(pointer->front()), index.clear();
    if (!is_name(name)) return out.add(unknown(source), quoted);
  }
  std::optional<Words> values = values_of(name, index);
  const bool all = index == "@" || index == "*" || name == "@" || name == "*";
  if (counts) {
    if (!values) return out.add(all ? "0" : unknown(source), quoted);
    const bool whole = std::ranges::any_of(*values, [](const std::string& one) { return has_unknown(one); });
    if (whole) return out.add(unknown(source), quoted);
    std::string marks;
    return out.add(std::to_string(all ? values->size() : plain(values->front(), &marks).size()) + marks, quoted);
  }
  const bool colon = rest.size() > 1 && rest[0] == ':' && std::strchr("-=+?", rest[1]) != nullptr;
  const char operation = colon ? rest[1] : rest.empty() ? 0 : rest[0];
  const bool empty = values && (values->empty() || (values->size() == 1 && plain(values->front()).empty()));
  const bool missing = !values || (colon && empty);
  if (operation == '-' || operation == '=') {
    if (missing) {
      const bool set_by_script = values.has_value();
      std::string text = expand_text(rest.substr(colon ? 2 : 1));
      if (!set_by_script) text = fallback_of(name, text);
      if (operation == '=') set(name, text);
      return out.add(text, quoted);
    }
  } else if (operation == '+') {
    if (!values && !is_name(name)) return;
    if (!values) return out.add(state_.variables.contains(name) ? "" : unknown(source), quoted);
    if (empty && colon) return;
    if (values->size() == 1 && has_unknown(values->front())) return out.add(unknown(source), quoted);
    return expand_into(rest.substr(colon ? 2 : 1), out, quoted);
  } else if (operation == '?' && missing) {
    return out.add(unknown("$" + name), quoted);
  }
  if (!values) {
    if (state_.variables.contains(name) && state_.variables.at(name).list) return;  // an empty list
    return out.add(unknown(source), quoted);
  }
  if (operation != 0 && std::strchr("-=?", operation) == nullptr) {
    const bool twice = rest.size() > 1 && rest[1] == rest[0];
    const std::string word = rest.substr(twice ? 2 : 1);
    for (std::string& value : *values) {
      std::string marks;
      const std::string text = plain(value, &marks);
      if (has_unknown(text)) {
        value = unknown(source);
      } else if (operation == '#' || operation == '%') {
        const std::string pattern = expand_pattern(word);
        value = has_unknown(pattern) ? unknown(source) : changed(twice ? std::string(2, operation) : std::string(1, operation), text, plain(pattern), "") + marks;
      } else if (operation == '/') {
        const std::size_t slash = word.find('/');
        const std::string pattern = expand_pattern(word.substr(0, slash)), with = slash == std::string::npos ? "" : expand_text(word.substr(slash + 1));
        value = has_unknown(pattern) || has_unknown(with) ? unknown(source) : changed(twice ? "//" : "/", text, plain(pattern), plain(with)) + marks;
      } else if (operation == '^' || operation == ',') {
        std::string made = text;
        for (std::size_t i = 0; i < (twice ? made.size() : std::min<std::size_t>(1, made.size())); ++i)
          made[i] = static_cast<char>(operation == '^' ? std::toupper(static_cast<unsigned char>(made[i])) : std::tolower(static_cast<unsigned char>(made[i])));
        value = made + marks;
      } else if (operation == ':' && !all) {
        const std::size_t split = rest.find(':', 1);
        const std::string from = plain(arithmetic(rest.substr(1, split - 1))), count = split == std::string::npos ? "" : plain(arithmetic(rest.substr(split + 1)));
        if (has_unknown(from) || has_unknown(count)) {
          value = unknown(source);
          continue;
        }
        const auto size = static_cast<long>(text.size());
        long first = std::strtol(from.c_str(), nullptr, 10), length = count.empty() ? size : std::strtol(count.c_str(), nullptr, 10);
        first = first < 0 ? std::max(0L, size + first) : std::min(first, size);
        if (length < 0) length = std::max(0L, size + length - first);
        value = text.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(length)) + marks;
      } else if (operation == ':') {
        const std::string from = plain(arithmetic(rest.substr(1, rest.find(':', 1) - 1)));
        const std::size_t first = has_unknown(from) ? values->size() : std::strtoul(from.c_str(), nullptr, 10) - (name == "@" ? 1 : 0);
        if (rest.find(':', 1) != std::string::npos || first > values->size()) return out.add(unknown(source), quoted);
        values->erase(values->begin(), values->begin() + static_cast<std::ptrdiff_t>(first));
        break;
      } else if (operation != '@') {
        value = unknown(source);
      }
    }
  }
  const bool apart = quoted && (index == "@" || name == "@");  // "${list[@]}": a word each
  const auto separator = state_.variables.find("IFS");
  const std::string between = quoted && !apart && separator != state_.variables.end() ? separator->second.text().substr(0, 1) : " ";
  for (std::size_t i = 0; i < values->size(); ++i) {
    if (i > 0) apart ? out.end() : out.add(between, quoted);
    out.add((*values)[i], quoted);
    if (apart) out.begun = out.quoted_empty = true;
  }
  if (apart && values->empty()) out.begun = out.begun && !out.now.empty();
}

std::string Interpreter::substitution(const std::string& inner, const std::string& source) {
  if (++depth_ > 30) throw_usage("{}:{}: found substitutions inside each other more than 30 times, needs fewer", origin_, line_);
  std::string text;
  if (inner.find_first_not_of(" \t\n") != std::string::npos && inner[inner.find_first_not_of(" \t\n")] == '<') {  // $(< file)
    const std::string path = expand_text(inner.substr(inner.find('<') + 1));
    --depth_;
    const auto found = file_text(path.substr(std::min(path.find_first_not_of(" \t"), path.size())));
    return found ? *found : unknown(source);
  }
  const State before = state_;
  std::string* const outside = std::exchange(output_, &text);
  const bool known_outside = std::exchange(output_known_, true);
  run(parse(inner, origin_));
  const bool known = output_known_;
  output_ = outside, output_known_ = known_outside;
  const Status last = state_.last;
  state_ = before;
  state_.last = last;
  --depth_;
  if (!known) return unknown(source);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void Interpreter::set(const std::string& name, const std::string& value) {
  Variable& variable = state_.variables[name];
  if (variable.list && !variable.items.empty())
    variable.items.front().second = value;
  else
    variable.items = {{"0", value}};
}

void Interpreter::assign(const Assignment& one, bool exports) {
  // The value comes first: X=${X:-1}, LIST=("${LIST[@]}" more).
  Words list;
  std::vector<std::pair<std::string, std::string>> named;
  if (one.is_list)
    for (const std::string& word : one.list) {
      const std::size_t close = word.find("]=");
      if (word.front() == '[' && close != std::string::npos)
        named.emplace_back(expand_text(word.substr(1, close - 1)), expand_text(word.substr(close + 2)));
      else
        for (std::string& value : expand(Words{word})) list.push_back(std::move(value));
    }
  const std::string value = one.is_list ? "" : expand_text(one.value);
  const std::string index = one.index.empty() ? "" : expand_text(one.index);
  Variable& variable = state_.variables[one.name];
  variable.exported = variable.exported || exports;
  if (one.is_list) {
    if (!one.appends) variable.items.clear();
    variable.list = true, variable.named = variable.named || !named.empty();
    for (std::string& word : list) variable.items.emplace_back(std::to_string(variable.items.size()), std::move(word));
    for (auto& [key, text] : named) variable.items.emplace_back(key, text);
  } else if (!index.empty()) {
    variable.list = true;
    const std::string key = variable.named ? plain(index) : plain(arithmetic(index));
    const auto found = std::ranges::find_if(variable.items, [&](const auto& item) { return item.first == key; });
    if (found == variable.items.end())
      variable.items.emplace_back(key, value);
    else
      found->second = one.appends ? found->second + value : value;
  } else if (one.appends && !variable.items.empty()) {
    variable.items.front().second += value;
    if (variable.items.front().second.size() > kMostMade) throw_usage("{}:{}: found variables that stand for more than {} bytes, needs shorter ones", origin_, line_, kMostMade);
  } else if (one.appends && !variable.list && variable.items.empty()) {
    variable.items = {{"0", unknown("$" + one.name) + value}};
  } else {
    variable.list = false;
    variable.items = {{"0", value}};
  }
}

bool matches(const std::string& text, const std::string& pattern) {
  // The last * is where matching goes back to, so that it takes at most size x size steps.
  std::size_t t = 0, p = 0, star = std::string::npos, from = 0;
  const auto one = [&](std::size_t& next) {  // whether the pattern's part at p matches text[t]
    next = p + 1;
    if (pattern[p] == '?') return true;
    if (pattern[p] == '\\' && p + 1 < pattern.size()) {
      next = p + 2;
      return pattern[p + 1] == text[t];
    }
    const std::size_t close = pattern[p] == '[' ? pattern.find(']', p + 2) : std::string::npos;
    if (close == std::string::npos) return pattern[p] == text[t];
    next = close + 1;
    const bool negated = pattern[p + 1] == '!' || pattern[p + 1] == '^';
    bool in = false;
    for (std::size_t i = p + (negated ? 2 : 1); i < close; ++i)
      if (i + 2 < close && pattern[i + 1] == '-') {
        in = in || (pattern[i] <= text[t] && text[t] <= pattern[i + 2]);
        i += 2;
      } else {
        in = in || pattern[i] == text[t];
      }
    return in != negated;
  };
  while (t < text.size()) {
    std::size_t next = p;
    if (p < pattern.size() && pattern[p] == '*')
      star = p++, from = t;
    else if (p < pattern.size() && one(next))
      p = next, ++t;
    else if (star != std::string::npos)
      p = star + 1, t = ++from;
    else
      return false;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace wt::shell
