// What the driver says of a device, and what was read while something was timed: with a driver's library of our own.
#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "configs/machine/cuda_libraries.hpp"
#include "configs/machine/device_monitor.hpp"
#include "configs/machine/host_load.hpp"
#include "configs/machine/nvml.hpp"
#include "tests/fixtures/fake_nvml.hpp"

using namespace wt;
using Catch::Matchers::Contains;

// Asked of this process as a program with the CUDA libraries would answer.
extern "C" {
__attribute__((visibility("default"))) int cublasGetProperty(int type, int* value) {
  return *value = type == 0 ? 13 : type == 1 ? 1 : 2, 0;
}
__attribute__((visibility("default"))) std::size_t cudnnGetVersion() { return 91900; }
__attribute__((visibility("default"))) int ncclGetVersion(int* value) { return *value = 22809, 0; }
}

namespace {

/// The fake library with its state as new; what the code under test opens is the same one.
class Fake {
 public:
  explicit Fake(const char* path = WT_FAKE_NVML) : path_(path), handle_(dlopen(path, RTLD_NOW)) {
    REQUIRE(handle_ != nullptr);
    state_ = reinterpret_cast<test::FakeNvml* (*)()>(dlsym(handle_, "fake_nvml"))();
    *state_ = {};
  }
  ~Fake() { dlclose(handle_); }
  Fake(const Fake&) = delete;
  test::FakeNvml* operator->() { return state_; }
  std::optional<NvmlDevice> open(const std::string& uuid = "") const { return open_nvml_device(uuid, path_); }

 private:
  std::string path_;
  void* handle_;
  test::FakeNvml* state_;
};

std::string runtime_error(const std::function<void()>& fails) {
  try {
    fails();
  } catch (const Error& e) {
    CHECK(e.code() == Code::runtime);
    return e.what();
  }
  return "no error";
}

TimedReading at(double s, double clock_MHz, double power_W, std::uint64_t events) {
  return {s, {clock_MHz, 3201, power_W, 60 + s, events}};
}

}  // namespace

TEST_CASE("without a library or a loaded driver there is no device and no error") {
  CHECK_FALSE(open_nvml_device("", "/nonexistent/libnvidia-ml.so.1"));
  Fake fake;
  for (int code : {9, 12}) {
    fake->init_code = code;
    CHECK_FALSE(fake.open());
  }
}

TEST_CASE("the facts of a device") {
  Fake fake;
  fake->processes = 3;
  const Fingerprint expected = {{"device", "NVIDIA H200"},
                                {"gpu_uuid", "GPU-01234567-89ab-cdef-0123-456789abcdef"},
                                {"pci_bus_id", "0000:19:00"},
                                {"driver", "580.82.07"},
                                {"cuda_driver", "13.0"},
                                {"vbios", "96.00.B9.00.01"},
                                {"ecc", "on"},
                                {"mig", "off"},
                                {"power_limit_W", "700"},
                                {"default_power_limit_W", "700"},
                                {"largest_clock_MHz", "1980"},
                                {"largest_memory_clock_MHz", "3201"},
                                {"run.ecc_corrected_volatile", "0"},
                                {"run.ecc_uncorrected_volatile", "0"},
                                {"run.ecc_corrected_aggregate", "7"},
                                {"run.ecc_uncorrected_aggregate", "7"},
                                {"run.other_gpu_processes", "2"}};
  CHECK(fake.open()->facts() == expected);
  fake->processes = 200;  // more than the first list has room for
  CHECK(fake.open()->facts().at("run.other_gpu_processes") == "199");
  fake->processes = 0;  // a container that shows none
  CHECK(fake.open()->facts().at("run.other_gpu_processes") == "0");
  CHECK(fake.open()->free_bytes() == 60);
}

TEST_CASE("what a device does not support is left out, what was opened is closed") {
  Fake fake;
  {
    const auto device = fake.open();
    CHECK(fake->started == 1);
    fake->device_code = 3;  // NVML_ERROR_NOT_SUPPORTED
    CHECK(device->facts() == Fingerprint{{"cuda_driver", "13.0"}});
    const DeviceReading reading = device->read();
    CHECK_FALSE(reading.clock_events);
    CHECK_FALSE(reading.power_W);
    CHECK_THAT(runtime_error([&] { device->free_bytes(); }), Contains("nvmlDeviceGetMemoryInfo") && Contains("code 3"));
  }
  CHECK(fake->started == 0);
}

TEST_CASE("an older driver has other names and fewer functions") {
  Fake fake(WT_FAKE_NVML_OLD);
  fake->events[0] = kHwThermal;
  const auto device = fake.open();
  CHECK(device->facts().count("mig") == 0);
  CHECK(device->read().clock_events == kHwThermal);
}

TEST_CASE("a device by CUDA's digits, by its name, as a MIG part, and one that is not there") {
  Fake fake;
  CHECK(fake.open("0123456789abcdef0123456789abcdef"));
  CHECK(fake.open("GPU-01234567-89ab-cdef-0123-456789abcdef"));
  CHECK_THAT(runtime_error([&] { fake.open("ffffffffffffffffffffffffffffffff"); }),
             Contains("nvmlDeviceGetHandleByUUID") && Contains("Not Found (code 6)"));
  CHECK_THAT(runtime_error([&] { fake.open("x"); }), Contains("Not Found"));
  fake->uuid = "MIG-01234567-89ab-cdef-0123-456789abcdef";
  CHECK(fake.open("0123456789abcdef0123456789abcdef"));
}

TEST_CASE("a library that fails or is no NVML is an error that says so") {
  Fake fake;
  fake->init_code = 15;
  CHECK_THAT(runtime_error([&] { fake.open(); }), Contains("nvmlInit_v2") && Contains("GPU is lost (code 15)"));
  CHECK_THAT(runtime_error([] { open_nvml_device("", "libdl.so.2"); }), Contains("no such function"));
}

TEST_CASE("four clock events are slowdowns, the power cap is none") {
  CHECK(slowdowns(0x1 | 0x2 | 0x4 | 0x10 | 0x100).empty());
  CHECK(slowdowns(0x8 | 0x20 | 0x40 | 0x80) ==
        std::vector<std::string>{"hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"});
}

TEST_CASE("a measurement is told what was read during its samples and next to them") {
  const std::vector<TimedReading> readings = {at(0, 345, 100, 1), at(1, 1900, 600, 0), at(2, 1800, 700, kSwPowerCap),
                                              at(3, 1000, 400, kHwSlowdown), at(4, 1980, 500, 0)};
  Measurement within;
  add_conditions(within, readings, {{1.5, 2.5}});  // 1, 2 and 3
  CHECK(within.throttled == std::vector<std::string>{"hw_slowdown"});
  CHECK(within.counters.at("mean_sm_clock_MHz") == Approx((1900 + 1800 + 1000) / 3.0));
  CHECK(within.counters.at("min_sm_clock_MHz") == 1000);
  CHECK(within.counters.at("mean_power_W") == Approx((600 + 700 + 400) / 3.0));
  CHECK(within.counters.at("max_power_W") == 700);
  CHECK(within.counters.at("max_temperature_C") == 63);
  CHECK(within.counters.at("power_cap_share") == Approx(1 / 3.0));

  Measurement early;  // shorter than the interval: its neighbours 0 and 1 speak for it
  add_conditions(early, readings, {{0.4, 0.5}});
  CHECK(early.throttled.empty());
  CHECK(early.counters.at("mean_sm_clock_MHz") == Approx((345 + 1900) / 2.0));

  Measurement twice, late, none;
  add_conditions(twice, readings, {{0.4, 0.5}, {0.6, 0.7}, {3.2, 3.4}});  // 0, 1, 3 and 4, each once
  CHECK(twice.counters.at("mean_power_W") == Approx((100 + 600 + 400 + 500) / 4.0));
  CHECK(twice.throttled.size() == 1);
  add_conditions(late, readings, {{9, 10}});
  CHECK(late.counters.at("min_sm_clock_MHz") == 1980);
  add_conditions(none, {}, {{0, 1}});
  CHECK(none.counters.empty());
}

TEST_CASE("the run's conditions are facts, and silence of the driver is one, too") {
  const Fingerprint facts = conditions_of_run({at(0, 1900, 600, kSwPowerCap), at(1, 1801, 650, kHwPowerBrake)});
  CHECK(facts.at("run.clock_events") == "sw_power_cap, hw_power_brake");
  CHECK(facts.at("run.min_sm_clock_MHz") == "1801");
  CHECK(facts.at("run.max_power_W") == "650");
  CHECK(conditions_of_run({at(0, 1900, 600, 0)}).at("run.clock_events") == "none");
  CHECK(conditions_of_run({{0, {}}}) == Fingerprint{{"run.clock_events", "not readable"}});
}

TEST_CASE("the monitor reads at once, all along and at the end") {
  Fake fake;
  fake->events[1] = kHwSlowdown;
  DeviceMonitor monitor(*fake.open(), 1e-3);
  const std::vector<TimedReading> readings = monitor.stop();
  REQUIRE(readings.size() >= 2);
  CHECK(readings[0].is.clock_events == 0);
  CHECK(readings[1].is.clock_events == kHwSlowdown);
  for (std::size_t i = 1; i < readings.size(); ++i) CHECK(readings[i - 1].at_s <= readings[i].at_s);
  CHECK(monitor.stop().size() == readings.size());  // stopped is stopped
}

TEST_CASE("versions of the CUDA libraries come from the libraries") {
  CHECK(cuda_library_facts() == Fingerprint{{"cublas", "13.1.2"}, {"cudnn", "9.19.0"}, {"nccl", "2.28.9"}});
}

TEST_CASE("what else the host did: the line of /proc/stat, less what is our own") {
  const HostLoad load = parse_proc_stat("cpu  1000 200 300 9000 10 20 30 400 999 0\ncpu0 1 1 1 1 1 1 1 1\n", 100);
  CHECK(load.busy_s == Approx(15.5));  // guest time is user time already
  CHECK(load.stolen_s == Approx(4));
  CHECK(parse_proc_stat("", 100).busy_s == 0);
  CHECK(parse_proc_stat("cpu one two", 100).busy_s == 0);
  const Fingerprint facts = host_conditions({10, 100, 5, 50}, {20, 125, 10, 65});
  CHECK(facts.at("run.other_busy_cores") == "1.00");  // (25 - 15) / 10
  CHECK(facts.at("run.stolen_cores") == "0.50");
  CHECK(host_conditions({10, 100, 5, 50}, {20, 105, 5, 70}).at("run.other_busy_cores") ==
        "0.00");  // clocks disagree by a tick
  const HostLoad here = host_load();
  CHECK(here.busy_s > 0);
  CHECK(here.own_s >= 0);
}
