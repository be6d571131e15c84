// NCCL on the mesh: one stream per lane, one communicator per (axis, lane). A call starts when the stream that issued
// it reaches that point. A wait makes the current stream wait, not the host.
#include "trainer/communication/gloo_communicators.hpp"

#include "configs/base/error.hpp"
#include "trainer/pch.hpp"

#ifdef WT_CUDA
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <deque>
#endif

namespace wt {

#ifdef WT_CUDA
// Device whose memory NCCL moves. A test library in place of NCCL moves host memory.
#ifndef WT_NCCL_DEVICE
#define WT_NCCL_DEVICE CUDA
#endif
namespace {

using at::Tensor;

constexpr auto kDevice = c10::DeviceType::WT_NCCL_DEVICE;

/// NCCL's functions in the library that LibTorch's CUDA side has loaded. They are looked up at run time, because a
/// program linked to NCCL would not start without it.
struct Nccl {
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) comm_init_rank;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommGetAsyncError) async_error;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;

  static const Nccl& library() {
    static const Nccl loaded = [] {
      void* handle = dlopen("libnccl.so.2", RTLD_NOW);
      if (!handle)
        throw_runtime("NCCL does not load: {}; install the wheel nvidia-nccl-cu13 or NVIDIA's package", dlerror());
      const auto find = [handle]<typename F>(F& function, const char* name) {
        function = reinterpret_cast<F>(dlsym(handle, name));
        if (!function) throw_runtime("NCCL: {} is not there; needs NCCL 2.10 or newer", name);
      };
      Nccl out{};
      find(out.error_string, "ncclGetErrorString"), find(out.get_unique_id, "ncclGetUniqueId");
      find(out.comm_init_rank, "ncclCommInitRank"), find(out.comm_destroy, "ncclCommDestroy");
      find(out.async_error, "ncclCommGetAsyncError"), find(out.all_gather, "ncclAllGather"),
          find(out.reduce_scatter, "ncclReduceScatter");
      find(out.all_reduce, "ncclAllReduce"), find(out.broadcast, "ncclBroadcast"), find(out.send, "ncclSend"),
          find(out.receive, "ncclRecv");
      find(out.group_start, "ncclGroupStart"), find(out.group_end, "ncclGroupEnd");
      return out;
    }();
    return loaded;
  }
};

ncclDataType_t nccl_type(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kLong:
      return ncclInt64;
    default:
      throw_runtime("NCCL: found a tensor of {}, allowed are fp32, fp64, bf16 and int64",
                    c10::toString(tensor.scalar_type()));
  }
}

class NcclPending : public PendingWork {
 public:
  NcclPending(std::shared_ptr<c10::cuda::CUDAEvent> end, Marks marks, std::vector<Tensor> held)
      : end_(std::move(end)), marks_(marks), held_(std::move(held)) {}
  void wait() override {
    end_->block(c10::cuda::getCurrentCUDAStream());
    held_.clear();  // their memory is reused on this stream, after the wait
  }
  bool done() override { return end_->query(); }
  std::optional<Marks> marks() const override { return marks_; }

 private:
  std::shared_ptr<c10::cuda::CUDAEvent> end_;
  Marks marks_;
  std::vector<Tensor> held_;
};

class NcclCommunicators : public GlooCommunicators {
 public:
  NcclCommunicators(const RankEnvironment& environment, const Mesh& mesh, RankWatch& watch, StepClock& clock,
                    OrderCheck check, const std::vector<std::int64_t>& members)
      : GlooCommunicators(environment, mesh, watch, check, members),
        clock_(clock),
        unwinding_(std::uncaught_exceptions()) {
    for (const auto& [axis, lane] : used_groups(mesh_)) groups_[{axis, lane}] = connect(axis, lane);
  }

  ~NcclCommunicators() override {
    // A communicator with a call that never ends cannot be destroyed. During unwinding the process is about to end, so
    // it is leaked.
    if (std::uncaught_exceptions() != unwinding_) return;
    cudaDeviceSynchronize();
    for (auto& [key, group] : groups_) nccl_.comm_destroy(group.communicator);
  }

  Pending all_gather(Axis axis, Tensor full, Tensor part) override {
    if (full.device().type() != kDevice) return GlooCommunicators::all_gather(axis, full, part);
    last_ = {OpKind::all_gather, axis, static_cast<std::int64_t>(full.nbytes())};
    return issue(axis, lane_of(last_.kind, axis), "all_gather", {full, part},
                 [&](ncclComm_t comm, cudaStream_t stream) {
                   return nccl_.all_gather(part.data_ptr(), full.data_ptr(), static_cast<std::size_t>(part.numel()),
                                           nccl_type(part), comm, stream);
                 });
  }
  Pending reduce_scatter(Axis axis, Tensor part, Tensor full) override {
    if (full.device().type() != kDevice) return GlooCommunicators::reduce_scatter(axis, part, full);
    last_ = {OpKind::reduce_scatter, axis, static_cast<std::int64_t>(full.nbytes())};
    return issue(axis, lane_of(last_.kind, axis), "reduce_scatter", {part, full},
                 [&](ncclComm_t comm, cudaStream_t stream) {
                   return nccl_.reduce_scatter(full.data_ptr(), part.data_ptr(), static_cast<std::size_t>(part.numel()),
                                               nccl_type(part), ncclSum, comm, stream);
                 });
  }
  Pending all_reduce(Axis axis, Tensor tensor) override {
    if (tensor.device().type() != kDevice) return GlooCommunicators::all_reduce(axis, tensor);
    last_ = {OpKind::all_reduce, axis, static_cast<std::int64_t>(tensor.nbytes())};
    return issue(axis, Lane::all_reduce, "all_reduce", {tensor}, [&](ncclComm_t comm, cudaStream_t stream) {
      return nccl_.all_reduce(tensor.data_ptr(), tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()),
                              nccl_type(tensor), ncclSum, comm, stream);
    });
  }
  Pending all_to_all(Axis axis, Tensor received, Tensor sent, std::vector<std::int64_t> received_rows,
                     std::vector<std::int64_t> sent_rows) override {
    if (sent.device().type() != kDevice)
      return GlooCommunicators::all_to_all(axis, received, sent, received_rows, sent_rows);
    last_ = {OpKind::all_to_all, axis, static_cast<std::int64_t>(sent.nbytes())};
    const std::int64_t ranks = mesh_.size(axis);
    return issue(axis, Lane::all_to_all, "all_to_all", {received, sent}, [&](ncclComm_t comm, cudaStream_t stream) {
      const Strips from(sent, sent_rows, ranks), to(received, received_rows, ranks);
      ncclResult_t result = nccl_.group_start();
      for (int peer = 0; peer < static_cast<int>(ranks) && result == ncclSuccess; ++peer) {
        if (from.bytes(peer) > 0) result = nccl_.send(from.begin(peer), from.bytes(peer), ncclInt8, peer, comm, stream);
        if (to.bytes(peer) > 0 && result == ncclSuccess)
          result = nccl_.receive(to.begin(peer), to.bytes(peer), ncclInt8, peer, comm, stream);
      }
      const ncclResult_t ended = nccl_.group_end();
      return result == ncclSuccess ? ended : result;
    });
  }
  Pending broadcast(Axis axis, Tensor tensor) override {
    if (tensor.device().type() != kDevice) return GlooCommunicators::broadcast(axis, tensor);
    last_ = {OpKind::host, axis, static_cast<std::int64_t>(tensor.nbytes())};
    return issue(axis, Lane::all_reduce, "broadcast", {tensor}, [&](ncclComm_t comm, cudaStream_t stream) {
      return nccl_.broadcast(tensor.data_ptr(), tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()),
                             nccl_type(tensor), 0, comm, stream);
    });
  }

  void before_host_read() override {
    c10::cuda::CUDAEvent reached;
    reached.record();
    while (!reached.query()) {
      forget_finished();
      if (outstanding_.empty()) break;  // the device is only computing
      const RankWatch::Wait wait(watch_, outstanding_.front().call);
      while (!reached.query() && !outstanding_.front().end->query()) check_group(outstanding_.front());
    }
    forget_finished();
  }

 private:
  /// A group's calls run in issue order on its lane's stream.
  struct NcclGroup {
    ncclComm_t communicator = nullptr;
    int watched = -1;
  };
  struct Issued {
    AwaitedCall call;
    std::shared_ptr<c10::cuda::CUDAEvent> end;
    ncclComm_t communicator;
  };
  /// Byte ranges of each rank's rows in a tensor; equal ranges if no rows are given.
  class Strips {
   public:
    Strips(const Tensor& tensor, const std::vector<std::int64_t>& rows, std::int64_t ranks)
        : data_(static_cast<char*>(tensor.data_ptr())) {
      const std::size_t total = tensor.nbytes(),
                        row = tensor.size(0) > 0 ? total / static_cast<std::size_t>(tensor.size(0)) : 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        end_.push_back((end_.empty() ? 0 : end_.back()) +
                       (rows.empty() ? total / static_cast<std::size_t>(ranks)
                                     : row * static_cast<std::size_t>(rows[static_cast<std::size_t>(rank)])));
    }
    char* begin(int rank) const { return data_ + start(rank); }
    std::size_t bytes(int rank) const { return end_[static_cast<std::size_t>(rank)] - start(rank); }

   private:
    std::size_t start(int rank) const { return rank == 0 ? 0 : end_[static_cast<std::size_t>(rank) - 1]; }
    char* data_;
    std::vector<std::size_t> end_;
  };

  void need(ncclResult_t result, const AwaitedCall& call) const {
    if (result != ncclSuccess)
      throw_runtime("rank {}: {}: {}: NCCL says '{}'; NCCL_DEBUG=INFO tells more", world_rank(), call.position,
                    call.what, nccl_.error_string(result));
  }

  /// Member 0 of the group creates the communicator's id and publishes it in the store.
  NcclGroup connect(Axis axis, Lane lane) {
    const std::string name = group_name(axis, "nccl " + to_string(lane)), key = "nccl/" + name;
    NcclGroup group;
    group.watched = watch_.add_group(name, world_ranks(axis));
    const AwaitedCall call = watch_.issue(-1, fmt::format("connecting group {}", name));
    ncclUniqueId id{};
    if (mesh_.coordinate(axis, rank_) == 0) {
      need(nccl_.get_unique_id(&id), call);
      store().set(key, std::string(id.internal, sizeof id.internal));
    } else {
      const std::string text = store().get(key);
      std::memcpy(id.internal, text.data(), std::min(text.size(), sizeof id.internal));
    }
    const RankWatch::Wait wait(watch_, call);
    need(nccl_.comm_init_rank(&group.communicator, static_cast<int>(mesh_.size(axis)), id,
                              static_cast<int>(mesh_.coordinate(axis, rank_))),
         call);
    streams_.try_emplace(lane, c10::cuda::getStreamFromPool(/*isHighPriority=*/true));
    return group;
  }

  template <typename Call>
  Pending issue(Axis axis, Lane lane, const char* what, std::vector<Tensor> held, Call&& run) {
    const auto it = groups_.find({axis, lane});
    if (it == groups_.end())
      throw_runtime("rank {}: {} on axis {} of size {}: no such group", world_rank(), what, to_string(axis),
                    mesh_.size(axis));
    for (const Tensor& tensor : held)
      if (!tensor.is_contiguous())
        throw_runtime("rank {}: {} over axis {}: a tensor is not contiguous", world_rank(), what, to_string(axis));
    AwaitedCall call = watch_.issue(it->second.watched, fmt::format("{} over axis {}", what, to_string(axis)));
    compare_calls(axis, call);
    const c10::cuda::CUDAStream stream = streams_.at(lane);
    c10::cuda::CUDAEvent ready;
    ready.record();
    ready.block(stream);
    const c10::cuda::CUDAStreamGuard on_lane(stream);
    PendingWork::Marks marks{};
    marks.begin = clock_.mark();
    need(run(it->second.communicator, stream.stream()), call);
    marks.end = clock_.mark();
    auto end = std::make_shared<c10::cuda::CUDAEvent>();
    end->record();
    forget_finished();
    outstanding_.push_back({std::move(call), end, it->second.communicator});
    return std::make_unique<NcclPending>(std::move(end), marks, std::move(held));
  }

  void forget_finished() {
    while (!outstanding_.empty() && outstanding_.front().end->query()) outstanding_.pop_front();
  }

  /// Throws if the communicator reports a lost rank.
  void check_group(const Issued& issued) const {
    ncclResult_t result = ncclSuccess;
    nccl_.async_error(issued.communicator, &result);
    if (result != ncclSuccess && result != ncclInProgress) watch_.lose(issued.call, nccl_.error_string(result));
  }

  StepClock& clock_;
  int unwinding_;  ///< number of uncaught exceptions at construction
  const Nccl& nccl_ = Nccl::library();
  std::map<Lane, c10::cuda::CUDAStream> streams_;
  std::map<GroupKey, NcclGroup> groups_;
  std::deque<Issued> outstanding_;  ///< in issue order; those before the first unfinished one have been removed
};

}  // namespace
#endif

std::unique_ptr<Communicators> make_communicators(const RankEnvironment& environment, const Mesh& mesh,
                                                  RankWatch& watch, StepClock& clock, OrderCheck check,
                                                  const std::vector<std::int64_t>& members) {
#ifdef WT_CUDA
  if (clock.device().type() == kDevice && mesh.world() > 1)
    return std::make_unique<NcclCommunicators>(environment, mesh, watch, clock, check, members);
#endif
  static_cast<void>(clock);
  return make_gloo_communicators(environment, mesh, watch, check, members);
}

}  // namespace wt
