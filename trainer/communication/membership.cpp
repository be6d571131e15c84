#include "trainer/communication/membership.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/pch.hpp"

namespace wt {
namespace {

using nlohmann::json;

std::string key_after(int generation) { return fmt::format("windtunnel/after/{}", generation); }

constexpr const char* kReady = "membership/ready";
constexpr const char* kTraining = "membership/training";
constexpr const char* kStepsDone = "membership/steps_done";

}  // namespace

void publish_membership(c10d::Store& launch, int generation, const Membership& next) {
  launch.set(key_after(generation),
             json{{"generation", next.generation}, {"processes", next.processes}, {"planned", next.planned}}.dump());
}

std::optional<Membership> membership_after(c10d::Store& launch, int generation) {
  if (!launch.check({key_after(generation)})) return std::nullopt;
  const json found = json::parse(launch.get_to_str(key_after(generation)));
  return Membership{found.at("generation"), found.at("processes"), found.at("planned")};
}

std::optional<RankEnvironment> environment_in(const Membership& next, RankEnvironment now) {
  const auto own = std::ranges::find(next.processes, std::int64_t{getpid()});
  if (own == next.processes.end()) return std::nullopt;
  now.rank = own - next.processes.begin();
  now.world = static_cast<std::int64_t>(next.processes.size());
  now.restart_count = next.generation;
  now.joins = false;
  return now;
}

void note_ready(c10d::Store& of_generation) { of_generation.add(kReady, 1); }
std::int64_t ready_ranks(c10d::Store& of_generation) { return of_generation.add(kReady, 0); }

void note_training(c10d::Store& of_generation, std::int64_t steps_done) {
  of_generation.set(kStepsDone, std::to_string(steps_done));
  of_generation.add(kTraining, 1);
}

InTraining in_training(c10d::Store& of_generation) {
  InTraining out{of_generation.add(kTraining, 0), 0};
  if (out.ranks > 0) out.steps_done = std::stoll(of_generation.get_to_str(kStepsDone));
  return out;
}

}  // namespace wt
