// What each rank publishes in its generation's store: a JSON document with its position, and a number that changes as
// long as the rank lives (trainer/communication/rank_watch.hpp).
#pragma once
#include <cstdint>
#include <string>

namespace c10d {
class Store;
}

namespace wt {

/// Seconds between two publications of a rank; more if many ranks share the store, which answers about 10^4 requests a
/// second.
double tick_s(std::int64_t world);
/// A rank counts as silent after this many ticks without a publication. On an overloaded machine a living thread can be
/// late by a second.
inline constexpr int kSilentTicks = 6;

std::string progress_key(std::int64_t rank);
/// A rank's last publication, only for comparison: it changes as long as the rank lives. Empty: nothing yet.
std::string last_progress(c10d::Store& store, std::int64_t rank);
/// The position of its main thread: "mb0.L1.dispatch.fwd of step 3". Empty: nothing yet.
std::string last_position(c10d::Store& store, std::int64_t rank);

}  // namespace wt
