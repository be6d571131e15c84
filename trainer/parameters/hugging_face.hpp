// Weights under a family's own tensor names: which rows of which tensor of a Hugging Face checkpoint make up each of
// our parameters, for loading and saving alike.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "configs/spec/run.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/parameters/weights.hpp"
#include "trainer/safetensors/safetensors.hpp"

namespace wt {

/// `rows` rows of our parameter, from `row` on, are as many rows of the tensor from `their_row` on; both seen as
/// matrices (a vector is one column). `transposed`: columns of the tensor's block that begins there and is as wide as
/// the parameter has rows; from column `their_column` on, `stride` apart.
struct WeightPiece {
  std::string tensor;
  std::int64_t row = 0, rows = 0, their_row = 0;
  bool transposed = false;
  std::int64_t their_column = 0, stride = 1;
  /// Where row r of ours is in a row of a transposed block.
  std::int64_t column_of(std::int64_t r) const { return their_column + (r - row) * stride; }
};

/// A model's tensors by their family's names.
class WeightNames {
 public:
  /// `family`: model_type of a config.json. Throws Error{usage} for a family whose names are not known.
  WeightNames(const ModelSpec& model, std::string family);
  /// The pieces of one of our parameters, by its name in group_layout.
  const std::vector<WeightPiece>& pieces(const std::string& parameter) const { return pieces_.at(parameter); }
  const std::map<std::string, std::vector<std::int64_t>>& shapes() const { return shapes_; }

 private:
  friend class Namer;
  std::map<std::string, std::vector<WeightPiece>> pieces_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
};

/// A folder with config.json and safetensors (one file, or several and an index).
class PretrainedWeights {
 public:
  /// Reads headers alone. Throws Error{usage} naming folder and tensor: another family's or shape's config, names that
  /// are missing or not known, wrong shapes, types other than F32, F16 and BF16.
  PretrainedWeights(const std::filesystem::path& folder, const ModelSpec& model);
  /// Fills the master slices of a rank's groups.
  void load(std::vector<ShardedGroup>& groups) const;

 private:
  /// Rows [first, last) of a parameter of (rows, columns).
  std::vector<float> read(const std::string& parameter, std::int64_t rows, std::int64_t columns, std::int64_t first,
                          std::int64_t last) const;
  std::map<std::string, StoredTensor> tensors_;
  WeightNames names_;
};

/// All parameters of a model, whole, in the order of the groups.
std::vector<ParameterInfo> all_parameters(const ModelSpec& model);

/// Writes config.json and model.safetensors (fp32, or bf16) into a folder, as the family's from_pretrained reads it.
/// `values` gives a whole parameter, named as in group_layout. Throws Error{usage} where no family can say the model,
/// Error{runtime}.
void save_pretrained(const std::filesystem::path& folder, const ModelSpec& model, bool bf16,
                     const std::function<std::vector<float>(const ParameterInfo&)>& values);

/// Collective over all ranks: rank 0 gathers the masters, parameter by parameter, and saves them as above (it holds the
/// whole model in fp32 meanwhile).
void export_pretrained(const std::filesystem::path& folder, const RunSpec& run, const std::vector<ShardedGroup>& groups,
                       Communicators& communicators);

}  // namespace wt
