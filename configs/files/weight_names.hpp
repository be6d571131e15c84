// Maps our parameters to a model family's own tensor names: which rows of which tensor of a Hugging Face checkpoint
// form each parameter, for loading and saving alike. Without LibTorch.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/files/model.hpp"

namespace wt {

/// `rows` rows of our parameter from `row` on equal the rows of the tensor from `their_row` on, both as matrices (a
/// vector has one column). `transposed`: they equal columns of the tensor instead, from `their_column` on, `stride`
/// apart, in a block of rows that begins at `their_row` and is as high as our parameter is wide.
struct WeightPiece {
  std::string tensor;
  std::int64_t row = 0, rows = 0, their_row = 0;
  bool transposed = false;
  std::int64_t their_column = 0, stride = 1;
  /// Column of the tensor that holds our row r in a transposed block.
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
