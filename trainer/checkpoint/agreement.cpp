#include "trainer/checkpoint/agreement.hpp"

#include "configs/base/error.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

// The first character of a verdict.
constexpr char kJudged = '=', kThrew = '!';

}  // namespace

std::string agree(Communicators& communicators, std::int64_t readers, const std::string& about, const std::string& own,
                  const std::function<std::string(const std::vector<std::string>&)>& judge) {
  SharedStore& store = communicators.store();
  const auto key = [&](const std::string& who) { return fmt::format("resume/{}/{}", about, who); };
  if (communicators.rank() < readers) store.set(key(std::to_string(communicators.rank())), own);
  if (communicators.rank() == 0) {
    std::vector<std::string> results;
    for (std::int64_t r = 0; r < readers; ++r) results.push_back(wait_for(store, key(std::to_string(r))));
    try {
      store.set(key("verdict"), kJudged + judge(results));
    } catch (const std::exception& e) {
      store.set(key("verdict"), kThrew + std::string(e.what()));  // else the others wait for a rank that has ended
      throw;
    }
  }
  const std::string verdict = wait_for(store, key("verdict"));
  if (verdict.front() == kThrew) throw_runtime("{}", verdict.substr(1));
  return verdict.substr(1);
}

}  // namespace wt
