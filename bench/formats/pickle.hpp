// Python's pickles of plain data: dicts, lists, tuples, texts, numbers, booleans and None. A pickle is a program that
// may call any function; here nothing is called. An opcode that names, makes or calls anything else is an error. Source
// of the opcodes: pickletools of Python's library; protocols 2 to 5.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wt {

struct PickleValue {
  enum class Kind : std::uint8_t { none, boolean, whole, real, text, list, dict };  ///< a tuple is a list
  Kind kind = Kind::none;
  std::int64_t whole = 0;  ///< of booleans, too
  double real = 0;
  std::string_view text = {};  ///< in the pickle's own bytes
  std::vector<const PickleValue*> items =
      {};  ///< of a dict: keys and values in turns; one value may stand in many places

  /// Under a key of a dict; null where there is none.
  const PickleValue* at(std::string_view key) const;
  /// The same, where it is of that kind.
  const PickleValue* at(std::string_view key, Kind of) const;
};

class Pickle {
 public:
  /// `bytes` must live as long. Throws Error{usage} with `origin`: another opcode than those of plain data, bytes that
  /// are cut or make no value, more than 30 million values, or twice as many items of lists and dicts.
  Pickle(std::string_view bytes, const std::string& origin);
  const PickleValue& root() const { return *root_; }

 private:
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
};

}  // namespace wt
