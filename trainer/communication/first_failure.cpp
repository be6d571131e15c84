#include "trainer/communication/first_failure.hpp"

#include <nlohmann/json.hpp>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using nlohmann::json;

// Keys. `claims`, `speakers` and `settled` are counters.
constexpr const char* kFailure = "failure";
constexpr const char* kSpoken = "failure/spoken";

/// Time for rank 0 to report a usage error that it has found as well.
constexpr double kRankZeroFirst_s = 1.0;
constexpr double kSpeakerMayTake_s = 3.0;
constexpr double kPause_s = 0.01;

}  // namespace

void print(const Failure& failure) {
  const bool says_who = failure.rank == 0 || failure.text.starts_with("rank ");
  print_error("windtunnel: {}{}\n", says_who ? "" : fmt::format("rank {}: ", failure.rank), failure.text);
  std::fflush(stderr);  // the process ends without flushing it
}

std::optional<Failure> first_failure(c10d::Store& store) {
  if (!store.check({kFailure})) return std::nullopt;
  const json found = json::parse(store.get_to_str(kFailure));
  return Failure{found.at("rank"), found.at("status"), found.at("text"), found.at("missed")};
}

Failure settle_failure(c10d::Store& store, const Failure& own) {
  const bool first = store.add("failure/claims", 1) == 1;
  if (first)
    // A message may quote text that is not UTF-8.
    store.set(kFailure,
              json{{"rank", own.rank}, {"status", own.status}, {"text", own.text}, {"missed", own.missed}}.dump(
                  -1, ' ', false, json::error_handler_t::replace));
  const bool there = wait_until(kSpeakerMayTake_s, kPause_s, [&] { return store.check({kFailure}); });
  const Failure cause = there ? *first_failure(store) : own;
  const auto spoken = [&] { return store.check({kSpoken}); };
  if (first && own.rank != 0 && own.status == static_cast<int>(Code::usage))
    wait_until(kRankZeroFirst_s, kPause_s, spoken);
  if ((first || own.rank == 0) && store.add("failure/speakers", 1) == 1) {
    print(cause);
    store.set(kSpoken, std::string("1"));
  } else {
    wait_until(kSpeakerMayTake_s, kPause_s, spoken);
  }
  store.add("failure/settled", 1);
  return cause;
}

void wait_until_settled(c10d::Store& store, std::int64_t others, double at_most_s) {
  wait_until(at_most_s, kPause_s, [&] { return store.add("failure/settled", 0) > others; });
}

}  // namespace wt
