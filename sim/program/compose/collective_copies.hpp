// Copies between a collective's buffer and the tensors that a layer computes with. FSDP2 gathers into one buffer and
// copies each weight out of it (split_with_sizes_copy). Before a reduction it copies the gradients into another buffer
// and widens them to the reduction's format (chunk_cat). Both run on the compute stream, so that nothing hides them
// (pytorch/pytorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py). FSDP1 computes with views of the buffer,
// and autograd joins the gradients of these views (flat_param.py, _get_unflat_views).
#pragma once
#include "sim/program/compose/op_factory.hpp"

namespace wt {

/// Adds these copies to a step, as MemoryFacts::collective_copies says. The first op of a body that waits for gathered
/// weights also reads and writes them in the compute type. The op that a reduction waits for also reads the gradients
/// in that type and writes them in ProgramOptions::gradient_bytes. Groups that are not sharded have no copies.
void add_collective_copies(Nodes& nodes, const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                           std::int64_t expert_rank);

}  // namespace wt
