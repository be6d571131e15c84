#include "trainer/data/tokenizer_pool.hpp"

#include <utility>

namespace wt {

TokenizerPool::TokenizerPool(const TokenizerSettings& settings, int processes) {
  for (int i = 0; i < processes; ++i) processes_.push_back(std::make_unique<TokenizerProcess>(settings));
  for (const auto& process : processes_) process->facts();
  for (const auto& process : processes_) threads_.emplace_back([this, p = process.get()] { work(*p); });
}

TokenizerPool::~TokenizerPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::future<std::vector<TokenLists>> TokenizerPool::encode(std::vector<TokenizerText> texts) {
  Task task([texts = std::move(texts)](TokenizerProcess& process) { return process.encode(texts); });
  auto result = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return result;
}

void TokenizerPool::work(TokenizerProcess& process) {
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      if (ending_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task(process);
  }
}

}  // namespace wt
