// Benchmarks of nanoseconds to 20 us, as a library's own ones are: what compare_with_itself.py compares with itself.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

void hash(benchmark::State& state) {
  const std::string text(static_cast<std::size_t>(state.range(0)), 'a');
  for (auto _ : state) benchmark::DoNotOptimize(std::hash<std::string>{}(text));
}

void find(benchmark::State& state) {
  std::unordered_map<int, int> map;
  const int size = static_cast<int>(state.range(0));
  for (int i = 0; i < size; ++i) map[7 * i] = i;
  int key = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(map.find(key));
    key = (key + 7 * 13) % (7 * size);
  }
}

void sort(benchmark::State& state) {
  std::vector<int> values(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    unsigned random = 1;
    for (int& value : values) value = static_cast<int>((random = random * 1664525 + 1013904223) >> 8);
    std::sort(values.begin(), values.end());
    benchmark::ClobberMemory();
  }
}

void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<char> from(bytes, 'a');
  std::vector<char> to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
}

void sum(benchmark::State& state) {
  const std::vector<float> values(static_cast<std::size_t>(state.range(0)), 1.0f);
  for (auto _ : state) {
    float total = 0;
    for (const float value : values) total += value;
    benchmark::DoNotOptimize(total);
  }
}

BENCHMARK(hash)->Arg(16)->Arg(256)->Arg(4096);
BENCHMARK(find)->Arg(64)->Arg(4096);
BENCHMARK(sort)->Arg(16)->Arg(64)->Arg(512);
BENCHMARK(copy)->Arg(64)->Arg(4096)->Arg(65536);
BENCHMARK(sum)->Arg(64)->Arg(2048);

}  // namespace

BENCHMARK_MAIN();
