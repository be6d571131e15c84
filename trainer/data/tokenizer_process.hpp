// One Hugging Face tokenizer in a Python process (tokenize.py, which describes the protocol). The interpreter is
// $WINDTUNNEL_PYTHON or python3; it needs the PyPI package `tokenizers`, and jinja2 for chat templates. Code in the
// tokenizer's folder is not run; templates run in jinja2's sandbox.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/base/descriptor.hpp"

namespace wt {

struct TokenizerSettings {
  std::string path;                ///< tokenizer.json or the folder that holds it
  std::string bos_text, eos_text;  ///< tokenized without special tokens
};

struct TokenizerFacts {
  std::int64_t vocabulary = 0;                ///< the largest id + 1
  std::vector<std::uint32_t> prefix, suffix;  ///< special tokens that it adds around a text
  std::vector<std::uint32_t> bos, eos;        ///< tokens of the settings' texts
  bool chat_template = false;                 ///< it has its own template
  std::optional<std::uint32_t> bos_id;        ///< its begin-of-text token
};

struct TokenizerText {
  enum class Kind : std::uint8_t {
    plain = 0,
    special = 1,       ///< with the tokenizer's special tokens around it
    conversation = 2,  ///< JSON list of messages, formatted by the tokenizer's chat template
  } kind = Kind::plain;
  std::string text;
  std::string place;  ///< for errors
};
/// One list for a text; for a conversation two per message of the assistant: the context, and the answer.
using TokenLists = std::vector<std::vector<std::uint32_t>>;

class TokenizerProcess {
 public:
  /// Starts the process; facts() waits until it has loaded the tokenizer. Throws Error{usage} without an interpreter.
  explicit TokenizerProcess(const TokenizerSettings& settings);
  /// Ends the process.
  ~TokenizerProcess();

  /// Throws Error{usage}: `tokenizers` is not installed, or the file is missing or not a tokenizer. Error{runtime}: the
  /// process ended.
  const TokenizerFacts& facts();
  /// Throws Error{usage} with the place of a text that is not UTF-8 or does not fit the chat template, Error{runtime}
  /// if the process ended or did not answer for ten minutes.
  std::vector<TokenLists> encode(const std::vector<TokenizerText>& texts);
  std::vector<std::string> decode(const std::vector<std::vector<std::int32_t>>& samples);
  pid_t pid() const { return pid_; }

 private:
  std::string receive();
  void send(std::string_view message);
  void read_all(char* data, std::size_t size);
  std::string ask(std::string question, const std::vector<TokenizerText>& texts);
  [[noreturn]] void lost(bool closed, const std::string& doing);

  TokenizerSettings settings_;
  std::string interpreter_, ended_ = "did not answer";  ///< how it ended, for this and later calls
  pid_t pid_ = -1;
  Descriptor socket_;
  std::optional<TokenizerFacts> facts_;
};

}  // namespace wt
