#include "trainer/data/tokenizer_process.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/process.hpp"
#include "trainer/data/tokenize_script.hpp"

namespace wt {
namespace {

constexpr time_t kPatience_s = 600;  // a batch takes a fraction of a second, longer on a machine that swaps

void append_count(std::string& bytes, std::size_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
}

/// Parses an answer; a malformed one is the process's fault.
class Answer {
 public:
  Answer(std::string_view bytes, const std::string& who) : bytes_(bytes), who_(who) {}
  std::uint32_t count() {
    std::uint32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(std::size_t size) {
    if (size > bytes_.size())
      throw_runtime("{}: found an answer that is cut off, allowed is what trainer/data/tokenize.py says; run again",
                    who_);
    const std::string_view part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }

 private:
  std::string_view bytes_;
  std::string who_;
};

pid_t start_interpreter(const std::string& interpreter, const std::string& settings, int socket) {
  try {
    return start_process({.words = {interpreter, "-c", std::string(assets::kTokenizeScript), settings},
                          .input = socket,
                          .output = socket});
  } catch (const Error& e) {
    throw_usage(
        "{}; allowed is a Python 3 with the package tokenizers; install python3, or name one in WINDTUNNEL_PYTHON",
        e.what());
  }
}

std::vector<std::uint32_t> ids_of(const nlohmann::json& list) { return list.get<std::vector<std::uint32_t>>(); }

}  // namespace

TokenizerProcess::TokenizerProcess(const TokenizerSettings& settings) : settings_(settings) {
  const char* const chosen = std::getenv("WINDTUNNEL_PYTHON");
  interpreter_ = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw_runtime("tokenizer: no socket could be made: {}", std::strerror(errno));
  socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  const timeval patience = {kPatience_s, 0};
  ::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const nlohmann::json words = {
      {"tokenizer", settings.path}, {"bos_text", settings.bos_text}, {"eos_text", settings.eos_text}};
  pid_ = start_interpreter(interpreter_, words.dump(-1, ' ', true), theirs.get());
}

TokenizerProcess::~TokenizerProcess() {
  socket_.close();
  if (pid_ >= 0) kill_process(pid_);  // it holds nothing that could be lost
}

void TokenizerProcess::lost(bool closed, const std::string& doing) {
  // Its end of the socket closes before it can be waited for: a moment, on a machine with nothing else to do.
  if (pid_ > 0 && closed)
    if (const auto end = wait_for_end(pid_, 60))
      pid_ = -1, ended_ = (WIFSIGNALED(*end) ? "was ended by " : "ended with ") + cause_of(*end);
  throw_runtime("tokenizer {}: its process ({}) {} {}; is memory short? Nothing was written; run again", settings_.path,
                interpreter_, ended_, doing);
}

void TokenizerProcess::read_all(char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::recv(socket_.get(), data, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) lost(count == 0 || errno != EAGAIN, "before its answer was whole");
    data += count;
    size -= static_cast<std::size_t>(count);
  }
}

std::string TokenizerProcess::receive() {
  std::uint32_t size = 0;
  read_all(reinterpret_cast<char*>(&size), sizeof size);
  std::string message(size, '\0');
  read_all(message.data(), size);
  return message;
}

void TokenizerProcess::send(std::string_view message) {
  while (!message.empty()) {
    const ssize_t count = ::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) lost(count == 0 || errno != EAGAIN, "before it had read its text");
    message.remove_prefix(static_cast<std::size_t>(count));
  }
}

const TokenizerFacts& TokenizerProcess::facts() {
  if (facts_) return *facts_;
  const auto about = nlohmann::json::parse(receive(), nullptr, false);
  if (about.is_object() && about.contains("error")) throw_usage("--tokenizer: {}", about["error"].get<std::string>());
  TokenizerFacts facts;
  facts.vocabulary = about.at("vocabulary");
  facts.prefix = ids_of(about.at("prefix"));
  facts.suffix = ids_of(about.at("suffix"));
  facts.bos = ids_of(about.at("bos"));
  facts.eos = ids_of(about.at("eos"));
  facts.chat_template = about.at("chat_template");
  if (!about.at("bos_id").is_null()) facts.bos_id = about["bos_id"].get<std::uint32_t>();
  return facts_.emplace(std::move(facts));
}

std::string TokenizerProcess::ask(std::string question, const std::vector<TokenizerText>& texts) {
  facts();
  if (question.size() > std::numeric_limits<std::uint32_t>::max())
    throw_usage("{}: found {} bytes to tokenize at once, allowed are less than 2^32; split the document",
                texts.empty() ? "tokenizer" : texts.front().place, question.size());
  std::string head;
  append_count(head, question.size());
  send(head);
  send(question);
  std::string said = receive();
  Answer answer(said, "tokenizer " + settings_.path);
  if (answer.take(1) == "O") return said;
  const std::uint32_t at = answer.count();
  throw_usage("{}: {}; fix it or leave it out", at < texts.size() ? texts[at].place : "--tokenizer",
              said.substr(1 + sizeof at));
}

std::vector<TokenLists> TokenizerProcess::encode(const std::vector<TokenizerText>& texts) {
  std::string question = "E";
  for (const TokenizerText& text : texts) {
    question += static_cast<char>(text.kind);
    append_count(question, text.text.size());
    question += text.text;
  }
  const std::string said = ask(std::move(question), texts);
  Answer answer(said, "tokenizer " + settings_.path);
  answer.take(1);
  std::vector<TokenLists> all(texts.size());
  for (TokenLists& lists : all) {
    lists.resize(answer.count());
    for (auto& ids : lists) {
      const std::string_view bytes = answer.take(std::size_t{4} * answer.count());
      ids.resize(bytes.size() / 4);
      if (!bytes.empty()) std::memcpy(ids.data(), bytes.data(), bytes.size());
    }
  }
  return all;
}

std::vector<std::string> TokenizerProcess::decode(const std::vector<std::vector<std::int32_t>>& samples) {
  std::string question = "D";
  for (const auto& ids : samples) {
    append_count(question, ids.size());
    question.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int32_t));
  }
  const std::string said = ask(std::move(question), {});
  Answer answer(said, "tokenizer " + settings_.path);
  answer.take(1);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    answer.count();  // one list
    const std::uint32_t size = answer.count();
    texts.emplace_back(answer.take(size));
  }
  return texts;
}

}  // namespace wt
