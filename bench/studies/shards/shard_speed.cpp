// The cost of reading MDS shards:
//   shard_speed read [MIB]      tokens from a local data set, uncompressed and compressed: the first time and again
//   shard_speed hash [MIB]      every hash that an index may have, CPU seconds per GB
//   shard_speed index [SHARDS]  index.json of that many compressed shards with two hashes: CPU seconds and memory
// One run prints a whole table, so that its rows come from one machine in one state.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <random>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/scratch_folder.hpp"
#include "trainer/data/mds_hash.hpp"
#include "trainer/data/mds_writer.hpp"
#include "trainer/data/shard_cache.hpp"

using namespace wt;

namespace {

constexpr std::size_t kSampleTokens = 2049;

/// Tokens as skewed as text: Zipf's law, and half of them repeat one of 64 to 127 positions before.
std::vector<std::uint16_t> tokens_like_text(std::mt19937_64& random) {
  std::vector<std::uint16_t> tokens(kSampleTokens);
  std::uniform_real_distribution<double> unit(0, 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t back = 64 + random() % 64;
    tokens[i] =
        i > back && random() % 2 == 0 ? tokens[i - back] : static_cast<std::uint16_t>(std::pow(50000.0, unit(random)));
  }
  return tokens;
}

double process_cpu_s() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/// Wall and CPU seconds of reading every sample in order.
std::pair<double, double> read_all(const std::filesystem::path& folder, std::uint64_t& sum) {
  DatasetSpec spec;
  spec.use_folder(folder);
  const double wall_s = steady_s(), cpu_s = process_cpu_s();
  const ShardCache cache(spec);
  std::vector<std::int64_t> ahead;
  for (std::int64_t id = 0; id < cache.size(); ++id) ahead.push_back(id);
  cache.prefetch(ahead);
  for (const std::int64_t id : ahead) sum += static_cast<std::uint64_t>(cache.tokens(id).back());
  return {steady_s() - wall_s, process_cpu_s() - cpu_s};
}

void read(std::uint64_t mib) {
  const ScratchFolder scratch("shard-speed");
  std::mt19937_64 random(1);  // NOLINT: a fixed seed, for the same tokens in every run
  std::vector<std::vector<std::uint16_t>> samples;
  for (std::uint64_t bytes = 0; bytes < mib << 20; bytes += 2 * kSampleTokens)
    samples.push_back(tokens_like_text(random));
  std::cout << "compression  stored/raw  first: MB/s  CPU s/GB   again: MB/s  CPU s/GB   again/uncompressed\n";
  double uncompressed_s = 0;
  for (const char* const codec : {"", "snappy", "zstd:3", "zstd:7", "gz:6", "br:5", "bz2:9"}) {
    const std::filesystem::path folder = scratch.path() / "set";
    std::filesystem::remove_all(folder);
    MdsWriter writer(folder, {{"tokens", "ndarray:uint16"}}, {{"xxh3_64"}, 1 << 26, codec});
    for (const auto& tokens : samples) writer.write_tokens(tokens);
    const MdsSummary set = writer.finish();
    const double gb = 1e-9 * static_cast<double>(set.bytes);
    std::uint64_t first_sum = 0, again_sum = 0;
    const auto [first_s, first_cpu_s] = read_all(folder, first_sum);
    const auto [again_s, again_cpu_s] = read_all(folder, again_sum);
    if (first_sum != again_sum) throw_runtime("{}: read other tokens again, allowed are the same", codec);
    if (*codec == 0) uncompressed_s = again_s;
    std::cout << fmt::format("{:11}  {:10.2f}  {:11.0f}  {:8.2f}   {:11.0f}  {:8.2f}   {:18.2f}\n",
                             *codec == 0 ? "none" : codec,
                             static_cast<double>(set.stored) / static_cast<double>(set.bytes), 1e3 * gb / first_s,
                             first_cpu_s / gb, 1e3 * gb / again_s, again_cpu_s / gb, uncompressed_s / again_s)
              << std::flush;
  }
}

void hash(std::uint64_t mib) {
  std::string bytes(mib << 20, '\0');
  std::mt19937_64 random(1);  // NOLINT: as above
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (const char* const name : {"xxh3_64", "xxh3_128", "xxh64", "xxh32", "sha1", "sha256", "sha224", "blake2b", "md5",
                                 "sha512", "sha384", "blake2s", "sha3_224", "sha3_256", "sha3_384", "sha3_512"}) {
    const double begin_s = thread_cpu_s();
    mds_hash(name, {std::as_bytes(std::span(bytes))});
    std::cout << fmt::format("{:9} {:6.3f} s/GB\n", name,
                             (thread_cpu_s() - begin_s) / (1e-9 * static_cast<double>(bytes.size())));
  }
}

void index(std::uint64_t shards) {
  const ScratchFolder scratch("shard-speed");
  {
    std::ofstream out(scratch.path() / kMdsIndexName);
    out << R"({"shards": [)";
    for (std::uint64_t i = 0; i < shards; ++i) {
      const std::string name = fmt::format("{}/shard.{:05}.mds", i / 1000, i % 1000);
      const auto file = [&](const char* suffix, std::uint64_t bytes) {
        return fmt::format(
            R"({{"basename": "{}{}", "bytes": {}, "hashes": {{"sha1": "{:040x}", "xxh3_64": "{:016x}"}}}})", name,
            suffix, bytes, i, i);
      };
      out << (i == 0 ? "" : ", ")
          << fmt::format(
                 R"({{"column_encodings": ["ndarray:int32"], "column_names": ["tokens"], "column_sizes": [null], )"
                 R"("compression": "zstd:7", "format": "mds", "hashes": ["sha1", "xxh3_64"], "raw_data": {}, )"
                 R"("samples": {}, "size_limit": 67108864, "version": 2, "zip_data": {}}})",
                 file("", 67100000), 4000 + i % 90, file(".zstd", 30000000));
    }
    out << R"(], "version": 2})";
  }
  DatasetSpec spec;
  spec.use_folder(scratch.path());
  const double begin_s = steady_s(), cpu_s = process_cpu_s();
  const ShardCache cache(spec);
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::cout << fmt::format(
      "{} shards, index of {} MB: {:.1f} s, CPU {:.1f} s, peak memory {} MB with the mapped index\n", shards,
      std::filesystem::file_size(scratch.path() / kMdsIndexName) / 1000000, steady_s() - begin_s,
      process_cpu_s() - cpu_s, use.ru_maxrss / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  try {
    const std::string what = words.size() > 1 ? words[1] : "";
    const auto number = [&](std::uint64_t usual) { return words.size() > 2 ? std::stoull(words[2]) : usual; };
    if (what == "read")
      read(number(512));
    else if (what == "hash")
      hash(number(512));
    else if (what == "index")
      index(number(500000));
    else
      throw_usage("shard_speed: found '{}', allowed are read, hash and index; give one of these", what);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return error.exit_status();
  }
}
