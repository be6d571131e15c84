// The states after two ways through a script, of which nobody knows which one is taken, as one state.
#include <fmt/format.h>

#include <algorithm>

#include "planner/shell/interpreter.hpp"

namespace wt::shell {

/// What both ways have in common, and behind it the flags that one of them adds; or a value that is not known.
Variable Interpreter::joined_variable(const std::string& name, const Variable& a, const Variable& b,
                                      const std::string& condition) {
  Variable out{.list = a.list, .named = a.named, .exported = a.exported, .items = {}};
  const auto flags = [](const std::string& text) { return text.starts_with("--"); };
  const auto trimmed = [](const std::string& text) {
    return text.substr(std::min(text.find_first_not_of(" \t\n"), text.size()));
  };
  Variable unknown_one{.list = false,
                       .named = false,
                       .exported = a.exported,
                       .items = {{"0", unknown(fmt::format("${{{}}} (which depends on {})", name, condition))}}};
  if (a.list != b.list || a.named || b.named) return unknown_one;
  if (!a.list) {
    const std::string x = a.text(), y = b.text();
    std::size_t same = 0;
    while (same < x.size() && same < y.size() && x[same] == y[same]) ++same;
    if (same < x.size() && same < y.size())  // not inside of a word or a mark
      while (same > 0 && !((x[same - 1] == ' ' || x[same - 1] == '\n') && x.find('\x01', same) == y.find('\x01', same)))
        --same;
    out.items = {{"0", x.substr(0, same)}};
    for (const std::string* one : {&x, &y}) {
      const std::string rest = trimmed(one->substr(same));
      if (rest.empty()) continue;
      if (!flags(rest)) return unknown_one;
      out.items.front().second += " " + optional(rest, condition);
    }
    return out;
  }
  std::size_t same = 0;
  while (same < a.items.size() && same < b.items.size() && a.items[same] == b.items[same]) ++same;
  out.items.assign(a.items.begin(), a.items.begin() + static_cast<std::ptrdiff_t>(same));
  for (const Variable* one : {&a, &b}) {
    std::string rest;
    for (std::size_t i = same; i < one->items.size(); ++i) rest += (i > same ? " " : "") + one->items[i].second;
    if (rest.empty()) continue;
    if (!flags(rest)) return unknown_one;
    out.items.emplace_back(std::to_string(out.items.size()), optional(rest, condition));
  }
  return out;
}

Flow Interpreter::join(std::vector<std::pair<Flow, State>> ends, const std::string& condition) {
  auto going = ends;
  std::erase_if(going, [](const auto& end) { return end.first == Flow::exits; });
  if (going.empty()) {
    state_ = std::move(ends.front().second);
    return Flow::exits;
  }
  const Flow flow = std::ranges::all_of(going, [&](const auto& end) { return end.first == going.front().first; })
                        ? going.front().first
                        : Flow::goes_on;
  state_ = std::move(going.front().second);
  for (std::size_t i = 1; i < going.size(); ++i) {
    State& other = going[i].second;
    // What is set on one way alone: [ -z "$X" ] && X=2 is a fallback of X.
    const auto fallback = [&](const std::string& name, Variable set) {
      const bool asks =
          condition.find("-z") != std::string::npos &&
          (condition.find("$" + name + "\"") != std::string::npos || condition.find("${" + name) != std::string::npos ||
           condition.find("$" + name + " ") != std::string::npos);
      if (asks && !set.list && !set.items.empty()) set.items.front().second = fallback_of(name, set.text());
      return asks ? std::optional(set) : std::nullopt;
    };
    for (const auto& [name, variable] : other.variables)
      if (!state_.variables.contains(name)) {
        if (const auto set = fallback(name, variable))
          state_.variables[name] = other.variables[name] = *set;
        else
          state_.variables[name] = {.list = variable.list, .named = false, .exported = false, .items = {}};
      }
    for (const auto& [name, variable] : state_.variables)
      if (!other.variables.contains(name))
        if (const auto set = fallback(name, variable)) state_.variables[name] = other.variables[name] = *set;
    for (auto& [name, variable] : state_.variables) {
      const auto found = other.variables.find(name);
      if (found == other.variables.end() || found->second != variable)
        variable =
            joined_variable(name, variable, found == other.variables.end() ? Variable{} : found->second, condition);
    }
    for (auto& [name, body] : other.functions) state_.functions.try_emplace(name, body);
    for (auto& [name, text] : other.files) state_.files.try_emplace(name, text);
    if (other.last != state_.last) state_.last = Status::unknown;
    if (other.folder != state_.folder) state_.folder = unknown("the folder after cd");
  }
  return flow;
}

}  // namespace wt::shell
