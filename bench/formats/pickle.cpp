#include "bench/formats/pickle.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr std::size_t kMostValues = 30'000'000;

/// Python's stack machine, without what calls.
class Machine {
  using enum PickleValue::Kind;

 public:
  Machine(std::string_view bytes, const std::string& origin, std::deque<PickleValue>& values)
      : bytes_(bytes), origin_(origin), values_(values) {}

  const PickleValue* run() {
    for (;;) {
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') return stack_.size() == 1 ? stack_[0] : fail("no single value at its end");
      step(opcode);
      if (std::max({values_.size(), memo_.size(), stack_.size(), marks_.size(), items_ / 2}) > kMostValues)
        fail(fmt::format("more than {} values", kMostValues).c_str());
    }
  }

 private:
  const PickleValue* fail(const char* found) const {
    throw_usage("{}: byte {}: found {}; needs a pickle of plain data, whole", origin_, at_, found);
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("the end of the file inside a value");
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  /// Little-endian.
  std::uint64_t number(std::size_t count) {
    std::uint64_t out = 0;
    const std::string_view in = take(count);
    for (std::size_t i = 0; i < count; ++i) out |= std::uint64_t{static_cast<unsigned char>(in[i])} << 8 * i;
    return out;
  }

  PickleValue& push(PickleValue::Kind kind) {
    stack_.push_back(&values_.emplace_back());
    stack_.back()->kind = kind;
    return *stack_.back();
  }
  void push_whole(std::int64_t value, PickleValue::Kind kind = whole) { push(kind).whole = value; }
  void push_text(std::uint64_t length) {
    const std::string_view text = take(length);
    push(PickleValue::Kind::text).text = text;
  }
  PickleValue* top() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back())) fail("an empty stack");
    return stack_.back();
  }
  PickleValue* pop() {
    PickleValue* const out = top();
    stack_.pop_back();
    return out;
  }
  /// The values since the last mark.
  std::vector<const PickleValue*> pop_marked() {
    if (marks_.empty()) fail("no mark");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const PickleValue*> out(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return out;
  }
  std::vector<const PickleValue*> pop_last(std::size_t count) {
    std::vector<const PickleValue*> out(count);
    for (std::size_t i = count; i-- > 0;) out[i] = pop();
    return out;
  }
  void add(const std::vector<const PickleValue*>& items, PickleValue::Kind to) {
    PickleValue* const into = top();
    if (into->kind != to) fail("items of something else than a list or dict");
    if (to == dict && items.size() % 2 != 0) fail("a key without a value");
    into->items.insert(into->items.end(), items.begin(), items.end());
    items_ += items.size();
  }
  void make(const std::vector<const PickleValue*>& items, PickleValue::Kind kind) {
    push(kind);
    add(items, kind);
  }
  void keep(std::uint64_t as) { memo_[as] = top(); }
  void get(std::uint64_t as) {
    const auto kept = memo_.find(as);
    if (kept == memo_.end()) fail("a value that was not kept");
    stack_.push_back(kept->second);
  }

  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const auto version = number(1); version < 2 || version > 5) fail("another protocol than 2 to 5");
        return;
      case 0x95:  // FRAME
        take(8);
        return;
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return;
      case 'N':  // NONE
        push(none);
        return;
      case 0x88:  // NEWTRUE
        push_whole(1, boolean);
        return;
      case 0x89:  // NEWFALSE
        push_whole(0, boolean);
        return;
      case 'K':  // BININT1
        push_whole(static_cast<std::int64_t>(number(1)));
        return;
      case 'M':  // BININT2
        push_whole(static_cast<std::int64_t>(number(2)));
        return;
      case 'J':  // BININT
        push_whole(static_cast<std::int32_t>(number(4)));
        return;
      case 0x8a:  // LONG1
        push_long(number(1));
        return;
      case 'G':  // BINFLOAT
        push(real).real = std::bit_cast<double>(swapped(number(8)));
        return;
      case 'X':  // BINUNICODE
        push_text(number(4));
        return;
      case 0x8c:  // SHORT_BINUNICODE
        push_text(number(1));
        return;
      case 0x8d:  // BINUNICODE8
        push_text(number(8));
        return;
      case ']':  // EMPTY_LIST, EMPTY_TUPLE
      case ')':
        push(list);
        return;
      case '}':  // EMPTY_DICT
        push(dict);
        return;
      case 'l':  // LIST, TUPLE
      case 't':
        make(pop_marked(), list);
        return;
      case 'd':  // DICT
        make(pop_marked(), dict);
        return;
      case 0x85:  // TUPLE1
        make(pop_last(1), list);
        return;
      case 0x86:  // TUPLE2
        make(pop_last(2), list);
        return;
      case 0x87:  // TUPLE3
        make(pop_last(3), list);
        return;
      case 'a': {
        const auto item = pop_last(1);
        add(item, list);
        return;
      }  // APPEND
      case 'e': {
        const auto items = pop_marked();
        add(items, list);
        return;
      }  // APPENDS
      case 's': {
        const auto pair = pop_last(2);
        add(pair, dict);
        return;
      }  // SETITEM
      case 'u': {
        const auto pairs = pop_marked();
        add(pairs, dict);
        return;
      }           // SETITEMS
      case 0x94:  // MEMOIZE
        keep(memo_.size());
        return;
      case 'q':  // BINPUT
        keep(number(1));
        return;
      case 'r':  // LONG_BINPUT
        keep(number(4));
        return;
      case 'h':  // BINGET
        get(number(1));
        return;
      case 'j':  // LONG_BINGET
        get(number(4));
        return;
      default:
        fail(fmt::format("opcode 0x{:02x}, which is not of plain data: it may run code", opcode).c_str());
    }
  }

  void push_long(std::uint64_t length) {
    const std::string_view bytes = take(length);
    const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80u) != 0;
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::uint64_t byte = static_cast<unsigned char>(bytes[i]);
      if (i >= 8 && byte != 0) fail("an integer of more than 64 bits");  // 0: the sign of an unsigned one
      if (i < 8) value = (value & ~(std::uint64_t{0xff} << 8 * i)) | byte << 8 * i;
    }
    push_whole(static_cast<std::int64_t>(value));
  }

  static std::uint64_t swapped(std::uint64_t value) {
    std::uint64_t out = 0;
    for (int i = 0; i < 8; ++i) out = out << 8 | (value >> 8 * i & 0xff);
    return out;
  }

  std::string_view bytes_;
  const std::string& origin_;
  std::deque<PickleValue>& values_;
  std::uint64_t at_ = 0;
  std::size_t items_ = 0;  ///< of all lists and dicts; a value of a dict counts as two, with its key
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

}  // namespace

const PickleValue* PickleValue::at(std::string_view key) const {
  for (std::size_t i = 0; kind == Kind::dict && i + 1 < items.size(); i += 2)
    if (items[i]->kind == Kind::text && items[i]->text == key) return items[i + 1];
  return nullptr;
}

const PickleValue* PickleValue::at(std::string_view key, Kind of) const {
  const PickleValue* const found = at(key);
  return found != nullptr && found->kind == of ? found : nullptr;
}

Pickle::Pickle(std::string_view bytes, const std::string& origin) { root_ = Machine(bytes, origin, values_).run(); }

}  // namespace wt
