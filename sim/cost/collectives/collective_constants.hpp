// What the times of collectives are made of: constants that were fitted to published measurements, as data. They are
// made by sim/fit and kept in configs/constants/collectives.json.
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

/// One form of collective, inside a node or over nodes.
struct FormConstants {
  CollectiveForm form = CollectiveForm::reduce;
  bool many = false;  ///< over nodes
  LinkConstants links;
  std::array<double, 2> spread{};          ///< half width of the 80 % interval: small messages, large ones
  std::size_t points = 0;                  ///< measurements behind it
  std::set<std::string> small_transports;  ///< over which small messages were measured
};

struct CollectiveConstants {
  std::vector<FormConstants> forms;
  std::map<std::string, double> largest_bytes;  ///< measured on a fabric
  std::map<std::string, std::string> link_of;   ///< of a fabric that other jobs share
};

void to_json(nlohmann::json& json, const CollectiveConstants& constants);
void from_json(const nlohmann::json& json, CollectiveConstants& constants);

}  // namespace wt
