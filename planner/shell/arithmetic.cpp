// $((...)) as bash computes it: whole numbers of 64 bits, variables by name.
#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <limits>

#include "planner/shell/interpreter.hpp"

namespace wt::shell {

class Arithmetic {
 public:
  Arithmetic(Interpreter& shell, std::string text, std::string& marks)
      : shell_(shell), text_(std::move(text)), marks_(marks) {}

  /// nullopt: it is not known.
  std::optional<std::int64_t> value() {
    const std::int64_t out = comma();
    blanks();
    if (at_ != text_.size()) known_ = false;
    return known_ ? std::optional(out) : std::nullopt;
  }

 private:
  using Number = std::int64_t;
  static Number wrapped(std::uint64_t value) { return static_cast<Number>(value); }
  static std::uint64_t bits(Number value) { return static_cast<std::uint64_t>(value); }

  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool next(const char* symbol, const char* unless_followed = "") {
    blanks();
    const std::size_t size = std::strlen(symbol);
    if (text_.compare(at_, size, symbol) != 0) return false;
    if (at_ + size < text_.size() && std::strchr(unless_followed, text_[at_ + size]) != nullptr &&
        *unless_followed != 0)
      return false;
    at_ += size;
    return true;
  }
  Number comma() {
    Number out = choice();
    while (next(",")) out = choice();
    return out;
  }
  Number choice() {
    if (++depth_ > 100) known_ = false, at_ = text_.size();
    const Number out = either();
    Number result = out;
    if (next("?")) {
      const Number yes = choice();
      if (!next(":")) known_ = false;
      const Number no = choice();
      result = out != 0 ? yes : no;
    }
    --depth_;
    return result;
  }
  Number either() {
    Number out = both();
    while (next("||")) {
      const Number right = both();
      out = out != 0 || right != 0 ? 1 : 0;
    }
    return out;
  }
  Number both() {
    Number out = bit_or();
    while (next("&&")) {
      const Number right = bit_or();
      out = out != 0 && right != 0 ? 1 : 0;
    }
    return out;
  }
  Number bit_or() {
    Number out = equal();
    while (true)
      if (next("|", "|"))
        out |= equal();
      else if (next("^"))
        out ^= equal();
      else if (next("&", "&"))
        out &= equal();
      else
        return out;
  }
  Number equal() {
    Number out = less();
    while (true)
      if (next("=="))
        out = out == less() ? 1 : 0;
      else if (next("!="))
        out = out != less() ? 1 : 0;
      else
        return out;
  }
  Number less() {
    Number out = shift();
    while (true)
      if (next("<="))
        out = out <= shift() ? 1 : 0;
      else if (next(">="))
        out = out >= shift() ? 1 : 0;
      else if (next("<", "<"))
        out = out < shift() ? 1 : 0;
      else if (next(">", ">"))
        out = out > shift() ? 1 : 0;
      else
        return out;
  }
  Number shift() {
    Number out = sum();
    while (true)
      if (next("<<"))
        out = wrapped(bits(out) << (bits(sum()) & 63U));
      else if (next(">>"))
        out >>= static_cast<int>(bits(sum()) & 63U);
      else
        return out;
  }
  Number sum() {
    Number out = product();
    while (true)
      if (next("+", "+"))
        out = wrapped(bits(out) + bits(product()));
      else if (next("-", "-"))
        out = wrapped(bits(out) - bits(product()));
      else
        return out;
  }
  Number product() {
    Number out = power();
    while (true)
      if (next("*", "*")) {
        out = wrapped(bits(out) * bits(power()));
      } else if (next("/") || next("%")) {
        const bool rest = text_[at_ - 1] == '%';
        const Number right = power();
        if (right == 0 || (right == -1 && out == std::numeric_limits<Number>::min()))
          known_ = false;
        else
          out = rest ? out % right : out / right;
      } else {
        return out;
      }
  }
  Number power() {
    const Number out = atom();
    if (!next("**")) return out;
    const Number exponent = power();
    Number result = 1;
    if (exponent < 0 || exponent > 64) known_ = false;
    for (Number i = 0; known_ && i < exponent; ++i) result = wrapped(bits(result) * bits(out));
    return result;
  }
  Number atom() {
    blanks();
    if (++depth_ > 100 || at_ >= text_.size()) {
      known_ = false, at_ = text_.size(), --depth_;
      return 0;
    }
    const Number out = atom_inside();
    --depth_;
    return out;
  }
  Number atom_inside() {
    if (next("(")) {
      const Number out = comma();
      if (!next(")")) known_ = false;
      return out;
    }
    if (next("!")) return atom() == 0 ? 1 : 0;
    if (next("~")) return ~atom();
    if (next("++") || next("--")) {
      const Number change = text_[at_ - 1] == '+' ? 1 : -1;
      const std::string name = word();
      const Number out = wrapped(bits(variable(name)) + bits(change));
      store(name, out);
      return out;
    }
    if (next("-")) return wrapped(0 - bits(atom()));
    if (next("+")) return atom();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return number();
    const std::string name = word();
    if (name.empty()) {
      known_ = false, at_ = text_.size();
      return 0;
    }
    const Number before = variable(name);
    if (next("++") || next("--")) {
      store(name, wrapped(bits(before) + bits(text_[at_ - 1] == '+' ? 1 : -1)));
      return before;
    }
    for (const char* operation : {"=", "+=", "-=", "*=", "/=", "%="}) {
      if (!next(operation, "=")) continue;
      known_ = known_ || *operation == '=';
      const Number right = choice();
      Number out = right;
      if (*operation == '+') out = wrapped(bits(before) + bits(right));
      if (*operation == '-') out = wrapped(bits(before) - bits(right));
      if (*operation == '*') out = wrapped(bits(before) * bits(right));
      if (*operation == '/' || *operation == '%') {
        if (right == 0 || right == -1)
          known_ = false;
        else
          out = *operation == '/' ? before / right : before % right;
      }
      store(name, out);
      return out;
    }
    return before;
  }
  Number number() {
    std::uint64_t base = 10, out = 0;
    if (text_[at_] == '0' && at_ + 1 < text_.size()) {
      if (std::tolower(static_cast<unsigned char>(text_[at_ + 1])) == 'x')
        base = 16, at_ += 2;
      else if (std::isdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0)
        base = 8;
    }
    for (; at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '#');
         ++at_) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '#' && base == 10 && out >= 2 && out <= 36) {
        base = out, out = 0;
        continue;
      }
      const std::uint64_t digit = std::isdigit(c) != 0   ? c - '0'
                                  : std::isalpha(c) != 0 ? static_cast<std::uint64_t>(std::tolower(c) - 'a' + 10)
                                                         : 99;
      if (digit >= base) known_ = false;
      out = out * base + digit;
    }
    if (at_ < text_.size() && text_[at_] == '.') known_ = false;
    return wrapped(out);
  }
  std::string word() {
    blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ < text_.size() && text_[at_] == '[' && at_ > begin) {
      const std::size_t close = text_.find(']', at_);
      at_ = close == std::string::npos ? text_.size() : close + 1;
    }
    return text_.substr(begin, at_ - begin);
  }
  Number variable(const std::string& name) {
    const std::size_t bracket = name.find('[');
    const std::string index = bracket == std::string::npos ? "" : name.substr(bracket + 1, name.size() - bracket - 2);
    const auto values = shell_.values_of(name.substr(0, bracket), index);
    if (!values || values->empty()) {
      known_ = false;
      return 0;
    }
    const std::string text = plain(values->front(), &marks_);
    if (has_unknown(text) || ++shell_.depth_ > 30) {
      known_ = false;
      return 0;
    }
    std::optional<Number> out = 0;
    if (text.find_first_not_of(" \t\n") != std::string::npos) out = Arithmetic(shell_, text, marks_).value();
    --shell_.depth_;
    known_ = known_ && out.has_value();
    return out.value_or(0);
  }
  void store(const std::string& name, Number value) {
    if (!is_name(name)) {
      known_ = false;
      return;
    }
    shell_.set(name, known_ ? fmt::format("{}", value) : unknown("$" + name));
  }

  Interpreter& shell_;
  std::string text_;
  std::string& marks_;
  std::size_t at_ = 0;
  bool known_ = true;
  int depth_ = 0;
};

std::string Interpreter::arithmetic(const std::string& text) {
  std::string marks;
  const std::string expanded = plain(expand_text(text), &marks);
  if (has_unknown(expanded)) return unknown("$((" + text + "))");
  step(1 + expanded.size() / 1000);
  std::string clean;
  for (const char c : expanded)
    if (c != '"' && c != '\'') clean += c;
  if (clean.find_first_not_of(" \t\n") == std::string::npos) return "0";
  const auto value = Arithmetic(*this, clean, marks).value();
  return value ? fmt::format("{}", *value) + marks : unknown("$((" + text + "))");
}

}  // namespace wt::shell
