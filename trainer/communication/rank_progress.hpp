// What each rank publishes in its generation's store, a JSON document: where it is, and a number that changes as long
// as it lives (trainer/communication/rank_watch.hpp).
#pragma once
#include <cstdint>
#include <string>

namespace c10d {
class Store;
}

namespace wt {

/// Between two publications of a rank, seconds; more where many ranks share the store, which answers some 10^4 requests
/// a second.
double tick_s(std::int64_t world);
/// A rank is silent when it publishes nothing for so many ticks: on a machine with more to do than cores, a thread that
/// lives can be late by a second.
inline constexpr int kSilentTicks = 6;

std::string progress_key(std::int64_t rank);
/// What a rank has published last, for comparison alone: it changes as long as the rank lives. Empty: nothing yet.
std::string last_progress(c10d::Store& store, std::int64_t rank);
/// Where its main thread is: "mb0.L1.dispatch.fwd of step 3". Empty: nothing yet.
std::string last_position(c10d::Store& store, std::int64_t rank);

}  // namespace wt
