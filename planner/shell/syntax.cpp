#include "planner/shell/syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <optional>

#include "configs/base/error.hpp"
#include "planner/shell/unknown_text.hpp"

namespace wt::shell {
namespace {

constexpr int kDeepestCommands = 60;  // of nested commands

bool ends_word(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0 || std::strchr(";&|()<>", c) != nullptr;
}

class Parser {
 public:
  Parser(const std::string& text, const std::string& origin) : text_(text), origin_(origin) {}

  List all() {
    List out = list({});
    if (at_ < text_.size()) refuse(shortly());
    return out;
  }

 private:
  using Words = std::vector<std::string>;

  int line() const {
    for (; counted_ < std::min(at_, text_.size()); ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
    return line_;
  }
  std::string shortly() const { return text_.substr(at_, std::min<std::size_t>(text_.find('\n', at_) - at_, 30)); }
  [[noreturn]] void refuse(const std::string& found) const {
    throw_usage("{}:{}: found '{}', needs a script that bash -n accepts; correct it, or give its command line alone",
                origin_, line(), found);
  }

  void blanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')
        ++at_;
      else if (text_.compare(at_, 2, "\\\n") == 0)
        at_ += 2;
      else if (text_.compare(at_, 3, "\\\r\n") == 0)
        at_ += 3;
      else if (text_[at_] == '#' && (at_ == 0 || ends_word(text_[at_ - 1])))
        at_ = std::min(text_.find('\n', at_), text_.size());
      else
        break;
    }
  }
  bool new_line() {
    if (at_ >= text_.size() || text_[at_] != '\n') return false;
    ++at_;
    for (const Waiting& one : std::exchange(waiting_, {})) here_document(*one.document, one.end, one.strip);
    return true;
  }
  void lines() {
    for (blanks(); new_line();) blanks();
  }
  void here_document(std::string& out, const std::string& end, bool strip) {
    while (at_ < text_.size()) {
      const std::size_t stop = std::min(text_.find('\n', at_), text_.size());
      std::string one = text_.substr(at_, stop - at_);
      at_ = std::min(stop + 1, text_.size());
      if (strip) one.erase(0, std::min(one.find_first_not_of('\t'), one.size()));
      if (one == end || one == end + "\r") return;
      out += one + "\n";
    }
  }

  bool next(const char* symbol) {
    if (text_.compare(at_, std::strlen(symbol), symbol) != 0) return false;
    at_ += std::strlen(symbol);
    return true;
  }
  /// A reserved word at this place.
  bool at_reserved(const char* word) const {
    const std::size_t end = at_ + std::strlen(word);
    return text_.compare(at_, std::strlen(word), word) == 0 && (end >= text_.size() || ends_word(text_[end]));
  }
  bool reserved(const char* word) {
    if (!at_reserved(word)) return false;
    at_ += std::strlen(word);
    return true;
  }
  void need(const char* word) {
    lines();
    if (!(std::isalpha(static_cast<unsigned char>(*word)) != 0 ? reserved(word) : next(word)))
      refuse(at_ < text_.size() ? shortly() : fmt::format("the end without {}", word));
  }

  /// The text of one word as it is written; "" at a separator.
  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !ends_word(text_[at_])) {
      if (const std::size_t mark = mark_at(text_, at_); mark > 0) {  // of a text that was expanded before
        at_ += mark;
        continue;
      }
      if (text_.compare(at_, 2, "\\\n") == 0) break;
      if (text_[at_] == '\\')
        at_ = std::min(at_ + 2, text_.size());
      else if (std::strchr("$'\"`", text_[at_]) != nullptr)
        at_ = behind_part(text_, at_);
      else
        ++at_;
      if (at_ < text_.size() && text_[at_] == '(' && at_ > begin && std::strchr("@?*+!", text_[at_ - 1]) != nullptr)
        at_ = behind_brackets(text_, at_, '(', ')');  // @(a|b)
    }
    std::string out = text_.substr(begin, at_ - begin);
    if (text_.compare(at_, 2, "\\\n") == 0 && !out.empty()) {  // a word goes on in the next line
      at_ += 2;
      if (at_ < text_.size() && !ends_word(text_[at_])) out += word();
    }
    return out;
  }

  bool at_end(const Words& ends) const {
    if (at_ >= text_.size()) return true;
    return std::ranges::any_of(ends, [&](const std::string& end) {
      return std::isalpha(static_cast<unsigned char>(end[0])) != 0 || end == "}"
                 ? at_reserved(end.c_str())
                 : text_.compare(at_, end.size(), end) == 0;
    });
  }

  List list(const Words& ends) {
    if (++depth_ > kDeepestCommands) refuse("more than 60 commands inside each other");
    List out;
    std::string before = ";";
    for (lines(); !at_end(ends); lines()) {
      out.push_back({before, pipeline()});
      blanks();
      before = ";";
      if (next("&&"))
        before = "&&";
      else if (next("||"))
        before = "||";
      else if (text_.compare(at_, 2, ";;") != 0 && !next(";") && !next("&") && !new_line() && !at_end(ends))
        refuse(shortly());
    }
    --depth_;
    return out;
  }

  Pipeline pipeline() {
    Pipeline out;
    blanks();
    if (reserved("time")) blanks(), next("-p"), blanks();
    while (reserved("!")) out.negated = !out.negated, blanks();
    out.commands.push_back(command());
    for (blanks(); text_.compare(at_, 2, "||") != 0 && (next("|&") || next("|")); blanks()) {
      lines();
      out.commands.push_back(command());
    }
    return out;
  }

  Command command() {
    Command out;
    out.line = line();
    if (next("((")) {
      out.kind = Command::Kind::arithmetic;
      at_ -= 2;
      const std::size_t end = behind_brackets(text_, at_, '(', ')');
      if (end - at_ >= 4 && text_.compare(end - 2, 2, "))") == 0) {
        out.name = text_.substr(at_ + 2, end - at_ - 4), at_ = end;
        return out;
      }
      out.kind = Command::Kind::simple;
    }
    if (next("(")) {
      out.kind = Command::Kind::subshell, out.body = std::make_shared<List>(list({")"}));
      need(")");
    } else if (reserved("{")) {
      out.kind = Command::Kind::group, out.body = std::make_shared<List>(list({"}"}));
      need("}");
    } else if (reserved("[[")) {
      out.kind = Command::Kind::test, out.name = condition();
    } else if (reserved("if")) {
      if_command(out);
    } else if (at_reserved("while") || at_reserved("until")) {
      out.kind = reserved("while") ? Command::Kind::while_ : (reserved("until"), Command::Kind::until);
      Branch branch;
      branch.condition = list({"do"});
      need("do"), branch.body = list({"done"}), need("done");
      out.branches.push_back(std::move(branch));
    } else if (at_reserved("for") || at_reserved("select")) {
      if (!reserved("for")) reserved("select");
      for_command(out);
    } else if (reserved("case")) {
      case_command(out);
    } else if (reserved("function")) {
      blanks(), out.name = word(), blanks();
      if (next("(")) need(")");
      function(out);
    } else {
      simple(out);
    }
    if (out.kind != Command::Kind::simple && out.kind != Command::Kind::function)
      for (blanks(); redirection(out); blanks()) {
      }
    return out;
  }

  void function(Command& out) {
    out.kind = Command::Kind::function;
    lines();
    if (++depth_ > kDeepestCommands) refuse("more than 60 commands inside each other");
    List body;
    Pipeline one;
    one.commands.push_back(command());
    body.push_back({";", std::move(one)});
    out.body = std::make_shared<List>(std::move(body));
    --depth_;
  }

  std::string condition() {
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      if (text_.compare(at_, 2, "]]") == 0 && std::isspace(static_cast<unsigned char>(text_[at_ - 1])) != 0) {
        at_ += 2;
        return text_.substr(begin, at_ - 2 - begin);
      }
      at_ = text_[at_] == '\\'                            ? std::min(at_ + 2, text_.size())
            : std::strchr("$'\"`", text_[at_]) != nullptr ? behind_part(text_, at_)
                                                          : at_ + 1;
    }
    refuse("[[ without ]]");
  }

  void if_command(Command& out) {
    out.kind = Command::Kind::if_;
    do {
      Branch branch;
      branch.condition = list({"then"});
      need("then"), branch.body = list({"elif", "else", "fi"});
      out.branches.push_back(std::move(branch));
    } while (reserved("elif"));
    if (reserved("else")) {
      Branch branch;
      branch.body = list({"fi"});
      out.branches.push_back(std::move(branch));
    }
    need("fi");
  }

  void for_command(Command& out) {
    out.kind = Command::Kind::for_;
    blanks();
    if (text_.compare(at_, 2, "((") == 0) {
      const std::size_t end = behind_brackets(text_, at_, '(', ')');
      out.name = text_.substr(at_, end - at_), at_ = end;
    } else {
      out.name = word();
      lines();
      if (reserved("in"))
        for (blanks(); at_ < text_.size() && text_[at_] != ';' && text_[at_] != '\n'; blanks()) {
          const std::string one = word();
          if (one.empty()) refuse(shortly());
          out.words.push_back(one);
        }
      else
        out.over_arguments = true;
    }
    blanks(), next(";");
    Branch branch;
    lines();
    if (next("{"))
      branch.body = list({"}"}), need("}");
    else
      need("do"), branch.body = list({"done"}), need("done");
    out.branches.push_back(std::move(branch));
  }

  void case_command(Command& out) {
    out.kind = Command::Kind::case_;
    blanks(), out.name = word(), need("in");
    for (lines(); at_ < text_.size() && !at_reserved("esac"); lines()) {
      Branch branch;
      next("(");
      do {
        blanks();
        branch.patterns.push_back(word());
        blanks();
      } while (next("|"));
      need(")");
      branch.body = list({";;", "esac"});
      if (!next(";;&")) next(";;");
      out.branches.push_back(std::move(branch));
    }
    need("esac");
  }

  /// [n]< file and others.
  bool redirection(Command& out) {
    std::size_t end = at_;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) != 0) ++end;
    if (text_.compare(end, 2, "&>") == 0) end = at_;
    for (const char* operation : {"&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">"}) {
      if (text_.compare(end, std::strlen(operation), operation) != 0) continue;
      if (text_[end] == '&' && end != at_) continue;
      if (std::strlen(operation) == 1 && text_.compare(end + 1, 1, "(") == 0) return false;  // <(command)
      at_ = end + std::strlen(operation);
      blanks();
      const bool here = operation == std::string("<<") || operation == std::string("<<-");
      std::string target = word();
      if (target.empty() && at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>'))
        at_ = text_.compare(at_ + 1, 1, "(") == 0 ? behind_brackets(text_, at_ + 1, '(', ')') : at_;
      out.redirections.push_back({.operation = here ? "<<" : operation, .target = target});
      if (here) {
        Redirection& last = out.redirections.back();
        last.expands = target.find_first_of("'\"\\") == std::string::npos;
        last.document = std::make_shared<std::string>();
        std::erase_if(target, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
        waiting_.push_back({last.document, target, operation == std::string("<<-")});
      }
      return true;
    }
    return false;
  }

  std::optional<Assignment> assignment() {
    std::size_t end = at_;
    while (end < text_.size() && is_name(text_[end])) ++end;
    if (end == at_ || std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return std::nullopt;
    Assignment out;
    out.name = text_.substr(at_, end - at_);
    if (end < text_.size() && text_[end] == '[') {
      const std::size_t close = behind_brackets(text_, end, '[', ']');
      out.index = text_.substr(end + 1, std::max(close, end + 2) - end - 2);
      end = close;
    }
    out.appends = text_.compare(end, 2, "+=") == 0;
    if (!out.appends && text_.compare(end, 1, "=") != 0) return std::nullopt;
    at_ = end + (out.appends ? 2 : 1);
    if (at_ < text_.size() && text_[at_] == '(') {
      out.is_list = true, ++at_;
      for (lines(); at_ < text_.size() && text_[at_] != ')'; lines()) {
        std::string one = word();
        if (one.empty())
          ++at_;
        else
          out.list.push_back(std::move(one));
      }
      if (!next(")")) refuse("( without )");
    } else {
      out.value = word();
    }
    return out;
  }

  void simple(Command& out) {
    static const std::array declares{"export", "declare", "local", "readonly", "typeset"};
    bool assigns = true;
    for (blanks(); at_ < text_.size(); blanks()) {
      if (redirection(out)) continue;
      if (assigns)
        if (auto one = assignment()) {
          out.assignments.push_back(std::move(*one));
          continue;
        }
      if ((text_[at_] == '<' || text_[at_] == '>') && text_.compare(at_ + 1, 1, "(") == 0) {
        const std::size_t end = behind_brackets(text_, at_ + 1, '(', ')');
        out.words.push_back("$" + text_.substr(at_ + 1, end - at_ - 1)), at_ = end;
        continue;
      }
      if (out.words.size() == 1 && text_[at_] == '(' && out.assignments.empty()) {  // name() { ... }
        ++at_, blanks();
        if (!next(")")) refuse(shortly());
        out.name = out.words[0], out.words.clear();
        return function(out);
      }
      std::string one = word();
      if (one.empty()) break;
      assigns = out.words.empty() ? std::ranges::find(declares, one) != declares.end() : assigns && one[0] == '-';
      out.words.push_back(std::move(one));
    }
    if (out.words.empty() && out.assignments.empty() && out.redirections.empty())
      refuse(at_ < text_.size() ? shortly() : "the end of the file");
  }

  struct Waiting {
    std::shared_ptr<std::string> document;
    std::string end;
    bool strip;
  };
  const std::string& text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  mutable std::size_t counted_ = 0;
  mutable int line_ = 1;
  int depth_ = 0;
  std::vector<Waiting> waiting_;
};

}  // namespace

List parse(const std::string& text, const std::string& origin) { return Parser(text, origin).all(); }

}  // namespace wt::shell
