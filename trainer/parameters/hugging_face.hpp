// Reads Hugging Face weight folders into a rank's groups, and writes them.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "configs/files/weight_names.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/parameters/weights.hpp"
#include "trainer/safetensors/safetensors.hpp"

namespace wt {

/// A folder with config.json and safetensors (one file, or several and an index).
class PretrainedWeights {
 public:
  /// Reads only headers. Throws Error{usage} with folder and tensor: a config of another family or shape, missing or
  /// unknown names, wrong shapes, types other than F32, F16 and BF16.
  PretrainedWeights(const std::filesystem::path& folder, const ModelSpec& model);
  /// Fills the master slices of a rank's groups, except an adapter's.
  void load(std::vector<ShardedGroup>& groups) const;

 private:
  /// Rows [first, last) of a parameter of (rows, columns).
  std::vector<float> read(const std::string& parameter, std::int64_t rows, std::int64_t columns, std::int64_t first,
                          std::int64_t last) const;
  std::map<std::string, StoredTensor> tensors_;
  WeightNames names_;
};

/// All parameters of a model, unsharded, in the order of the groups.
std::vector<ParameterInfo> all_parameters(const ModelSpec& model);

/// Writes config.json and model.safetensors (fp32, or bf16) for the family's from_pretrained. `values` returns a whole
/// parameter, named as in group_layout. Throws Error{usage} where no family can express the model, Error{runtime}.
void save_pretrained(const std::filesystem::path& folder, const ModelSpec& model, bool bf16,
                     const std::function<std::vector<float>(const ParameterInfo&)>& values);

/// Collective over all ranks: rank 0 gathers the masters, parameter by parameter, and saves them as above. It
/// temporarily holds the whole model in fp32.
void export_pretrained(const std::filesystem::path& folder, const RunSpec& run, const std::vector<ShardedGroup>& groups,
                       Communicators& communicators);

}  // namespace wt
