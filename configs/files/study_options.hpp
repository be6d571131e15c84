// Keys of a study that may list several values as options of a decision (`windtunnel plan`): clusters, numbers of GPUs,
// global batch sizes. A StudySpec has one of each; its reader refuses several.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wt {

class YamlMap;

/// A vector is empty where the study has a single value.
struct StudyOptions {
  std::vector<std::string> clusters;  ///< files or presets
  std::vector<std::int64_t> gpus;
  std::vector<std::int64_t> batches;  ///< sequences a step
  bool several() const { return clusters.size() > 1 || gpus.size() > 1 || batches.size() > 1; }
};

/// "256", "256,512" or "256..4096". A range contains the doublings of its first number and the numbers halfway between
/// them, up to its end. Ascending, without duplicates. Throws Error{usage} "where: found ...".
std::vector<std::int64_t> parse_numbers(const std::string& text, const std::string& where);

/// The options that `cluster`, `gpus` and `global_train_batch_size` list. Throws Error{usage}.
StudyOptions study_options(const std::string& text, const std::string& origin);

/// The text with the first of each of these options set. Unchanged where all are empty.
std::string set_options(const std::string& text, const StudyOptions& options, const std::string& origin);

/// Whether a key may list options.
bool names_options(const std::string& key);

/// Throws Error{usage} where the study lists several values of one of these keys.
void refuse_options(YamlMap& study);

}  // namespace wt
