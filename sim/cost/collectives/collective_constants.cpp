#include "sim/cost/collectives/collective_constants.hpp"

#include <nlohmann/json.hpp>

namespace wt {

NLOHMANN_JSON_SERIALIZE_ENUM(CollectiveForm, {{CollectiveForm::reduce, "reduce"},
                                              {CollectiveForm::gather, "gather"},
                                              {CollectiveForm::exchange, "exchange"}})

void to_json(nlohmann::json& json, const LinkConstants& c) {
  json = {{"many", c.many()},
          {"base", c.base()},
          {"links", c.links()},
          {"fabrics", c.fabrics()},
          {"python_s", c.python_s()}};
}

void from_json(const nlohmann::json& json, LinkConstants& c) {
  using Factors = std::map<std::string, LinkConstants::Logs>;
  c = LinkConstants(json.at("many").get<bool>(), json.at("base").get<LinkConstants::Logs>(),
                    json.at("links").get<Factors>(), json.at("fabrics").get<Factors>(),
                    json.at("python_s").get<double>());
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FormConstants, form, many, links, spread, points, small_transports)

void to_json(nlohmann::json& json, const CollectiveConstants& c) {
  json = {{"forms", c.forms}, {"largest_bytes", c.largest_bytes}, {"link_of", c.link_of}};
}

void from_json(const nlohmann::json& json, CollectiveConstants& c) {
  json.at("forms").get_to(c.forms);
  json.at("largest_bytes").get_to(c.largest_bytes);
  json.at("link_of").get_to(c.link_of);
}

}  // namespace wt
