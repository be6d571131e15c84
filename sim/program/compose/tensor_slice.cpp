#include "sim/program/compose/tensor_slice.hpp"

#include <algorithm>

namespace wt {

ModelSpec tensor_slice(const ModelSpec& model, std::int64_t tensor, bool whole_experts) {
  ModelSpec slice = model;
  for (std::int64_t* width : {&slice.heads, &slice.dense_ffn, &slice.shared_ffn}) *width /= tensor;
  for (std::int64_t* heads : {&slice.linear.key_heads, &slice.linear.value_heads}) *heads /= tensor;
  if (!whole_experts) slice.ffn /= tensor;
  slice.kv_heads = std::max<std::int64_t>(1, model.kv_heads / tensor);
  slice.attention.out_groups = std::max<std::int64_t>(1, model.attention.out_groups / tensor);
  slice.vocab = (model.vocab + tensor - 1) / tensor;
  return slice;
}

}  // namespace wt
