// Constants of collective times, fitted to published measurements, as plain data. sim/fit makes them;
// configs/constants/collectives.json keeps them.
#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/cost/collectives/link_constants.hpp"

namespace wt {

/// Constants of one form of collective, inside a node or over nodes.
struct FormConstants {
  CollectiveForm form = CollectiveForm::reduce;
  bool many = false;  ///< over several nodes
  LinkConstants links;
  std::array<double, 2> spread{};          ///< relative half width of the 80 % interval: small messages, large ones
  std::size_t points = 0;                  ///< number of fitted measurements
  std::set<std::string> small_transports;  ///< with measured small messages
};

struct CollectiveConstants {
  std::vector<FormConstants> forms;
  std::map<std::string, double> largest_bytes;  ///< largest measured message, by fabric
  std::map<std::string, std::string> link_of;   ///< by fabric shared with other jobs: link whose constants it has
};

void to_json(nlohmann::json& json, const CollectiveConstants& constants);
void from_json(const nlohmann::json& json, CollectiveConstants& constants);

}  // namespace wt
