// Copies between a collective's buffer and the tensors that a layer computes with. FSDP2 gathers into one buffer and
// copies each weight out of it (split_with_sizes_copy); before a reduction it copies the gradients into another, which
// widens them to the reduction's format (chunk_cat). Both run on the stream that computes, so that nothing hides them
// (pytorch/pytorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py). FSDP1 computes with views of the buffer;
// autograd joins the gradients of these views (flat_param.py, _get_unflat_views).
#pragma once
#include "sim/program/compose/op_factory.hpp"

namespace wt {

/// Adds to a step's nodes: to the first op of a body that waits for gathered weights, a read and a write of these in
/// the compute type; to the op that a reduction waits for, a read of the gradients in that type and a write in
/// ProgramOptions::gradient_bytes; as far as MemoryFacts::collective_copies says. Groups that one rank holds whole have
/// neither.
void add_collective_copies(Nodes& nodes, const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                           std::int64_t expert_rank);

}  // namespace wt
