// Weights under a family's own tensor names: which rows of which tensor of a Hugging Face checkpoint make up each of
// our parameters, for loading and saving alike. Without LibTorch.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/files/model.hpp"

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

}  // namespace wt
