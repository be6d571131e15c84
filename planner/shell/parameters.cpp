// $NAME and ${NAME...}: values of variables, fallbacks, parts of texts, replaced patterns.
#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "planner/shell/fields.hpp"

namespace wt::shell {

std::string Interpreter::special(char c) const {
  switch (c) {
    case '#':
      return fallback_of("#", std::to_string(state_.arguments.size()));
    case '?':
      return state_.last == Status::yes ? "0" : state_.last == Status::no ? "1" : unknown("$?");
    case '0':
      return origin_;
    default:
      return unknown(std::string("$") + c);
  }
}

std::optional<Words> Interpreter::values_of(const std::string& name, const std::string& index) {
  if (name == "@" || name == "*") return state_.arguments;
  if (name.size() == 1 && std::strchr("#?$!-0", name[0]) != nullptr) return Words{special(name[0])};
  if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
    const std::size_t n = std::strtoul(name.c_str(), nullptr, 10);
    if (n <= state_.arguments.size()) return Words{state_.arguments[n - 1]};
    if (const auto given = state_.variables.find(name); given != state_.variables.end())
      return Words{given->second.text()};
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
  std::string key = variable.named ? expand_text(index) : plain(arithmetic(index));
  if (!variable.named && key.starts_with("-") && !has_unknown(key))  // from the end
    key = std::to_string(static_cast<long>(variable.items.size()) + std::strtol(key.c_str(), nullptr, 10));
  if (has_unknown(key) || (!variable.list && has_unknown(variable.text())))
    return Words{unknown("${" + name + "[" + index + "]}")};
  for (const auto& [known, value] : variable.items)
    if (known == key) return Words{value};
  return std::nullopt;
}

std::string Interpreter::changed(const std::string& operation, const std::string& value, const std::string& pattern,
                                 const std::string& with) {
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
        value = has_unknown(pattern)
                    ? unknown(source)
                    : changed(twice ? std::string(2, operation) : std::string(1, operation), text, plain(pattern), "") +
                          marks;
      } else if (operation == '/') {
        const std::size_t slash = word.find('/');
        const std::string pattern = expand_pattern(word.substr(0, slash)),
                          with = slash == std::string::npos ? "" : expand_text(word.substr(slash + 1));
        value = has_unknown(pattern) || has_unknown(with)
                    ? unknown(source)
                    : changed(twice ? "//" : "/", text, plain(pattern), plain(with)) + marks;
      } else if (operation == '^' || operation == ',') {
        std::string made = text;
        for (std::size_t i = 0; i < (twice ? made.size() : std::min<std::size_t>(1, made.size())); ++i)
          made[i] = static_cast<char>(operation == '^' ? std::toupper(static_cast<unsigned char>(made[i]))
                                                       : std::tolower(static_cast<unsigned char>(made[i])));
        value = made + marks;
      } else if (operation == ':' && !all) {
        const std::size_t split = rest.find(':', 1);
        const std::string from = plain(arithmetic(rest.substr(1, split - 1))),
                          count = split == std::string::npos ? "" : plain(arithmetic(rest.substr(split + 1)));
        if (has_unknown(from) || has_unknown(count)) {
          value = unknown(source);
          continue;
        }
        const auto size = static_cast<long>(text.size());
        long first = std::strtol(from.c_str(), nullptr, 10),
             length = count.empty() ? size : std::strtol(count.c_str(), nullptr, 10);
        first = first < 0 ? std::max(0L, size + first) : std::min(first, size);
        if (length < 0) length = std::max(0L, size + length - first);
        value = text.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(length)) + marks;
      } else if (operation == ':') {
        const std::string from = plain(arithmetic(rest.substr(1, rest.find(':', 1) - 1)));
        const std::size_t first =
            has_unknown(from) ? values->size() : std::strtoul(from.c_str(), nullptr, 10) - (name == "@" ? 1 : 0);
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
  const std::string between =
      quoted && !apart && separator != state_.variables.end() ? separator->second.text().substr(0, 1) : " ";
  for (std::size_t i = 0; i < values->size(); ++i) {
    if (i > 0) apart ? out.end() : out.add(between, quoted);
    out.add((*values)[i], quoted);
    if (apart) out.begun = out.quoted_empty = true;
  }
  if (apart && values->empty()) out.begun = out.begun && !out.now.empty();
}

}  // namespace wt::shell
