// Tensors whose flattened values are cut anywhere, as FSDP's flat slices do. PyTorch's readers know rectangles only, so
// a slice is written as rectangles: the rest of a row, whole rows, the beginning of a row. Each of them is a run of the
// flattened tensor, so that reading back needs no rectangles: a tensor is the parts of all files in the order of their
// runs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trainer/safetensors/safetensors.hpp"

namespace wt {

/// Values [begin, begin + count) of a flattened tensor, which form a rectangle in it.
struct Rectangle {
  std::vector<std::int64_t> offsets, shape;
  std::int64_t begin = 0, count = 0;
};

/// Rectangles that make up a run of a tensor, in order: at most 2 * dims - 1. A scalar is one rectangle without dims.
std::vector<Rectangle> rectangles(const std::vector<std::int64_t>& shape, std::int64_t begin, std::int64_t count);

/// All tensors of a checkpoint, put together from the parts in its files; headers are read, values when asked for.
class StoredTensors {
 public:
  /// Throws Error{usage}: as read_safetensors; parts that are no run of their tensor; other types than F32.
  explicit StoredTensors(const std::vector<std::filesystem::path>& files);
  /// Those that a checkpoint folder's manifest lists. Throws as read_manifest(), too.
  static StoredTensors of_checkpoint(const std::filesystem::path& folder);

  std::vector<std::string> keys() const;
  const std::vector<std::int64_t>& shape(const std::string& key) const;
  /// Values [begin, begin + count) of the flattened tensor. Throws Error{usage}: no such tensor, or not all of it is
  /// there.
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

/// Keys of a parameter's training state, as PyTorch flattens it: the parameter itself, "state.<name>.exp_avg", ...
inline std::string state_key(const std::string& parameter, const std::string& state) {
  return "state." + parameter + "." + state;
}
inline bool is_optimizer_key(const std::string& key) { return key.starts_with("state."); }

}  // namespace wt
