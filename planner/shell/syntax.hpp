// The grammar of bash, as far as launch scripts use it: lists, pipelines, if, case, for, while, functions, groups,
// conditions, redirections with here-documents. Words stay as they are written; expansion.cpp reads them.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace wt::shell {

struct Command;

struct Redirection {
  std::string operation;                            ///< "<", ">", ">>", "<<", "<<<", ">&", ...
  std::string target;                               ///< a word
  std::shared_ptr<std::string> document = nullptr;  ///< of "<<": its text
  bool expands = true;                              ///< of "<<": whether its text has variables
};

/// NAME=value, NAME+=value, NAME[index]=value, NAME=(list).
struct Assignment {
  std::string name, index, value;
  bool appends = false, is_list = false;
  std::vector<std::string> list;
};

struct Pipeline {
  std::vector<Command> commands;
  bool negated = false;
};
struct Step {
  std::string before;  ///< "&&", "||", or ";" of what stands before it
  Pipeline pipeline;
};
using List = std::vector<Step>;

struct Branch {
  std::vector<std::string> patterns;  ///< of case
  List condition, body;
};

struct Command {
  enum class Kind { simple, group, subshell, if_, case_, for_, while_, until, function, test, arithmetic };
  Kind kind = Kind::simple;
  int line = 0;
  std::vector<Assignment> assignments;  ///< of a simple command, before and after its name
  std::vector<std::string> words;       ///< simple; for_: what its variable runs over
  std::string name;                     ///< for_: the variable; function; case_: the word; test, arithmetic: the text
  bool over_arguments = false;          ///< for_: without "in"
  std::vector<Branch> branches;         ///< if_ (the last without condition is else), case_, while_, until, for_
  std::shared_ptr<List> body;           ///< group, subshell, function
  std::vector<Redirection> redirections;
};

/// Throws Error{usage} naming `origin` and the line for text that is no shell script.
List parse(const std::string& text, const std::string& origin);

/// The position behind a word's part that starts with $, a quote or a backquote; for whoever reads words.
std::size_t behind_part(const std::string& text, std::size_t at);
/// The position behind the bracket that closes the one at `at`.
std::size_t behind_brackets(const std::string& text, std::size_t at, char open, char close);
bool is_name(char c);
/// Only letters, digits and _, and no digit in front.
bool is_name(const std::string& word);

}  // namespace wt::shell
