// Dotted keys of a study, its cluster and its model: "search.tie", "cluster.nic.bandwidth", "model.n_layers".
#pragma once
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// The text of a study with a dotted `key` set to a YAML value. If the key is below a named `cluster` or `model`, the
/// file's map (or a Hugging Face config.json with its own keys) first replaces the name. A changed section of a cluster
/// counts as assumed, and its source says so. Unknown keys are found when the text is read. Throws Error{usage} where
/// the key passes through a value that is not a map, the value is no YAML, or other keys of the study override it
/// (cluster.nodes, cluster.leaf.oversubscription).
std::string set_study_key(const std::string& text, const std::string& key, const std::string& value,
                          const std::string& origin);
/// Sets several keys, those with fewer dots first: a cluster before a key of it.
std::string set_study_keys(const std::string& text, std::vector<std::pair<std::string, std::string>> assignments,
                           const std::string& origin);

/// The text with the key `measured` set to this file, "" = unchanged.
std::string with_measured(const std::string& text, const std::string& file);

/// The known key that a misspelt one probably means.
struct SuggestedKey {
  std::string key;
  std::string file;  ///< the file that has, or could have, the key
};
/// The nearest of `more` and all keys that the readers of this study, its cluster and its model look up. A key without
/// its section ("nic.bandwidth") matches the key that ends in it. Empty without a match. Throws what reading throws.
std::optional<SuggestedKey> suggested_key(const std::string& key, const std::string& text, const std::string& origin,
                                          const std::set<std::string>& more = {});

}  // namespace wt
