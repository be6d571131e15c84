// Orders that a GPU would not keep are found by tests/fixtures/nccl_stand_in/lanes.hpp; those that it keeps are not.
#include "tests/fixtures/nccl_stand_in/lanes.hpp"

#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>

namespace {

constexpr std::size_t kBytes = 3 * 4096 + 10;

/// Exit status of a process that does it.
int status_of(const std::function<void()>& what) {
  const pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    what();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Two buffers and two lanes.
struct Device {
  char *from = lanes::take_pages(kBytes), *to = lanes::take_pages(kBytes);
  int gather = lanes::new_stream(), reduce = lanes::new_stream();

  /// A collective that reads `from` and writes `to`, as the trainer issues it; its end.
  lanes::Clock issue(int lane, const std::vector<lanes::Range>& ranges) const {
    lanes::block(lanes::record(), lane);
    lanes::set_current_stream(lane);
    lanes::begins(lane, ranges, "a collective");
    for (const lanes::Range& range : ranges)
      if (range.written) const_cast<char*>(range.begin)[0] = 1;
    lanes::began();
    const lanes::Clock end = lanes::record();
    lanes::set_current_stream(0);
    return end;
  }
  lanes::Clock copy(int lane) const { return issue(lane, {{from, kBytes, false}, {to, kBytes, true}}); }
};

volatile char seen;

}  // namespace

TEST_CASE("what waits for a collective may touch its memory") {
  CHECK(status_of([] {
          const Device device;
          device.from[0] = device.to[kBytes - 1] = 3;
          const lanes::Clock end = device.copy(device.gather);
          seen = device.from[kBytes - 1];  // both only read it
          lanes::block(end, 0);
          device.from[0] = device.to[0] = device.to[kBytes - 1] = 4;
          lanes::give_back_pages(device.from), lanes::give_back_pages(device.to);
        }) == 0);
  // A wait for a later one of the lane is one for those before it; another lane reads what this one reads.
  CHECK(status_of([] {
          const Device device;
          device.copy(device.gather);
          const lanes::Clock second = device.copy(device.gather);
          const lanes::Clock other = device.issue(device.reduce, {{device.from, kBytes, false}});
          lanes::block(second, 0);
          device.to[0] = 1;
          lanes::block(other, 0);
          device.from[0] = 1;
        }) == 0);
  // One lane goes on after the other, where computation waited in between.
  CHECK(status_of([] {
          const Device device;
          lanes::block(device.copy(device.gather), 0);
          lanes::block(device.copy(device.reduce), 0);
        }) == 0);
  // Neighbours on its pages are not its own.
  CHECK(status_of([] {
          const Device device;
          device.issue(device.gather, {{device.to + 100, 5000, true}});
          device.to[0] = device.to[99] = device.to[5100] = device.to[kBytes - 1] = 1;
        }) == 0);
}

TEST_CASE("what does not wait is found") {
  CHECK(status_of([] {
          const Device device;
          device.copy(device.gather);
          seen = device.to[kBytes - 1];
        }) == lanes::kRace);
  CHECK(status_of([] {
          const Device device;
          device.copy(device.gather);
          device.from[4096] = 1;
        }) == lanes::kRace);
  CHECK(status_of([] {  // waited for the other lane
          const Device device;
          device.copy(device.gather);
          lanes::block(device.issue(device.reduce, {{device.from, kBytes, false}}), 0);
          seen = device.to[0];
        }) == lanes::kRace);
  CHECK(status_of([] {  // two lanes write the same
          const Device device;
          device.copy(device.gather), device.copy(device.reduce);
        }) == lanes::kRace);
  CHECK(status_of([] {  // one lane reads what another writes
          const Device device;
          device.copy(device.gather);
          device.issue(device.reduce, {{device.to + 10, 10, false}});
        }) == lanes::kRace);
  CHECK(status_of([] {  // the collective does not wait for what was computed
          const Device device;
          const lanes::Clock early = lanes::record();
          lanes::block(device.issue(device.reduce, {{device.from, kBytes, false}}), 0);
          lanes::block(early, device.gather);
          lanes::begins(device.gather, {{device.to, kBytes, true}}, "a collective");
        }) == lanes::kRace);
  CHECK(status_of([] {
          const Device device;
          device.copy(device.gather);
          lanes::give_back_pages(device.to);
        }) == lanes::kRace);
}

TEST_CASE("on a page with other things a write is found at the wait, and what is read is not the result") {
  const auto written = [](std::ptrdiff_t offset, bool by_collective) {
    return status_of([=] {
      const Device device;
      const lanes::Clock end = device.issue(device.gather, {{device.to + 100, 50, by_collective}});
      device.to[offset] = 5;
      lanes::block(end, 0);
    });
  };
  for (const bool by_collective : {false, true}) {
    CHECK(written(99, by_collective) == 0);
    CHECK(written(100, by_collective) == lanes::kRace);
    CHECK(written(149, by_collective) == lanes::kRace);
    CHECK(written(150, by_collective) == 0);
  }
  CHECK(status_of([] {
          const Device device;
          const lanes::Clock end = device.issue(device.gather, {{device.to + 100, 50, true}});
          if (device.to[100] == 1) _exit(3);
          // The next of the lane finds it.
          lanes::block(lanes::record(), device.gather);
          lanes::begins(device.gather, {{device.to + 100, 50, false}}, "another");
          if (device.to[100] != 1) _exit(4);
          lanes::began();
          lanes::block(end, 0);
          if (device.to[100] != 1) _exit(5);
        }) == 0);
}

TEST_CASE("a wait that is left out is found, and so is a collective that does not wait") {
  const auto dropped = [](const char* what) {
    return status_of([what] {
      setenv("WT_LANES_DROP", what, 1);
      const Device device;
      for (int i = 0; i < 3; ++i) {
        device.from[0] = 1;
        lanes::block(device.copy(device.gather), 0);
        device.to[0] = 1;
      }
    });
  };
  for (const char* what : {"wait 0", "wait 1", "wait 2", "ready 0", "ready 1", "ready 2"}) {
    INFO(what);
    CHECK(dropped(what) == lanes::kRace);
  }
  CHECK(dropped("wait 3") == 0);
}

TEST_CASE("what NCCL receives lies on what it sends only where NCCL allows it") {
  CHECK(status_of([] {
          char folder[] = "/tmp/wt-nccl-XXXXXX";
          if (!mkdtemp(folder)) _exit(2);
          setenv("WT_NCCL_RECORD", folder, 1);
          ncclUniqueId id;
          ncclComm_t comm = nullptr;
          ncclGetUniqueId(&id);
          if (ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) _exit(3);
          char* const at = lanes::take_pages(4096);
          const auto on = [](int lane) { return reinterpret_cast<cudaStream_t>(static_cast<std::intptr_t>(lane)); };
          const cudaStream_t lane = on(lanes::new_stream());
          const auto is = [](ncclResult_t found, ncclResult_t expected, int number) {
            if (found != expected) _exit(number);
          };
          const auto gather = [&](const char* from, char* to) {
            lanes::block(lanes::record(), 1);
            const ncclResult_t result = ncclAllGather(from, to, 64, ncclInt8, comm, lane);
            lanes::set_current_stream(1);
            const lanes::Clock end = lanes::record();
            lanes::set_current_stream(0);
            lanes::block(end, 0);
            return result;
          };
          is(gather(at, at + 64), ncclSuccess, 10);
          is(gather(at, at), ncclSuccess, 11);  // in place
          is(gather(at, at + 63), ncclInvalidArgument, 12);
          ncclGroupStart();
          ncclSend(at, 64, ncclInt8, 0, comm, lane);
          ncclRecv(at + 10, 64, ncclInt8, 0, comm, lane);
          is(ncclGroupEnd(), ncclInvalidArgument, 13);
          ncclGetUniqueId(&id);
          if (fork() == 0) _exit(ncclCommInitRank(&comm, 2, id, 0));
          if (ncclCommInitRank(&comm, 2, id, 1) != ncclSuccess) _exit(4);
          is(gather(at, at), ncclInvalidArgument, 14);  // the place of rank 0
          is(ncclReduceScatter(at, at, 64, ncclFloat32, ncclSum, comm, lane), ncclInvalidArgument, 15);
          std::filesystem::remove_all(folder);
        }) == 0);
}
