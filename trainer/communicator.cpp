#include "trainer/communicator.hpp"

#include <cstdlib>
#include <map>

#include "configs/spec/error.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

const char* first_set(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value) return value;
  return nullptr;
}

std::int64_t number(std::initializer_list<const char*> names, std::int64_t fallback) {
  for (const char* name : names) {
    const char* value = first_set({name});
    if (!value) continue;
    char* end = nullptr;
    const long long parsed = std::strtoll(value, &end, 10);
    if (*end != '\0' || parsed < 0)
      throw_error(Code::usage, "environment {}: found '{}', needs a whole number >= 0", name, value);
    return parsed;
  }
  return fallback;
}

class StoreView : public SharedStore {
 public:
  explicit StoreView(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}
  void set(const std::string& key, const std::string& value) override {
    store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
  }
  std::string get(const std::string& key) override {
    const auto value = store_->get(key);
    return {value.begin(), value.end()};
  }
  bool has(const std::string& key) override { return store_->check({key}); }
  std::unique_ptr<SharedStore> connect_again() override { return std::make_unique<StoreView>(store_->clone()); }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

class GlooPending : public PendingWork {
 public:
  GlooPending(c10::intrusive_ptr<c10d::Work> work, std::string what) : work_(std::move(work)), what_(std::move(what)) {}
  void wait() override {
    try {
      work_->wait();
    } catch (const std::exception& e) {
      throw_error(Code::runtime, "{} failed: {}; a peer died or did not answer in time", what_, e.what());
    }
  }
  bool done() override { return work_->isCompleted(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::string what_;
};

class GlooCommunicators : public Communicators {
 public:
  GlooCommunicators(const RankEnvironment& environment, const Mesh& mesh, std::chrono::seconds timeout)
      : rank_(environment.rank), mesh_(mesh), timeout_(timeout) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(environment.master_port);
    options.isServer = environment.rank == 0 && !environment.agent_store;
    options.numWorkers = static_cast<std::size_t>(environment.world);
    options.waitWorkers = false;
    options.timeout = timeout;
    try {
      auto tcp = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
      store_ = c10::make_intrusive<c10d::PrefixStore>(fmt::format("windtunnel/{}", environment.restart_count), tcp);
    } catch (const std::exception& e) {
      throw_error(Code::runtime, "rank {}: no rendezvous store at {}:{}: {}", rank_, environment.master_address,
                  environment.master_port, e.what());
    }
    shared_ = std::make_unique<StoreView>(store_);
    // Made in the same order on every rank, before any use: a group made later could meet another one's handshake.
    const Axis unused = mesh_.size(Axis::optimizer_shard) == 1 ? Axis::optimizer_replicate : Axis::replicate;
    for (const auto& [axis, lane] : kUsed)
      if (mesh_.size(axis) > 1 && axis != unused) groups_[{axis, lane}] = make_group(axis, lane);
  }

  std::int64_t rank() const override { return rank_; }
  SharedStore& store() override { return *shared_; }
  const IssuedCollective& last_issued() const override { return last_; }

  Pending all_gather(Axis axis, at::Tensor full, at::Tensor part) override {
    last_ = {OpKind::all_gather, axis, static_cast<std::int64_t>(full.nbytes())};
    return issue(axis, lane_of(last_.kind, axis), "all_gather", [&](auto& group) { return group._allgather_base(full, part); });
  }
  Pending reduce_scatter(Axis axis, at::Tensor part, at::Tensor full) override {
    last_ = {OpKind::reduce_scatter, axis, static_cast<std::int64_t>(full.nbytes())};
    return issue(axis, lane_of(last_.kind, axis), "reduce_scatter",
                 [&](auto& group) { return group._reduce_scatter_base(part, full); });
  }
  Pending all_reduce(Axis axis, at::Tensor tensor) override {
    last_ = {OpKind::all_reduce, axis, static_cast<std::int64_t>(tensor.nbytes())};
    std::vector<at::Tensor> tensors{tensor};
    return issue(axis, Lane::all_reduce, "all_reduce", [&](auto& group) { return group.allreduce(tensors); });
  }
  Pending all_to_all(Axis axis, at::Tensor received, at::Tensor sent, std::vector<std::int64_t> received_rows,
                     std::vector<std::int64_t> sent_rows) override {
    last_ = {OpKind::all_to_all, axis, static_cast<std::int64_t>(sent.nbytes())};
    return issue(axis, Lane::all_to_all, "all_to_all",
                 [&](auto& group) { return group.alltoall_base(received, sent, received_rows, sent_rows); });
  }
  Pending broadcast(Axis axis, at::Tensor tensor) override {
    std::vector<at::Tensor> tensors{tensor};
    return issue(axis, Lane::all_reduce, "broadcast", [&](auto& group) { return group.broadcast(tensors); });
  }
  void barrier() override {
    if (mesh_.world() == 1) return;
    issue(Axis::world, Lane::all_reduce, "barrier", [](auto& group) { return group.barrier(); })->wait();
  }

 private:
  using Key = std::pair<Axis, Lane>;
  static constexpr Key kUsed[] = {
      {Axis::world, Lane::all_reduce},        {Axis::shard, Lane::all_gather},
      {Axis::shard, Lane::reduce_scatter},    {Axis::state, Lane::all_reduce},
      {Axis::expert, Lane::all_to_all},       {Axis::expert_shard, Lane::all_gather},
      {Axis::expert_shard, Lane::reduce_scatter}, {Axis::replicate, Lane::all_reduce},
      {Axis::context, Lane::all_gather},      {Axis::context, Lane::reduce_scatter},
      {Axis::context, Lane::all_reduce},
      {Axis::optimizer_shard, Lane::all_reduce},  {Axis::optimizer_replicate, Lane::all_reduce},
  };

  c10::intrusive_ptr<c10d::ProcessGroupGloo> make_group(Axis axis, Lane lane) {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout_);
    options->threads = 1;  // calls of a group run in issue order; lanes overlap because each is a group of its own
    options->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
    const std::string name = fmt::format("{}/{}/{}", to_string(axis), to_string(lane), mesh_.group_index(axis, rank_));
    auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_);
    try {
      return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(mesh_.coordinate(axis, rank_)),
                                                         static_cast<int>(mesh_.size(axis)), options);
    } catch (const std::exception& e) {
      throw_error(Code::runtime, "rank {}: group {} could not be made: {}", rank_, name, e.what());
    }
  }

  template <typename Call>
  Pending issue(Axis axis, Lane lane, const char* call, Call&& run) {
    const auto it = groups_.find({axis, lane});
    if (it == groups_.end())
      throw_error(Code::runtime, "rank {}: {} on axis {} of size {}: no such group", rank_, call, to_string(axis), mesh_.size(axis));
    std::string what = fmt::format("rank {}: {} over axis {}", rank_, call, to_string(axis));
    try {
      return std::make_unique<GlooPending>(run(*it->second), std::move(what));
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      throw_error(Code::runtime, "{} could not be issued: {}", what, e.what());
    }
  }

  std::int64_t rank_;
  Mesh mesh_;
  std::chrono::seconds timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::unique_ptr<StoreView> shared_;
  std::map<Key, c10::intrusive_ptr<c10d::ProcessGroupGloo>> groups_;
  IssuedCollective last_;
};

}  // namespace

bool RankEnvironment::present() {
  return first_set({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) != nullptr &&
         first_set({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"}) != nullptr;
}

RankEnvironment RankEnvironment::read() {
  RankEnvironment e;
  e.rank = number({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}, 0);
  e.world = number({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"}, 1);
  if (e.rank >= e.world)
    throw_error(Code::usage, "environment RANK: found {}, WORLD_SIZE {} allows 0..{}; mend the launcher's settings", e.rank, e.world, e.world - 1);
  e.local_rank = number({"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"}, 0);
  const std::int64_t port = number({"MASTER_PORT"}, 29500);
  if (port > 65535) throw_error(Code::usage, "environment MASTER_PORT: found {}, needs 0..65535", port);
  e.master_port = static_cast<int>(port);
  e.restart_count = static_cast<int>(number({"TORCHELASTIC_RESTART_COUNT"}, 0));
  if (const char* address = first_set({"MASTER_ADDR"})) e.master_address = address;
  const char* agent = first_set({"TORCHELASTIC_USE_AGENT_STORE"});
  e.agent_store = agent && std::string(agent) == "True";
  return e;
}

std::unique_ptr<Communicators> make_gloo_communicators(const RankEnvironment& environment, const Mesh& mesh,
                                                       std::chrono::seconds timeout) {
  return std::make_unique<GlooCommunicators>(environment, mesh, timeout);
}

}  // namespace wt
