// [ ... ], test and [[ ... ]], with the answer "unknown" where only a machine could tell.
#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "planner/shell/interpreter.hpp"

namespace wt::shell {
namespace {

Status opposite(Status status) {
  return status == Status::unknown ? status : status == Status::yes ? Status::no : Status::yes;
}
Status both(Status a, Status b) {
  if (a == Status::no || b == Status::no) return Status::no;
  return a == Status::yes ? b : b == Status::yes ? a : Status::unknown;
}
Status either(Status a, Status b) { return opposite(both(opposite(a), opposite(b))); }
Status of(bool yes) { return yes ? Status::yes : Status::no; }

bool is_operation(const std::string& word) {
  static const std::vector<std::string> all{"=",   "==",  "!=",  "<",   ">",   "=~",  "-eq", "-ne",
                                            "-lt", "-le", "-gt", "-ge", "-ot", "-nt", "-ef"};
  return std::ranges::find(all, word) != all.end();
}

std::optional<long long> number_of(const std::string& text) {
  char* end = nullptr;
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return std::nullopt;
  const long long out = std::strtoll(text.c_str() + first, &end, 10);
  while (*end == ' ') ++end;
  return *end == 0 ? std::optional(out) : std::nullopt;
}

Status one_operand(const std::string& operation, const std::string& text) {
  if (operation == "-z" || operation == "-n") {
    const std::string known = plain(text);
    if (has_unknown(text))
      return known.front() == '\x01' && known.back() == '\x02' && known.find('\x02') == known.size() - 1
                 ? Status::unknown
                 : of(operation == "-n");
    return of(known.empty() == (operation == "-z"));
  }
  return Status::unknown;  // files and terminals
}

}  // namespace

Status Interpreter::compare(const std::string& left, const std::string& operation, const std::string& right,
                            bool pattern) {
  std::string marks;
  const std::string a = plain(left, &marks), b = plain(right, &marks);
  for (const std::string& asked : fallbacks_in(marks))
    if (asked == "#") asked_.insert(asked);
  if (has_unknown(a) || has_unknown(b)) return Status::unknown;
  if (operation == "=" || operation == "==" || operation == "!=")
    return of((pattern ? matches(a, b) : a == b) == (operation != "!="));
  if (operation == "<") return of(a < b);
  if (operation == ">") return of(a > b);
  if (operation.size() != 3 || operation == "-ef") return Status::unknown;
  const auto x = number_of(a), y = number_of(b);
  if (!x || !y) return operation == "-ot" || operation == "-nt" ? Status::unknown : Status::no;
  if (operation == "-eq") return of(*x == *y);
  if (operation == "-ne") return of(*x != *y);
  if (operation == "-lt") return of(*x < *y);
  if (operation == "-le") return of(*x <= *y);
  if (operation == "-gt") return of(*x > *y);
  return operation == "-ge" ? of(*x >= *y) : Status::unknown;
}

Status Interpreter::test(Words words, int depth) {
  constexpr int kDeepest = 50;
  if (words.empty()) return Status::no;
  if (depth > kDeepest) return Status::unknown;
  const auto part = [&](std::size_t from, std::size_t to) {
    return Words(words.begin() + static_cast<std::ptrdiff_t>(from), words.begin() + static_cast<std::ptrdiff_t>(to));
  };
  if (words.size() == 3 && is_operation(words[1])) return compare(words[0], words[1], words[2], false);
  for (const char* joins : {"-o", "-a"})
    for (std::size_t i = 1; i + 1 < words.size(); ++i)
      if (words[i] == joins && words.size() > 3) {
        const Status left = test(part(0, i), depth + 1), right = test(part(i + 1, words.size()), depth + 1);
        return joins[1] == 'o' ? either(left, right) : both(left, right);
      }
  if (words.front() == "!") return opposite(test(part(1, words.size()), depth + 1));
  if (words.size() > 2 && words.front() == "(" && words.back() == ")")
    return test(part(1, words.size() - 1), depth + 1);
  if (words.size() == 1) return one_operand("-n", words[0]);
  if (words.size() == 2) {
    if (words[0] == "-v") return state_.variables.contains(plain(words[1])) ? Status::yes : Status::unknown;
    return one_operand(words[0], words[1]);
  }
  return Status::unknown;
}

class DoubleTest {
 public:
  DoubleTest(Interpreter& shell, const std::string& text) : shell_(shell), text_(text) {}
  Status value() {
    const Status out = any();
    return at_end() ? out : Status::unknown;
  }

 private:
  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool at_end() {
    blanks();
    return at_ >= text_.size();
  }
  bool next(const std::string& symbol) {
    blanks();
    if (text_.compare(at_, symbol.size(), symbol) != 0) return false;
    at_ += symbol.size();
    return true;
  }
  std::string word() {
    blanks();
    const std::size_t begin = at_;
    int open = 0;
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) == 0) {
      const char c = text_[at_];
      if (c == '(') ++open;
      if (c == ')' && open-- == 0) break;
      if ((c == '&' || c == '|') && open == 0 && at_ + 1 < text_.size() && text_[at_ + 1] == c) break;
      at_ = c == '\\'                                           ? std::min(at_ + 2, text_.size())
            : std::string("$'\"`").find(c) != std::string::npos ? behind_part(text_, at_)
                                                                : at_ + 1;
    }
    return text_.substr(begin, at_ - begin);
  }
  Status any() {
    Status out = all();
    while (next("||")) out = either(out, all());
    return out;
  }
  Status all() {
    Status out = one();
    while (next("&&")) out = both(out, one());
    return out;
  }
  Status one() {
    if (++depth_ > 100) return at_ = text_.size(), Status::unknown;
    const Status out = inside();
    --depth_;
    return out;
  }
  Status inside() {
    blanks();
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      const Status out = any();
      return next(")") ? out : Status::unknown;
    }
    const std::string first = word();
    if (first.empty()) return at_ = text_.size(), Status::unknown;
    if (first == "!") return opposite(one());
    if (first.size() == 2 && first[0] == '-' && std::isalpha(static_cast<unsigned char>(first[1])) != 0) {
      const std::string operand = word();
      if (first == "-v") return shell_.state_.variables.contains(operand) ? Status::yes : Status::unknown;
      return one_operand(first, shell_.expand_text(operand));
    }
    const std::size_t before = at_;
    const std::string operation = word();
    if (!is_operation(operation)) {
      at_ = before;
      return one_operand("-n", shell_.expand_text(first));
    }
    const std::string left = shell_.expand_text(first), written = word();
    if (operation == "=~") return expression(left, shell_.expand_text(written));
    const bool equality = operation == "=" || operation == "==" || operation == "!=";
    if (operation[0] == '-') return shell_.compare(number(left), operation, number(shell_.expand_text(written)), false);
    return shell_.compare(left, operation, equality ? shell_.expand_pattern(written) : shell_.expand_text(written),
                          equality);
  }
  std::string number(const std::string& text) { return has_unknown(text) ? text : shell_.arithmetic(text); }
  /// Only plain words, at an end if they say so, and digits alone.
  static Status expression(const std::string& text, std::string pattern) {
    if (has_unknown(text) || has_unknown(pattern)) return Status::unknown;
    const std::string value = plain(text);
    pattern = plain(pattern);
    if (pattern == "^[0-9]+$") return of(!value.empty() && value.find_first_not_of("0123456789") == std::string::npos);
    const bool front = pattern.starts_with("^"), back = pattern.ends_with("$");
    const std::string word = pattern.substr(front ? 1 : 0, pattern.size() - (front ? 1 : 0) - (back ? 1 : 0));
    if (word.find_first_of("^$.[]()*+?{}|\\") != std::string::npos) return Status::unknown;
    if (front && back) return of(value == word);
    return of(front ? value.starts_with(word) : back ? value.ends_with(word) : value.find(word) != std::string::npos);
  }

  Interpreter& shell_;
  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Status Interpreter::double_test(const std::string& text) { return DoubleTest(*this, text).value(); }

}  // namespace wt::shell
