#include "bench/store/store_bandwidth.hpp"

#include <unistd.h>
#include <xxhash.h>

#include <random>

#include "bench/store/loopback_store.hpp"
#include "configs/base/atomic_file.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/base/text.hpp"
#include "trainer/safetensors/safetensors.hpp"
#include "trainer/storage/file_store.hpp"
#include "trainer/storage/s3_store.hpp"

namespace wt {
namespace {

constexpr double kLongestFetch_s = 3600;

/// A measured store and the names of its rows.
struct BenchedStore {
  std::string kernel;  ///< "checkpoint" for the rows checkpoint_write and checkpoint_read
  Store& store;
  bool returns_bytes;  ///< it returns the bytes that it was given
  std::string source;
};

std::string random_bytes(std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string out(static_cast<std::size_t>(n) + 8, '\0');
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); i += 8) {
    const std::uint64_t word = random();
    std::copy_n(reinterpret_cast<const char*>(&word), 8, out.data() + i);
  }
  out.resize(static_cast<std::size_t>(n));
  return out;
}

std::uint64_t hash_of_file(const std::filesystem::path& file) {
  const std::string bytes = read_file(file, "what was written a moment ago");
  return XXH3_64bits(bytes.data(), bytes.size());
}

Measurement store_row(const std::string& kernel, std::int64_t bytes) {
  Measurement m;
  m.kernel = kernel;
  m.pass = "";
  m.dtype = "fp32";
  m.shape = {{"bytes", bytes}, {"ranks", 1}};
  return m;
}

double seconds_of(const std::function<void()>& call) {
  const double begin = steady_s();
  call();
  return steady_s() - begin;
}

struct StoreSeries {
  Measurement write, read;
  std::string error = {};
};

void take_turn(const BenchedStore& of, StoreSeries& series, const std::filesystem::path& from, std::uint64_t hash,
               const std::filesystem::path& scratch) {
  const std::string name = fmt::format("windtunnel-bench-{}-{}", getpid(), from.filename().string());
  const std::filesystem::path to = scratch / "back";
  const auto clean_up = [&]() noexcept {
    try {
      std::filesystem::remove(to);
      of.store.remove(name);
    } catch (const std::exception&) {  // the first error is reported
    }
  };
  try {
    series.write.samples.push_back(seconds_of([&] { of.store.upload(from, name); }));
    if (const auto* files = dynamic_cast<FileStore*>(&of.store))
      drop_cached(std::filesystem::path(files->address()) / name);
    series.read.samples.push_back(seconds_of([&] { of.store.fetch(name, to, kLongestFetch_s); }));
    if (of.returns_bytes && hash_of_file(to) != hash)
      throw_runtime("{}: gives back other bytes than it was given; this storage loses data", of.store.address());
  } catch (const std::exception& e) {
    series.error = e.what();
  }
  clean_up();
}

void add_series(Profile& out, const BenchedStore& of, StoreSeries series) {
  for (Measurement* m : {&series.write, &series.read}) {
    if (!series.error.empty()) {
      out.failures.push_back({m->name(), series.error});
      continue;
    }
    if (of.returns_bytes) m->counters["max_rel_error"] = 0;  // every sample was compared with the original
    m->evidence = {Evidence::measured, fmt::format("{} samples, {}", m->samples.size(), of.source)};
    out.measurements.push_back(std::move(*m));
  }
}

}  // namespace

Profile bench_store(const StoreBenchOptions& options, const std::function<void(const std::string&)>& starting) {
  const auto store = open_store(options.address);
  const ScratchFolder scratch(".windtunnel-bench", options.folder);
  FileStore disk(scratch.path() / "disk");
  LoopbackStore server;
  S3Store client({"loopback", ""}, {server.url() + "/loopback", "us-east-1"}, AwsCredentials{"loopback", "loopback"});
  const std::vector<BenchedStore> stores = {
      {"checkpoint", *store, true,
       options.address + (is_remote_address(options.address) ? ", whose own caches are as they are" : "")},
      {"disk", disk, true, "the same bytes on the local disk"},
      {"client", client, false, "the same bytes to and from a store of this process: the client's own limit"}};
  std::vector<std::vector<StoreSeries>> series(stores.size());
  for (std::size_t s = 0; s < stores.size(); ++s)
    for (const std::int64_t bytes : options.bytes)
      series[s].push_back(
          {store_row(stores[s].kernel + "_write", bytes), store_row(stores[s].kernel + "_read", bytes)});
  for (int sample = 0; sample < options.samples; ++sample)
    for (std::size_t b = 0; b < options.bytes.size(); ++b) {
      const std::filesystem::path from = scratch.path() / fmt::format("{}-{}", options.bytes[b], sample);
      const std::string bytes = random_bytes(options.bytes[b], options.seed + static_cast<std::uint64_t>(sample));
      write_file_atomically(from, bytes);
      starting(fmt::format("{}, sample {} of {}", format_bytes(static_cast<double>(options.bytes[b])), sample + 1,
                           options.samples));
      for (std::size_t s = 0; s < stores.size(); ++s)
        if (series[s][b].error.empty())
          take_turn(stores[s], series[s][b], from, XXH3_64bits(bytes.data(), bytes.size()), scratch.path());
      std::filesystem::remove(from);
    }
  Profile out;
  for (std::size_t s = 0; s < stores.size(); ++s)
    for (StoreSeries& of : series[s]) add_series(out, stores[s], std::move(of));
  return out;
}

std::map<std::string, std::string> store_facts(const std::string& address) {
  std::map<std::string, std::string> facts{{"run.store", address}};
  if (is_remote_address(address))
    facts["run.store_endpoint"] = url_host(s3_endpoint(parse_s3_address(address).bucket).url);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  facts["run.store_client_memory"] = format_bytes(memory);
  return facts;
}

}  // namespace wt
