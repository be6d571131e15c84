#include "sim/cluster/child.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <thread>

#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr unsigned kMostChildren = 16;  ///< at a time, because each has its own memory

void write_all(int file, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno != EINTR) _exit(3);  // the parent has ended
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
}

std::string read_all(int file) {
  std::string bytes;
  std::string block(1 << 16, '\0');
  for (;;) {
    const ssize_t got = ::read(file, block.data(), block.size());
    if (got == 0) return bytes;
    if (got < 0 && errno != EINTR) return bytes;
    if (got > 0) bytes.append(block.data(), static_cast<std::size_t>(got));
  }
}

/// First byte of the answer: 0 = a result follows, else an exit code and its message. noexcept: an exception must not
/// continue into the parent's code.
[[noreturn]] void child(int file, const std::function<std::string()>& work) noexcept {
  for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM})
    std::signal(number, SIG_DFL);        // the parent's handlers do not apply
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output is for results
  std::string answer(1, '\0');
  // A new thread has a heap of its own. In the parent's heap, malloc would consolidate free memory, and copy-on-write
  // would copy every page it touches.
  std::thread([&] {
    try {
      answer += work();
    } catch (const Error& error) {
      answer = static_cast<char>(error.exit_status()) + std::string(error.what());
    } catch (const std::exception& error) {
      answer = static_cast<char>(Code::runtime) + fmt::format("simulation: {}", error.what());
    }
  }).join();
  write_all(file, answer);
  _exit(0);  // no destructors: SimGrid's engine would warn about running activities
}

/// A running child and the pipe that its answer comes from.
struct Child {
  pid_t pid;
  int answer;
};

Child start(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw_runtime("simulation: no pipe: {}; raise the limit on open files", std::strerror(errno));
  std::fflush(nullptr);  // otherwise the child would write the buffered output again
  const pid_t pid = ::fork();
  if (pid < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw_runtime("simulation: cannot fork: {}; free memory or raise the limit on processes", std::strerror(errno));
  }
  if (pid == 0) {
    ::close(ends[0]);
    child(ends[1], work);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

/// Waits for the child's end and returns its answer.
std::string answer_of(const Child& child) {
  std::string answer = read_all(child.answer);
  ::close(child.answer);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty())
    throw_runtime("simulation: its process ended by {} {} without a result; what it said is on stderr",
                  WIFSIGNALED(status) ? "signal" : "exit status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  if (answer[0] != 0) throw Error(static_cast<Code>(answer[0]), answer.substr(1));
  return answer.substr(1);
}

}  // namespace

std::string run_in_child(const std::function<std::string()>& work) { return answer_of(start(work)); }

std::vector<std::string> run_in_children(const std::vector<std::function<std::string()>>& works,
                                         const std::function<void(std::size_t)>& done) {
  std::size_t most = std::clamp(std::thread::hardware_concurrency(), 1U, kMostChildren);
  std::deque<Child> running;
  std::vector<std::string> answers;
  std::exception_ptr error;  // the first error; children that are already started are still awaited
  while (answers.size() < works.size()) {
    try {
      while (!error && running.size() < most && answers.size() + running.size() < works.size())
        running.push_back(start(works[answers.size() + running.size()]));
    } catch (...) {
      if (running.empty())
        error = std::current_exception();
      else
        most = running.size();  // the system cannot start more
    }
    if (running.empty()) break;
    const Child first = running.front();
    running.pop_front();
    try {
      std::string answer = answer_of(first);
      if (error) continue;
      answers.push_back(std::move(answer));
      if (done) done(answers.size() - 1);
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
  return answers;
}

}  // namespace wt
