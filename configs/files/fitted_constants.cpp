#include "configs/files/fitted_constants.hpp"

#include <utility>

#include "configs/base/json_reader.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

constexpr const char* kSchema = "windtunnel.constants/1";
constexpr const char* kMadeBy = "windtunnel calibrate --published";

std::filesystem::path file_of(const std::string& name) { return configs_folder() / "constants" / (name + ".json"); }

}  // namespace

nlohmann::json read_fitted(const std::string& name) {
  nlohmann::json document = read_json(file_of(name));
  const JsonReader in(document, file_of(name).string());
  in.allow_only({"schema", "made_by", "tables", "constants"});
  if (in.at("schema").string() != kSchema) in.at("schema").fail("'" + in.at("schema").string() + "'", kSchema);
  in.at("constants");
  return std::move(document["constants"]);
}

void throw_unfitted(const std::string& name, const std::string& why) {
  throw_usage("{}: found constants that this program does not read ({}); write them anew: {}", file_of(name).string(),
              why, kMadeBy);
}

nlohmann::json fitted_document(nlohmann::json constants, const nlohmann::json& tables) {
  return {{"schema", kSchema}, {"made_by", kMadeBy}, {"tables", tables}, {"constants", std::move(constants)}};
}

}  // namespace wt
