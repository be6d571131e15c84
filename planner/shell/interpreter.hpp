// Follows the commands of a script. Split by what is followed: expansion.cpp and parameters.cpp, arithmetic.cpp,
// conditions.cpp, builtins.cpp, and interpreter.cpp with joining.cpp.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/shell/shell.hpp"
#include "planner/shell/syntax.hpp"
#include "planner/shell/unknown_text.hpp"

namespace wt::shell {

using Words = std::vector<std::string>;

/// A variable: one text, or a list by index or by name.
struct Variable {
  bool list = false, named = false, exported = false;
  std::vector<std::pair<std::string, std::string>> items;  ///< by index or name

  std::string text() const { return items.empty() ? "" : items.front().second; }
  bool operator==(const Variable&) const = default;
};

enum class Status { yes, no, unknown };
/// How a list of commands ended.
enum class Flow { goes_on, breaks, continues, returns, exits };

/// What a subshell has its own copy of.
struct State {
  std::map<std::string, Variable> variables;
  std::map<std::string, std::shared_ptr<List>> functions;
  std::map<std::string, std::string> files;  ///< that the script writes with cat or echo
  Words arguments;                           ///< $1 and on
  bool arguments_known = false;              ///< a function's, or those after set --
  std::string folder;                        ///< after cd; "" = where the script was started
  Status last = Status::yes;                 ///< $?

  bool operator==(const State&) const = default;
};

struct Fields;

class Interpreter {
 public:
  explicit Interpreter(const ScriptSource& source);
  ReadScript result(const std::string& text);

 private:
  // interpreter.cpp
  Flow run(const List& list);
  Flow run(const Pipeline& pipeline);
  Flow run(const Command& command);
  Flow run_if(const Command& command, std::size_t branch);
  Flow run_case(const Command& command);
  Flow run_while(const Command& command);
  Flow run_for(const Command& command);
  Flow run_simple(const Command& command);
  Flow run_text(const std::string& text, const std::string& origin);
  Flow call(const std::string& name, const Words& arguments);
  void start(const Words& words, const Command& command);
  void start_script(const Words& launcher, const std::string& text, const std::string& origin, Words arguments);
  /// Follows each way from the same state, and joins what comes out. `condition` is what decides.
  template <typename... Ways>
  Flow fork(const std::string& condition, int line, Ways... ways);
  static Variable joined_variable(const std::string& name, const Variable& a, const Variable& b,
                                  const std::string& condition);
  Flow join(std::vector<std::pair<Flow, State>> ends, const std::string& condition);
  void step(std::size_t cost = 1);

  // expansion.cpp
  Words expand(const Words& words);
  Words expand(const std::string& word);                ///< split into words
  std::string expand_text(const std::string& word);     ///< not split
  std::string expand_pattern(const std::string& word);  ///< quoted characters get a backslash
  std::string expand_document(const std::string& text);
  void expand_into(const std::string& word, Fields& out, bool quoted);
  void dollar(const std::string& word, std::size_t& at, bool quoted, Fields& out);
  void braces(const std::string& inner, bool quoted, Fields& out);
  std::string substitution(const std::string& inner, const std::string& source);
  std::optional<Words> values_of(const std::string& name, const std::string& index);
  std::string special(char c) const;
  void assign(const Assignment& one, bool exports = false);
  void set(const std::string& name, const std::string& value);
  static std::string changed(const std::string& operation, const std::string& value, const std::string& pattern,
                             const std::string& with);

  // arithmetic.cpp
  std::string arithmetic(const std::string& text);
  friend class Arithmetic;

  // conditions.cpp
  Status test(Words words, int depth = 0);
  Status double_test(const std::string& text);
  Status compare(const std::string& left, const std::string& operation, const std::string& right, bool pattern);
  friend class DoubleTest;

  // builtins.cpp
  std::optional<Flow> builtin(const Words& words, const Command& command);
  bool print(const Words& words);
  void read_lines(const Words& words, const Command& command);
  bool filter(const Words& words);
  std::optional<std::string> input_of(const Command& command);
  std::optional<std::string> file_text(const std::string& path);
  std::filesystem::path path_of(const std::string& path) const;
  Flow source(const Words& words);

  const ScriptSource& source_;
  std::string origin_;
  State state_;
  ReadScript out_;
  std::vector<std::string> conditions_;  ///< that are not known, around what is followed
  std::vector<std::map<std::string, std::optional<Variable>>> locals_;
  std::string* output_ = nullptr;     ///< of a substitution or pipe
  std::optional<std::string> piped_;  ///< what a pipe's former command printed
  bool output_known_ = true;
  std::set<std::string> asked_;  ///< script arguments and unknown facts that the last condition read
  int line_ = 0, depth_ = 0;
  std::size_t steps_ = 0;
};

/// Whether a text matches a pattern of the shell: * ? [a-z] and characters behind a backslash.
bool matches(const std::string& text, const std::string& pattern);

}  // namespace wt::shell
