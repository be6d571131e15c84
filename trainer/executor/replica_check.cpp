#include "trainer/executor/replica_check.hpp"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <map>

#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/communication/rank_environment.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

bool holds(const std::vector<std::int64_t>& ranks, std::int64_t rank) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

/// A hash of the bits of all tensors, in order.
std::uint64_t hash_of(const std::vector<at::Tensor>& tensors) {
  std::uint64_t hash = 0;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor host = tensor.contiguous().cpu();  // on the CPU the tensor itself
    hash = XXH3_64bits_withSeed(host.data_ptr(), host.nbytes(), hash);
  }
  return hash;
}

}  // namespace

std::vector<std::int64_t> ranks_that_differ(const std::vector<std::uint64_t>& hashes, std::int64_t state_ranks) {
  std::vector<std::int64_t> out;
  const auto world = static_cast<std::int64_t>(hashes.size());
  const auto hash = [&](std::int64_t rank) { return hashes[static_cast<std::size_t>(rank)]; };
  for (std::int64_t shard = 0; shard < state_ranks; ++shard) {
    std::map<std::uint64_t, std::int64_t> votes;
    for (std::int64_t rank = shard; rank < world; rank += state_ranks) ++votes[hash(rank)];
    if (votes.size() == 1) continue;
    for (std::int64_t rank = shard; rank < world; rank += state_ranks)
      if (2 * votes[hash(rank)] <= world / state_ranks) out.push_back(rank);
  }
  std::ranges::sort(out);
  return out;
}

GradientBlame blame(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second,
                    std::int64_t state_ranks) {
  std::vector<std::int64_t> changed, suspects = ranks_that_differ(second, state_ranks);
  for (std::size_t rank = 0; rank < first.size(); ++rank)
    if (first[rank] != second[rank]) changed.push_back(static_cast<std::int64_t>(rank));
  if (suspects.empty()) return {changed, false};
  std::vector<std::int64_t> both;
  std::set_intersection(suspects.begin(), suspects.end(), changed.begin(), changed.end(), std::back_inserter(both));
  return {both.empty() ? suspects : both, true};
}

std::vector<std::uint64_t> ReplicaCheck::gather(std::uint64_t own) {
  at::Tensor all = at::zeros({run_.layout.world()}, at::kLong);
  std::int64_t* values = all.data_ptr<std::int64_t>();
  values[communicators_.rank()] = static_cast<std::int64_t>(own);
  communicators_.all_reduce(Axis::world, all)->wait();
  return {values, values + all.numel()};
}

bool ReplicaCheck::gradients_agree(std::int64_t step) {
  std::vector<at::Tensor> gradients;
  for (const ShardedGroup& group : groups_)
    if (group.layout.group != Group::router_bias && !group.frozen()) gradients.push_back(group.state_gradient());
  const std::vector<std::uint64_t> hashes = gather(hash_of(gradients));
  const std::int64_t states = state_ranks(run_.layout);
  if (!first_) {
    if (ranks_that_differ(hashes, states).empty()) return true;
    first_ = hashes;
    return false;
  }
  const GradientBlame blamed = blame(*first_, hashes, states);
  first_.reset();
  if (blamed.persistent) end(step, blamed.ranks, "gradients");
  repeated_for_ = blamed.ranks;
  if (holds(blamed.ranks, communicators_.rank()))
    print_error("rank {} on node {}: step {}: its gradients were not those of its replicas, once: repeated\n",
                communicators_.rank(), node_name(communicators_.rank()), step);
  return true;
}

std::vector<std::int64_t> ReplicaCheck::repeated_for() { return std::exchange(repeated_for_, {}); }

void ReplicaCheck::check_state(std::int64_t step) {
  std::vector<at::Tensor> state;
  for (const ShardedGroup& group : groups_)
    for (at::Tensor& each : group.states()) state.push_back(std::move(each));
  const auto wrong = ranks_that_differ(gather(hash_of(state)), state_ranks(run_.layout));
  if (!wrong.empty()) end(step, wrong, "weights and moments");
}

void ReplicaCheck::end(std::int64_t step, const std::vector<std::int64_t>& wrong, const std::string& what) {
  const std::int64_t rank = communicators_.rank();
  if (!holds(wrong, rank)) communicators_.barrier();  // wrong ranks never reach it, so that the others name them
  throw_error(Code::silent,
              "rank {} on node {}: step {}: its {} are not those of its replicas{}; what was saved before was "
              "compared; exchange the node and go on from there",
              rank, node_name(rank), step, what,
              wrong.size() > 1 ? fmt::format(", which of ranks {} is wrong is not known", fmt::join(wrong, " ")) : "");
}

}  // namespace wt
