// A layout: how the ranks of a run are arranged and what each of them holds. Mesh axes as in HSDP with experts inside:
// world = replicate x shard; `shard` ranks together hold one copy of the model (the HSDP replica size); `expert` and
// `context` divide shard; expert_shard = shard / expert. replicate x 1 is DDP, 1 x shard FSDP, anything else HSDP.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/spec/recompute.hpp"

namespace wt {

class YamlMap;
struct ModelSpec;

enum class Precision { fp32, bf16 };  ///< of compute and gathered weights; masters, gradients and AdamW state are fp32

std::string to_string(Precision precision);

struct Layout {
  std::int64_t replicate = 1;
  std::int64_t shard = 1;
  std::int64_t expert = 1;
  std::int64_t microbatch = 1;  ///< sequences a group of `context` ranks processes at once; the last ones of a step may be fewer
  Recompute recompute;          ///< none
  /// placement[layer][slot] = logical expert; expert rank e owns slots [e*n/expert, (e+1)*n/expert) of the n in a row. An
  /// expert listed more than once has copies, which share its rows. Empty = identity.
  std::vector<std::vector<std::int64_t>> placement;
  std::int64_t context = 1;     ///< neighbouring ranks that share each sequence (context parallelism, keys and values gathered)
  /// Replicas over which the optimizer state of a shard is cut further; divides replicate. 1: every replica keeps all of
  /// it (HSDP); more: hybrid FSDP with a fully sharded optimizer (HFSDP), its weights gathered once a step.
  std::int64_t optimizer_shard = 1;
  bool reshard_after_forward = true;    ///< false: gathered weights stay from forward to backward (ZeRO-2)
  bool reduce_every_microbatch = true;  ///< false: gradients stay whole until the last microbatch of a step

  std::int64_t world() const { return replicate * shard; }
  std::int64_t expert_shard() const { return shard / expert; }
  /// Groups of ranks that read different sequences.
  std::int64_t data_ranks() const { return world() / context; }
  /// Expert slots of a layer over all expert ranks: the model's experts and the further copies.
  std::int64_t slots(const ModelSpec& model) const;
  std::int64_t slots_per_rank(const ModelSpec& model) const { return slots(model) / expert; }
  /// Logical expert in a slot of a layer.
  std::int64_t expert_in_slot(std::int64_t layer, std::int64_t slot) const {
    return placement.empty() ? slot : placement[static_cast<std::size_t>(layer)][static_cast<std::size_t>(slot)];
  }
  /// "2x2 expert 2": replicate x shard; what differs from the default follows.
  std::string name() const;
  /// Throws Error{usage}: expert and context must divide shard, optimizer_shard replicate, expert the slots of a layer; every
  /// row of the placement must list every expert.
  void check(const ModelSpec& model, const std::string& where) const;
};

}  // namespace wt
