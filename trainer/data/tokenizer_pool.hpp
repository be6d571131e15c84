// Several tokenizers in parallel, each with a process and a thread.
#pragma once
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/data/tokenizer_process.hpp"

namespace wt {

class TokenizerPool {
 public:
  /// Throws as TokenizerProcess does.
  TokenizerPool(const TokenizerSettings& settings, int processes);
  ~TokenizerPool();

  const TokenizerFacts& facts() { return processes_.front()->facts(); }
  std::size_t processes() const { return processes_.size(); }
  /// Runs on the first free process; get() throws what TokenizerProcess::encode throws. The destructor drops tasks that
  /// have not begun.
  std::future<std::vector<TokenLists>> encode(std::vector<TokenizerText> texts);

 private:
  using Task = std::packaged_task<std::vector<TokenLists>(TokenizerProcess&)>;
  void work(TokenizerProcess& process);

  std::vector<std::unique_ptr<TokenizerProcess>> processes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace wt
