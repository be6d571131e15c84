#include "trainer/communication/gloo_communicators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "configs/base/error.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// With `watch` it is used by the main thread, whose waits the watch ends; without it by another thread, with the
/// store's own time limit.
class StoreView : public SharedStore {
 public:
  StoreView(StorePtr store, RankWatch* watch, double timeout_s)
      : store_(std::move(store)), watch_(watch), timeout_s_(timeout_s) {}
  void set(const std::string& key, const std::string& value) override {
    store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
  }
  std::string get(const std::string& key) override {
    const std::string what = fmt::format("wait for '{}' in the store", key);
    if (!watch_) try {
        return store_->get_to_str(key);
      } catch (const std::exception& e) {
        throw_runtime("{} failed: {}", what, e.what());
      }
    const AwaitedCall call = watch_->issue(-1, what);
    const RankWatch::Wait wait(*watch_, call);
    try {
      while (!wait_shortly(key)) check_not_broken_up(call);
      return store_->get_to_str(key);
    } catch (const PeerLost&) {
      throw;
    } catch (const std::exception& e) {
      watch_->lose(call, e.what());
    }
  }
  bool has(const std::string& key) override {
    if (watch_ && watch_->broken_up()) check_not_broken_up(watch_->issue(-1, fmt::format("look for '{}'", key)));
    return store_->check({key});
  }
  std::unique_ptr<SharedStore> reconnect() override {
    StorePtr own = store_->clone();
    own->setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(1000 * timeout_s_)));
    return std::make_unique<StoreView>(std::move(own), nullptr, timeout_s_);
  }

 private:
  /// Waits briefly for the key; returns whether it exists. Throws the store's error when it is gone.
  bool wait_shortly(const std::string& key) {
    constexpr std::chrono::milliseconds kShort(250);
    try {
      store_->wait({key}, kShort);
      return true;
    } catch (const std::exception&) {
      return store_->check({key});
    }
  }
  /// The rank that should set the key may be lost.
  void check_not_broken_up(const AwaitedCall& call) {
    if (watch_->broken_up()) watch_->lose(call, "ranks were lost");
  }

  StorePtr store_;
  RankWatch* watch_;
  double timeout_s_;
};

/// Keeps the call's inputs and outputs alive until it is waited for, so that memory does not depend on timing.
class GlooPending : public PendingWork {
 public:
  /// `after` runs when the work has been waited for.
  GlooPending(c10::intrusive_ptr<c10d::Work> work, AwaitedCall call, RankWatch& watch, std::function<void()> after = {})
      : work_(std::move(work)), call_(std::move(call)), watch_(watch), after_(std::move(after)) {}
  void wait() override {
    const RankWatch::Wait wait(watch_, call_);
    try {
      work_->wait();
    } catch (const std::exception& e) {
      watch_.lose(call_, e.what());
    }
    if (after_) std::exchange(after_, {})();
  }
  bool done() override { return work_->isCompleted(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  AwaitedCall call_;
  RankWatch& watch_;
  std::function<void()> after_;
};

constexpr GroupKey kUsed[] = {
    {Axis::world, Lane::all_reduce},
    {Axis::shard, Lane::all_gather},
    {Axis::shard, Lane::reduce_scatter},
    {Axis::state, Lane::all_reduce},
    {Axis::expert, Lane::all_to_all},
    {Axis::expert_shard, Lane::all_gather},
    {Axis::expert_shard, Lane::reduce_scatter},
    {Axis::replicate, Lane::all_reduce},
    {Axis::context, Lane::all_gather},
    {Axis::context, Lane::reduce_scatter},
    {Axis::context, Lane::all_reduce},
    {Axis::optimizer_shard, Lane::all_reduce},
    {Axis::optimizer_replicate, Lane::all_reduce},
};

StorePtr store_of(const RankWatch& watch) { return StorePtr::reclaim_copy(&watch.store()); }

}  // namespace

std::vector<GroupKey> used_groups(const Mesh& mesh) {
  const Axis unused = mesh.size(Axis::optimizer_shard) == 1 ? Axis::optimizer_replicate : Axis::replicate;
  std::vector<GroupKey> out;
  for (const auto& [axis, lane] : kUsed)
    if (mesh.size(axis) > 1 && axis != unused) out.emplace_back(axis, lane);
  return out;
}

GlooCommunicators::GlooCommunicators(const RankEnvironment& environment, const Mesh& mesh, RankWatch& watch,
                                     OrderCheck check, const std::vector<std::int64_t>& members)
    : members_(members),
      rank_(members.empty() ? environment.rank : std::ranges::find(members, environment.rank) - members.begin()),
      mesh_(mesh),
      watch_(watch),
      shared_(std::make_unique<StoreView>(store_of(watch), &watch, watch.timeout_s())),
      unwinding_(std::uncaught_exceptions()) {
  // All groups are created first, in the same order on every rank: later ones could receive another group's handshake.
  watch_.at(0, "start");
  for (const auto& [axis, lane] : used_groups(mesh_)) groups_[{axis, lane}] = make_group(axis, to_string(lane));
  if (check == OrderCheck::off) return;
  for (const auto& [axis, lane] : used_groups(mesh_))
    if (!checks_.count(axis)) checks_[axis] = make_group(axis, "order");
}

GlooCommunicators::~GlooCommunicators() {
  // During unwinding a group's destructor would wait for running calls, which may never end if a peer is stopped. The
  // process is about to end, so its groups are leaked.
  if (std::uncaught_exceptions() == unwinding_) return;
  for (auto& [key, group] : groups_) group.gloo.release();
  for (auto& [axis, group] : checks_) group.gloo.release();
}

std::string GlooCommunicators::group_name(Axis axis, const std::string& use) const {
  const std::string name = fmt::format("{}/{}/{}", to_string(axis), use, mesh_.group_index(axis, rank_));
  return members_.empty() ? name : fmt::format("ranks {}/{}", fmt::join(members_, "-"), name);
}

std::vector<std::int64_t> GlooCommunicators::world_ranks(Axis axis) const {
  std::vector<std::int64_t> out = mesh_.members(axis, mesh_.group_index(axis, rank_));
  if (!members_.empty())
    for (std::int64_t& rank : out) rank = members_[static_cast<std::size_t>(rank)];
  return out;
}

GlooCommunicators::Group GlooCommunicators::make_group(Axis axis, const std::string& use) {
  // The watch, which knows who is missing, ends a call first; Gloo's own limit is only a fallback.
  const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(2000 * watch_.timeout_s() + 60'000));
  auto options = c10d::ProcessGroupGloo::Options::create(limit);
  options->threads = 1;  // calls of a group run in issue order; lanes overlap because each has its own group
  options->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
  const std::string name = group_name(axis, use);
  auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_of(watch_));
  Group group;
  group.watched = watch_.add_group(name, world_ranks(axis));
  const AwaitedCall call = watch_.issue(-1, fmt::format("connecting group {}", name));
  const RankWatch::Wait wait(watch_, call);
  try {
    group.gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(mesh_.coordinate(axis, rank_)),
                                                             static_cast<int>(mesh_.size(axis)), options);
  } catch (const std::exception& e) {
    watch_.lose(call, e.what());
  }
  return group;
}

template <typename Call>
Pending GlooCommunicators::issue(Axis axis, Lane lane, const char* what, Call&& run, std::function<void()> after) {
  const auto it = groups_.find({axis, lane});
  if (it == groups_.end())
    throw_runtime("rank {}: {} on axis {} of size {}: no such group", world_rank(), what, to_string(axis),
                  mesh_.size(axis));
  AwaitedCall call = watch_.issue(it->second.watched, fmt::format("{} over axis {}", what, to_string(axis)));
  compare_calls(axis, call);
  try {
    return std::make_unique<GlooPending>(run(*it->second.gloo), std::move(call), watch_, std::move(after));
  } catch (const std::exception& e) {
    throw_runtime("rank {}: {}: {} could not be issued: {}", world_rank(), call.position, call.what, e.what());
  }
}

Pending GlooCommunicators::all_gather(Axis axis, at::Tensor full, at::Tensor part) {
  last_ = {OpKind::all_gather, axis, static_cast<std::int64_t>(full.nbytes())};
  // c10d's own call gathers into a buffer that it frees at an unknown time. An exchange of copies of the part needs the
  // same traffic and memory, but we own the copies until the wait, where the step program frees them.
  at::Tensor copies = part.unsqueeze(0).expand({mesh_.size(axis), part.numel()}).contiguous();
  std::vector<std::int64_t> even;
  return issue(axis, lane_of(last_.kind, axis), "all_gather",
               [&](auto& group) { return group.alltoall_base(full, copies, even, even); });
}

Pending GlooCommunicators::reduce_scatter(Axis axis, at::Tensor part, at::Tensor full) {
  last_ = {OpKind::reduce_scatter, axis, static_cast<std::int64_t>(full.nbytes())};
  // Like c10d's implementation on Gloo: sum everything and keep a slice. We own the copy, for the same reason.
  std::vector<at::Tensor> sum{full.clone()};
  const std::int64_t mine = mesh_.coordinate(axis, rank_) * part.numel();
  return issue(
      axis, lane_of(last_.kind, axis), "reduce_scatter", [&](auto& group) { return group.allreduce(sum); },
      [part, sum, mine] { part.copy_(sum[0].narrow(0, mine, part.numel())); });
}

Pending GlooCommunicators::all_reduce(Axis axis, at::Tensor tensor) {
  last_ = {OpKind::all_reduce, axis, static_cast<std::int64_t>(tensor.nbytes())};
  std::vector<at::Tensor> tensors{tensor};
  return issue(axis, Lane::all_reduce, "all_reduce", [&](auto& group) { return group.allreduce(tensors); });
}

Pending GlooCommunicators::all_to_all(Axis axis, at::Tensor received, at::Tensor sent,
                                      std::vector<std::int64_t> received_rows, std::vector<std::int64_t> sent_rows) {
  last_ = {OpKind::all_to_all, axis, static_cast<std::int64_t>(sent.nbytes())};
  return issue(axis, Lane::all_to_all, "all_to_all",
               [&](auto& group) { return group.alltoall_base(received, sent, received_rows, sent_rows); });
}

Pending GlooCommunicators::broadcast(Axis axis, at::Tensor tensor) {
  last_ = {OpKind::host, axis, static_cast<std::int64_t>(tensor.nbytes())};
  std::vector<at::Tensor> tensors{tensor};
  return issue(axis, Lane::all_reduce, "broadcast", [&](auto& group) { return group.broadcast(tensors); });
}

void GlooCommunicators::barrier() {
  if (mesh_.world() == 1) return;
  last_ = {OpKind::all_reduce, Axis::world, 0};
  issue(Axis::world, Lane::all_reduce, "barrier", [](auto& group) { return group.barrier(); })->wait();
}

void GlooCommunicators::compare_calls(Axis axis, const AwaitedCall& call) {
  if (checks_.empty()) return;
  constexpr std::int64_t kWidth = 192;
  // Bytes of an exchange depend on the routing; all other calls have the same size on every rank.
  const std::string bytes = last_.kind == OpKind::all_to_all ? "" : fmt::format(" of {} bytes", last_.bytes);
  // Replicas may have different numbers of microbatches; the last one reduces, so that its number is not compared.
  const auto from = axis == Axis::replicate && call.position.starts_with("mb") ? call.position.find('.') + 1 : 0;
  const std::string own =
      fmt::format("{}: {}{}, call {}", call.position.substr(from), call.what, bytes, call.number).substr(0, kWidth - 1);
  at::Tensor sent = at::zeros({kWidth}, at::kByte), all = at::empty({mesh_.size(axis) * kWidth}, at::kByte);
  std::memcpy(sent.data_ptr(), own.data(), own.size());
  Group& group = checks_.at(axis);
  GlooPending(group.gloo->_allgather_base(all, sent), call, watch_).wait();
  const auto members = world_ranks(axis);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (const std::string other(static_cast<const char*>(all.data_ptr()) + static_cast<std::int64_t>(i) * kWidth);
        other != own)
      throw_runtime(
          "rank {}: order of collectives over axis {} (group {} of {} ranks): this rank issues {}; rank {} issues {}",
          world_rank(), to_string(axis), mesh_.group_index(axis, rank_), members.size(), own, members[i], other);
}

std::unique_ptr<Communicators> make_gloo_communicators(const RankEnvironment& environment, const Mesh& mesh,
                                                       RankWatch& watch, OrderCheck check,
                                                       const std::vector<std::int64_t>& members) {
  return std::make_unique<GlooCommunicators>(environment, mesh, watch, check, members);
}

}  // namespace wt
