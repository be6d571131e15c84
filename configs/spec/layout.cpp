#include "configs/spec/layout.hpp"

#include "configs/spec/error.hpp"
#include "configs/spec/model.hpp"

namespace wt {

std::string to_string(Precision precision) { return precision == Precision::fp32 ? "fp32" : "bf16"; }

std::int64_t Layout::slots(const ModelSpec& model) const {
  return placement.empty() ? model.experts : static_cast<std::int64_t>(placement.front().size());
}

std::string Layout::name() const {
  std::string out = fmt::format("{}x{} expert {}", replicate, shard, expert);
  if (context > 1) out += fmt::format(" context {}", context);
  if (optimizer_shard > 1) out += fmt::format(" optimizer {}", shard * optimizer_shard);
  if (!reshard_after_forward) out += " kept";
  if (!reduce_every_microbatch) out += " reduced once";
  return out;
}

void Layout::check(const ModelSpec& model, const std::string& where) const {
  if (replicate < 1 || shard < 1 || expert < 1 || microbatch < 1 || context < 1 || optimizer_shard < 1)
    throw_error(Code::usage, "{}: found replicate {}, shard {}, expert {}, context {}, optimizer shard {}, microbatch {}; each needs to be >= 1",
                where, replicate, shard, expert, context, optimizer_shard, microbatch);
  if (shard % expert != 0)
    throw_error(Code::usage, "{}: expert parallelism {} does not divide shard = {}; choose a divisor", where, expert, shard);
  if (shard % context != 0)
    throw_error(Code::usage, "{}: context parallelism {} does not divide shard = {}; choose a divisor", where, context, shard);
  if (replicate % optimizer_shard != 0)
    throw_error(Code::usage, "{}: optimizer_shard_degree {} needs to be shard = {} times a divisor of replicate = {}", where,
                shard * optimizer_shard, shard, replicate);
  if (slots(model) % expert != 0)
    throw_error(Code::usage, "{}: expert parallelism {} does not divide the model's {} {}; choose a divisor", where, expert,
                slots(model), placement.empty() ? "experts" : "expert slots");
  if (model.experts == 0 && expert > 1)
    throw_error(Code::usage, "{}: expert parallelism {} for model {}, which has no experts; needs 1", where, expert, model.name);
  recompute.check(model.layers, where);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (recompute.of(layer, model.layers).norm && (model.norm != Norm::rmsnorm || model.attention.mla.on() || model.ffn_width(layer) > 0))
      throw_error(Code::usage, "{}: recompute of norm in layer {} of model {}; allowed where RMSNorm feeds one product, which LayerNorm, latent attention, "
                  "dense FFNs and shared experts rule out; choose block, attention or experts", where, layer, model.name);
  if (placement.empty()) return;
  if (static_cast<std::int64_t>(placement.size()) != model.layers)
    throw_error(Code::usage, "{}: placement: found {} layers, needs {}", where, placement.size(), model.layers);
  for (std::size_t layer = 0; layer < placement.size(); ++layer) {
    if (placement[layer].size() != placement.front().size())
      throw_error(Code::usage, "{}: placement of layer {}: found {} slots, layer 0 has {}; every layer needs equally many", where,
                  layer, placement[layer].size(), placement.front().size());
    std::vector<bool> seen(static_cast<std::size_t>(model.experts), false);
    for (std::int64_t e : placement[layer]) {
      if (e < 0 || e >= model.experts)
        throw_error(Code::usage, "{}: placement of layer {}: found expert {}, allowed 0..{}", where, layer, e, model.experts - 1);
      seen[static_cast<std::size_t>(e)] = true;
    }
    for (std::int64_t e = 0; e < model.experts; ++e)
      if (!seen[static_cast<std::size_t>(e)])
        throw_error(Code::usage, "{}: placement of layer {}: expert {} has no slot; needs each of 0..{} at least once", where, layer,
                    e, model.experts - 1);
  }
}

}  // namespace wt
