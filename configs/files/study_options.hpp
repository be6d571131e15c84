// Keys of a study that may have several values, each of which is an option of a decision (`windtunnel plan`): clusters,
// numbers of GPUs, sizes of the global batch. A StudySpec has one of each: its reader refuses several and says so.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wt {

class YamlMap;

/// Empty where the study has one value.
struct StudyOptions {
  std::vector<std::string> clusters;  ///< files or presets
  std::vector<std::int64_t> gpus;
  std::vector<std::int64_t> batches;  ///< sequences a step
  bool several() const { return clusters.size() > 1 || gpus.size() > 1 || batches.size() > 1; }
};

/// "256", "256,512" or "256..4096": then doublings from the first number on and the halves between them, up to the
/// last. In order, each once. Throws Error{usage} "where: found ...".
std::vector<std::int64_t> parse_numbers(const std::string& text, const std::string& where);

/// What `cluster`, `gpus` and `global_train_batch_size` of this text list. Throws Error{usage}.
StudyOptions study_options(const std::string& text, const std::string& origin);

/// The text with these in place of its own, the first of each; nothing of it changes where all are empty.
std::string set_options(const std::string& text, const StudyOptions& options, const std::string& origin);

/// A key that may list options.
bool names_options(const std::string& key);

/// Throws Error{usage} where the study lists several values of one of these keys.
void refuse_options(YamlMap& study);

}  // namespace wt
