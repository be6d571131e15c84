// Tensors whose flattened values are cut anywhere, like FSDP's flat slices. PyTorch's readers only support rectangles,
// so a slice is written as rectangles: the rest of a row, whole rows, the beginning of a row. Each rectangle is a
// contiguous range of the flattened tensor, so that reading back only concatenates the ranges of all files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trainer/safetensors/safetensors.hpp"

namespace wt {

/// Values [begin, begin + count) of a flattened tensor that form a rectangle.
struct Rectangle {
  std::vector<std::int64_t> offsets, shape;
  std::int64_t begin = 0, count = 0;
};

/// Rectangles that together form a range of a tensor, in order: at most 2 * dims - 1. A scalar is one without dims.
std::vector<Rectangle> rectangles(const std::vector<std::int64_t>& shape, std::int64_t begin, std::int64_t count);

/// All tensors of a checkpoint, assembled from the parts in its files. Headers are read at once, values on demand.
class StoredTensors {
 public:
  /// Throws Error{usage}: as read_safetensors; parts that are not ranges of their tensor; types other than F32.
  explicit StoredTensors(const std::vector<std::filesystem::path>& files);
  /// The files in a checkpoint folder's manifest. Also throws as read_manifest().
  static StoredTensors of_checkpoint(const std::filesystem::path& folder);

  std::vector<std::string> keys() const;
  const std::vector<std::int64_t>& shape(const std::string& key) const;
  /// Values [begin, begin + count) of the flattened tensor. Throws Error{usage}: no such tensor, or a part of it is
  /// missing.
  void read(const std::string& key, std::int64_t begin, std::int64_t count, float* values) const;
  /// The whole tensor, flattened.
  std::vector<float> read(const std::string& key) const;

 private:
  struct Part {
    std::int64_t begin = 0;
    StoredTensor stored;
  };
  struct Tensor {
    std::vector<std::int64_t> shape;
    std::vector<Part> parts;  ///< by begin
  };
  const Tensor& find(const std::string& key) const;

  std::map<std::string, Tensor> tensors_;
};

/// Key of a parameter's optimizer state, as PyTorch flattens it: "state.<name>.exp_avg". The parameter itself has its
/// name.
inline std::string state_key(const std::string& parameter, const std::string& state) {
  return "state." + parameter + "." + state;
}
inline bool is_optimizer_key(const std::string& key) { return key.starts_with("state."); }

}  // namespace wt
