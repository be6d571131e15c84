#include "trainer/communication/generation.hpp"

#include <random>
#include <vector>

#include "trainer/pch.hpp"

namespace wt {
namespace {

/// Interval between checks for arrivals; a check sends two requests per rank.
constexpr double kArrivalLook_s = 0.02;

std::string arrival_key(std::int64_t rank) { return fmt::format("windtunnel/arrived/{}", rank); }
std::string answer_key(const std::string& name) { return "windtunnel/generation/" + name; }
std::string joined_key(int generation) { return store_prefix(generation) + "/joined"; }

/// A name that no earlier process has used in this store.
std::string new_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

std::string store_prefix(int generation) { return fmt::format("windtunnel/{}", generation); }

int open_generation(c10d::Store& store) { return static_cast<int>(store.add("windtunnel/generations", 1)) - 1; }

void answer_arrivals(c10d::Store& store, std::int64_t world, int generation, const std::function<bool(double)>& sleep) {
  // An arrival may be a leftover of an earlier generation: the rank is answered again under its new name.
  std::vector<std::string> answered(static_cast<std::size_t>(world));
  while (store.add(joined_key(generation), 0) < world - 1) {
    for (std::int64_t rank = 1; rank < world; ++rank) {
      if (!store.check({arrival_key(rank)})) continue;
      const std::string name = store.get_to_str(arrival_key(rank));
      if (std::exchange(answered[static_cast<std::size_t>(rank)], name) != name)
        store.set(answer_key(name), std::to_string(generation));
    }
    if (!sleep(kArrivalLook_s)) return;
  }
}

int ask_generation(c10d::Store& store, std::int64_t rank) {
  const std::string name = new_name();
  store.set(arrival_key(rank), name);
  const int generation = std::stoi(store.get_to_str(answer_key(name)));
  store.add(joined_key(generation), 1);
  return generation;
}

}  // namespace wt
