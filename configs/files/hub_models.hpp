// Repositories of the Hugging Face Hub whose shapes ship with Windtunnel, so that a model can be named without a
// network: configs/hub/models.json, with the keys of each repository's config.json.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wt {

/// The repository with the shape that this name means: exactly, in other letter case, or with the suffix of a variant
/// of the same shape (-Instruct). Without an owner, the first repository of that name. "" if none.
std::string hub_repository(const std::string& name);
/// Its config.json, or {"preset": NAME} where a preset of configs/models describes it.
const nlohmann::json& hub_config(const std::string& repository);
/// The public copy with which its shape was compared, or "unconfirmed: " and what was seen.
const std::string& hub_source(const std::string& repository);
/// The first repository that a preset describes; "" if none.
std::string repository_of(const std::string& preset);
/// All repositories of the table.
std::vector<std::string> hub_repositories();

}  // namespace wt
