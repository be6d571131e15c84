// Stands for libnccl.so.2 where there is no GPU: moves host memory between processes of one machine through files, and
// writes down every call, for nccl_contract.hpp. The environment variable WT_NCCL_RECORD names the folder of both.
//
// A message is a file of its communicator's folder: of a rank in a collective, which all others read, or of one rank to
// another. What it is of goes before the bytes, so that ranks that call different things are told so
// (ncclInvalidUsage). Everything is done when the call returns, or when the outermost group ends, whatever the stream.
#include "nccl.h"

#include "lanes.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::chrono::seconds kPatience{60};

struct Call {
  json said;  ///< as it is written down
  const char* send = nullptr;
  char* receive = nullptr;
  std::size_t bytes = 0;  ///< that this rank leaves for others

  std::string kind() const { return said.at("call"); }
  std::size_t count() const { return said.at("count"); }
  ncclDataType_t type() const { return static_cast<ncclDataType_t>(said.at("type").get<int>()); }
  int peer() const { return said.at("peer"); }
};

fs::path record_folder() {
  const char* const folder = std::getenv("WT_NCCL_RECORD");
  return folder != nullptr ? folder : "";
}

/// Appends a line to this process's record.
void note(json line) {
  static std::ofstream record(record_folder() / (std::to_string(getpid()) + ".jsonl"));
  static std::int64_t number = 0;
  line["number"] = number++;
  record << line.dump() << '\n' << std::flush;
}

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
  }
  return 0;
}

float of_bf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float out;
  std::memcpy(&out, &wide, sizeof out);
  return out;
}

/// To the nearest, ties to even.
std::uint16_t to_bf16(float value) {
  std::uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  return static_cast<std::uint16_t>((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16);
}

template <typename T>
void add_as(char* sum, const char* more, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, sum + i * sizeof(T), sizeof(T)), std::memcpy(&b, more + i * sizeof(T), sizeof(T));
    a += b;
    std::memcpy(sum + i * sizeof(T), &a, sizeof(T));
  }
}

/// Whether the type can be summed here.
bool add(char* sum, const char* more, std::size_t count, ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return add_as<float>(sum, more, count), true;
    case ncclFloat64:
      return add_as<double>(sum, more, count), true;
    case ncclInt64:
      return add_as<std::int64_t>(sum, more, count), true;
    case ncclBfloat16:
      for (std::size_t i = 0; i < count; ++i) {
        std::uint16_t a, b;
        std::memcpy(&a, sum + 2 * i, 2), std::memcpy(&b, more + 2 * i, 2);
        a = to_bf16(of_bf16(a) + of_bf16(b));
        std::memcpy(sum + 2 * i, &a, 2);
      }
      return true;
    default:
      return false;
  }
}

}  // namespace

struct ncclComm {
  std::string id;
  int rank = 0, ranks = 0;
  std::int64_t rounds = 0;                ///< collectives so far
  std::vector<std::int64_t> sent, taken;  ///< messages so far, by peer
  bool destroyed = false;
  std::vector<Call> grouped;
  cudaStream_t stream = nullptr;  ///< of these
};

namespace {

int group_depth = 0;
std::int64_t groups = 0;           ///< outermost ones so far
std::vector<ncclComm_t> in_group;  ///< communicators of the outermost group, in order

fs::path folder_of(const ncclComm& comm) { return record_folder() / comm.id; }
fs::path collective_file(const ncclComm& comm, std::int64_t round, int rank) {
  return folder_of(comm) / (std::to_string(round) + "." + std::to_string(rank));
}
fs::path message_file(const ncclComm& comm, int from, int to, std::int64_t number) {
  return folder_of(comm) / (std::to_string(from) + "to" + std::to_string(to) + "." + std::to_string(number));
}

struct Message {
  json said;
  std::string bytes;
};

/// Throws std::runtime_error where it cannot be written.
void leave(const fs::path& file, const std::string& said, std::string_view bytes = {}) {
  const fs::path partial = file.string() + ".part";
  std::ofstream out(partial, std::ios::binary);
  out << said << '\n' << bytes;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + partial.string());
  fs::rename(partial, file);
}
void leave(const fs::path& file, const Call& call) {
  leave(file, call.said.dump(), std::string_view(call.send, call.bytes));
}

/// Throws std::runtime_error when nothing comes.
Message take(const fs::path& file) {
  const auto given_up = std::chrono::steady_clock::now() + kPatience;
  while (!fs::exists(file)) {
    if (std::chrono::steady_clock::now() > given_up) throw std::runtime_error("nothing came");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  std::ifstream in(file, std::ios::binary);
  std::string line;
  std::getline(in, line);
  return {json::parse(line), std::string(std::istreambuf_iterator<char>(in), {})};
}

ncclResult_t collective(ncclComm& comm, const Call& call) {
  leave(collective_file(comm, comm.rounds, comm.rank), call);
  std::vector<Message> all;
  for (int rank = 0; rank < comm.ranks; ++rank) all.push_back(take(collective_file(comm, comm.rounds, rank)));
  // All others have begun this round, so that they have taken what was left in the one before.
  if (comm.rounds > 0) fs::remove(collective_file(comm, comm.rounds - 1, comm.rank));
  ++comm.rounds;
  for (const Message& one : all)
    if (one.said != call.said || one.bytes.size() != call.bytes) return ncclInvalidUsage;
  const std::size_t size = call.count() * size_of(call.type()), me = static_cast<std::size_t>(comm.rank);
  if (call.kind() == "broadcast") {
    std::memcpy(call.receive, all[call.said.at("root").get<std::size_t>()].bytes.data(), size);
    return ncclSuccess;
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const char* const from = all[rank].bytes.data() + (call.kind() == "reduce_scatter" ? me * size : 0);
    if (call.kind() == "all_gather")
      std::memcpy(call.receive + rank * size, from, size);
    else if (rank == 0)
      std::memcpy(call.receive, from, size);
    else if (!add(call.receive, from, call.count(), call.type()))
      return ncclInvalidArgument;
  }
  return ncclSuccess;
}

std::vector<lanes::Range> ranges_of(const ncclComm& comm, const std::vector<Call>& calls) {
  std::vector<lanes::Range> out;
  for (const Call& call : calls) {
    const std::size_t part = call.count() * size_of(call.type());
    const std::size_t received = call.kind() == "all_gather" ? static_cast<std::size_t>(comm.ranks) * part : part;
    if (call.receive) out.push_back({call.receive, received, true});
    if (call.send && call.send != call.receive) out.push_back({call.send, call.bytes, false});
  }
  return out;
}

bool overlap(const lanes::Range& a, const lanes::Range& b) {
  return (a.written || b.written) && a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

/// Whether it sends from one place and receives at another, or does both in one buffer as NCCL allows it.
bool in_place_or_apart(const ncclComm& comm, const Call& call) {
  if (!call.send || !call.receive) return true;
  const std::size_t part = call.count() * size_of(call.type()), own = static_cast<std::size_t>(comm.rank) * part;
  const bool gathers = call.kind() == "all_gather", scatters = call.kind() == "reduce_scatter";
  if (call.kind() == "broadcast" && call.said.at("root") != comm.rank) return true;  // it sends nothing
  if (gathers ? call.send == call.receive + own : call.receive == call.send + (scatters ? own : 0)) return true;
  return !overlap({call.send, call.bytes, false},
                  {call.receive, gathers ? static_cast<std::size_t>(comm.ranks) * part : part, true});
}

/// NCCL sends while it receives: nothing that one of these writes is memory of another, or its own to send.
bool apart(const ncclComm& comm, const std::vector<Call>& calls) {
  std::vector<lanes::Range> before;
  for (const Call& call : calls) {
    if (!in_place_or_apart(comm, call)) return false;
    const std::vector<lanes::Range> its = ranges_of(comm, {call});
    for (const lanes::Range& range : its)
      for (const lanes::Range& other : before)
        if (overlap(range, other)) return false;
    before.insert(before.end(), its.begin(), its.end());
  }
  return true;
}

/// Sends go first, so that ranks that send to one another do not wait for each other.
ncclResult_t run(ncclComm& comm, const std::vector<Call>& calls, cudaStream_t stream) try {
  if (!apart(comm, calls)) return ncclInvalidArgument;
  lanes::begins(static_cast<int>(reinterpret_cast<std::intptr_t>(stream)), ranges_of(comm, calls),
                calls.front().said.dump() + " of rank " + std::to_string(comm.rank));
  struct Began {
    ~Began() { lanes::began(); }
  } const moved;
  ncclResult_t result = ncclSuccess;
  for (const Call& call : calls)
    if (call.kind() == "send")
      leave(message_file(comm, comm.rank, call.peer(), comm.sent[static_cast<std::size_t>(call.peer())]++), call);
  for (const Call& call : calls) {
    if (call.kind() == "send") continue;
    if (call.kind() != "receive") {
      if (const ncclResult_t one = collective(comm, call); one != ncclSuccess) result = one;
      continue;
    }
    const fs::path file =
        message_file(comm, call.peer(), comm.rank, comm.taken[static_cast<std::size_t>(call.peer())]++);
    const Message message = take(file);
    fs::remove(file);
    if (message.bytes.size() == call.count() * size_of(call.type()))
      std::memcpy(call.receive, message.bytes.data(), message.bytes.size());
    else
      result = ncclInvalidUsage;
  }
  return result;
} catch (const std::exception&) {
  return ncclRemoteError;
}

ncclResult_t called(ncclComm_t comm, cudaStream_t stream, Call call) {
  json line = call.said;
  line.update({{"comm", comm->id}, {"rank", comm->rank}, {"group", group_depth > 0 ? groups : 0}});
  note(std::move(line));
  if (comm->destroyed) return ncclInvalidUsage;
  if (group_depth == 0) return run(*comm, {call}, stream);
  comm->stream = stream;
  if (comm->grouped.empty()) in_group.push_back(comm);
  comm->grouped.push_back(std::move(call));
  return ncclSuccess;
}

json said(const char* call, std::size_t count, ncclDataType_t type) {
  return {{"call", call}, {"count", count}, {"type", static_cast<int>(type)}};
}
json reduced(const char* call, std::size_t count, ncclDataType_t type, ncclRedOp_t op) {
  json out = said(call, count, type);
  out["op"] = static_cast<int>(op);
  return out;
}
json with(json call, const char* key, int value) {
  call[key] = value;
  return call;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidUsage:
      return "ranks called different things";
    case ncclInvalidArgument:
      return "an argument that NCCL forbids (what is received lies on what is sent) or that the stand-in has no case "
             "for";
    case ncclRemoteError:
      return "another rank did not come";
    default:
      return "error";
  }
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device random;
  std::memset(id->internal, 0, sizeof id->internal);
  for (int i = 0; i < 24; ++i) id->internal[i] = "0123456789abcdef"[random() % 16];
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (record_folder().empty()) return ncclSystemError;
  const std::vector<std::int64_t> none(static_cast<std::size_t>(ranks));
  *comm = new ncclComm{id.internal, rank, ranks, 0, none, none, false, {}, nullptr};
  fs::create_directories(folder_of(**comm));
  note({{"call", "init"}, {"comm", (*comm)->id}, {"rank", rank}, {"ranks", ranks}});
  try {  // as NCCL it returns when all are there
    leave(folder_of(**comm) / ("init." + std::to_string(rank)), "{}");
    for (int other = 0; other < ranks; ++other) take(folder_of(**comm) / ("init." + std::to_string(other)));
  } catch (const std::exception&) {
    return ncclRemoteError;
  }
  return ncclSuccess;
}

/// Its memory stays, so that a later call is written down instead of undefined.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  note({{"call", "destroy"},
        {"comm", comm->id},
        {"rank", comm->rank},
        {"waits", lanes::blocks().waits},
        {"readies", lanes::blocks().readies}});
  const bool twice = std::exchange(comm->destroyed, true);
  return twice ? ncclInvalidUsage : ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* result) {
  *result = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return called(comm, stream,
                {said("all_gather", count, type), static_cast<const char*>(send), static_cast<char*>(receive),
                 count * size_of(type)});
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {reduced("reduce_scatter", count, type, op), static_cast<const char*>(send),
                 static_cast<char*>(receive), static_cast<std::size_t>(comm->ranks) * count * size_of(type)});
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {reduced("all_reduce", count, type, op), static_cast<const char*>(send), static_cast<char*>(receive),
                 count * size_of(type)});
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {with(said("broadcast", count, type), "root", root), static_cast<const char*>(send),
                 static_cast<char*>(receive), count * size_of(type)});
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return called(
      comm, stream,
      {with(said("send", count, type), "peer", peer), static_cast<const char*>(send), nullptr, count * size_of(type)});
}

ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return called(comm, stream,
                {with(said("receive", count, type), "peer", peer), nullptr, static_cast<char*>(receive), 0});
}

ncclResult_t ncclGroupStart() {
  if (group_depth++ == 0) ++groups;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (ncclComm_t comm : std::exchange(in_group, {})) {
    const ncclResult_t one = run(*comm, std::exchange(comm->grouped, {}), comm->stream);
    if (one != ncclSuccess) result = one;
  }
  return result;
}
}
