// The documents that `windtunnel validate --json` prints of the measurements in the tree, each command run once a
// process.
#pragma once
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/windtunnel.hpp"

namespace wt::test {

using nlohmann::json;

inline Ended run(const std::string& arguments) { return windtunnel("validate " + arguments); }

/// A slow machine says its progress on stderr first, which comes in the same text.
inline json json_in(const std::string& text) {
  REQUIRE(text.find('{') != std::string::npos);
  return json::parse(text.substr(text.find('{')));
}

inline const json& document(const std::string& subject, const std::string& file, const std::string& flags = "") {
  static std::map<std::string, json> known;
  const std::string arguments = subject + (file.empty() ? "" : " configs/measurements/" + file) + " --json" + flags;
  if (!known.count(arguments)) {
    const auto [status, text] = run(arguments);
    INFO(text.substr(0, 500));
    REQUIRE(status == 0);
    known[arguments] = json_in(text);
  }
  return known.at(arguments);
}

inline const json& kernels() { return document("kernels", "kernel_times.csv"); }
inline const json& collectives() { return document("collectives", "collectives.csv"); }
inline const json& runs() { return document("runs", ""); }  // all tables of training runs
inline const json& vtrain() { return document("runs", "simulator_tables.csv"); }

/// Of a list of parts (regimes, families) the one of that name.
inline const json& part(const json& list, const std::string& key, const std::string& name) {
  for (const json& each : list)
    if (each.at(key) == name) return each;
  FAIL("no " << key << " '" << name << "'");
  return list;
}
inline const json& routing() { return document("routing", "routing_step_times.csv"); }
inline const json& memory() { return document("memory", "training_runs.csv"); }

}  // namespace wt::test
