#include "configs/spec/layout.hpp"

#include "configs/spec/error.hpp"
#include "configs/spec/model.hpp"

namespace wt {

std::string to_string(Recompute policy) { return policy == Recompute::none ? "none" : "block"; }
std::string to_string(Precision precision) { return precision == Precision::fp32 ? "fp32" : "bf16"; }

Recompute recompute_from_string(const std::string& word) {
  for (Recompute policy : {Recompute::none, Recompute::block})
    if (to_string(policy) == word) return policy;
  throw_error(Code::usage, "recompute: found '{}', allowed none, block", word);
}

std::string Layout::name() const { return fmt::format("{}x{} expert {}", replicate, shard, expert); }

void Layout::check(const ModelSpec& model, const std::string& where) const {
  if (replicate < 1 || shard < 1 || expert < 1 || microbatch < 1)
    throw_error(Code::usage, "{}: found replicate {}, shard {}, expert {}, microbatch {}; each needs to be >= 1", where,
                replicate, shard, expert, microbatch);
  if (shard % expert != 0)
    throw_error(Code::usage, "{}: expert parallelism {} does not divide shard = {}; choose a divisor", where, expert, shard);
  if (model.experts % expert != 0)
    throw_error(Code::usage, "{}: expert parallelism {} does not divide the model's {} experts; choose a divisor", where,
                expert, model.experts);
  if (placement.empty()) return;
  if (static_cast<std::int64_t>(placement.size()) != model.layers)
    throw_error(Code::usage, "{}: placement: found {} layers, needs {}", where, placement.size(), model.layers);
  for (std::size_t layer = 0; layer < placement.size(); ++layer) {
    std::vector<bool> seen(static_cast<std::size_t>(model.experts), false);
    for (std::int64_t e : placement[layer]) {
      if (e < 0 || e >= model.experts || seen[static_cast<std::size_t>(e)])
        throw_error(Code::usage, "{}: placement of layer {}: expert {} is out of range or listed twice; needs each of 0..{} once",
                    where, layer, e, model.experts - 1);
      seen[static_cast<std::size_t>(e)] = true;
    }
    if (static_cast<std::int64_t>(placement[layer].size()) != model.experts)
      throw_error(Code::usage, "{}: placement of layer {}: found {} slots, needs {}", where, layer,
                  placement[layer].size(), model.experts);
  }
}

}  // namespace wt
