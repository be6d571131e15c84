// Keys of a study, its cluster and its model by dotted name: "search.tie", "cluster.nic.bandwidth", "model.n_layers".
#pragma once
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// The text of a study with `key` (dotted) set to a YAML value. Below `cluster` and `model`, a name or file gives way
/// to the map in that file, a Hugging Face config.json with its own keys. What is changed of a cluster's section counts
/// as assumed: the section's source says so. Keys are checked when the text is read. Throws Error{usage} where the key
/// passes through something that is no map, the value is no YAML, or the study's own keys leave it without effect
/// (cluster.nodes, cluster.leaf.oversubscription).
std::string set_study_key(const std::string& text, const std::string& key, const std::string& value,
                          const std::string& origin);
/// The same of several, those with fewer dots first: a cluster, then a key of it.
std::string set_study_keys(const std::string& text, std::vector<std::pair<std::string, std::string>> assignments,
                           const std::string& origin);

/// The known key that somebody may have meant.
struct MeantKey {
  std::string key;
  std::string file;  ///< that has the key or could have it
};
/// The nearest of all keys that the reader of this study looks for, also in the cluster and the model that it names,
/// and of `more`; of a key without its section ("nic.bandwidth") the one that ends in it. Empty where none is near.
/// Throws what reading throws.
std::optional<MeantKey> meant_key(const std::string& key, const std::string& text, const std::string& origin,
                                  const std::set<std::string>& more = {});

}  // namespace wt
