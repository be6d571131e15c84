// Checkpoints move between layouts without the loss of a bit: parameters and both AdamW moments, padding and permuted
// experts included. Real save and load; the ranks are threads that share a store.
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

#include "configs/spec/error.hpp"
#include "tests/support/temp_directory.hpp"
#include "tests/support/trainer_fixture.hpp"
#include "trainer/checkpoint.hpp"
#include "trainer/pch.hpp"
#include "trainer/safetensors.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using namespace wt::test;

namespace {

class ThreadStore : public SharedStore {
 public:
  void set(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
  }
  std::string get(const std::string& key) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return values_.count(key) > 0; });
    return values_[key];
  }
  bool has(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    return values_.count(key) > 0;
  }
  std::unique_ptr<SharedStore> connect_again() override { return std::make_unique<Connection>(*this); }

 private:
  struct Connection : SharedStore {
    explicit Connection(ThreadStore& of) : store(of) {}
    void set(const std::string& key, const std::string& value) override { store.set(key, value); }
    std::string get(const std::string& key) override { return store.get(key); }
    bool has(const std::string& key) override { return store.has(key); }
    std::unique_ptr<SharedStore> connect_again() override { return store.connect_again(); }
    ThreadStore& store;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// Saving and loading use the store alone.
class StoreOnly : public Communicators {
 public:
  StoreOnly(std::int64_t rank, ThreadStore& store) : rank_(rank), store_(store) {}
  std::int64_t rank() const override { return rank_; }
  SharedStore& store() override { return store_; }
  const IssuedCollective& last_issued() const override { refuse(); }
  Pending all_gather(Axis, at::Tensor, at::Tensor) override { refuse(); }
  Pending reduce_scatter(Axis, at::Tensor, at::Tensor) override { refuse(); }
  Pending all_reduce(Axis, at::Tensor) override { refuse(); }
  Pending all_to_all(Axis, at::Tensor, at::Tensor, std::vector<std::int64_t>, std::vector<std::int64_t>) override { refuse(); }
  Pending broadcast(Axis, at::Tensor) override { refuse(); }
  void barrier() override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw Error(Code::runtime, "checkpoints need no collective"); }
  std::int64_t rank_;
  ThreadStore& store_;
};

using Groups = std::vector<ShardedGroup>;

/// The rank's groups; moments as other seeds would draw the parameters, so that every value differs.
Groups groups_of(const RunSpec& run, std::int64_t rank) {
  Groups out;
  const auto add = [&](Group group, std::int64_t layer) {
    const GroupLayout layout = group_layout(run.model, run.layout, group, layer, rank);
    out.push_back(make_group(layout, run.seed));
    out.back().exp_avg.copy_(make_group(layout, run.seed + 1).master);
    out.back().exp_avg_sq.copy_(make_group(layout, run.seed + 2).master);
  };
  add(Group::embedding, -1), add(Group::head, -1);
  for (std::int64_t layer = 0; layer < run.model.layers; ++layer) add(Group::dense, layer), add(Group::expert, layer);
  return out;
}

void on_every_rank(const RunSpec& run, const std::function<void(std::int64_t, StoreOnly&)>& work) {
  ThreadStore store;
  std::vector<std::thread> ranks;
  for (std::int64_t rank = 0; rank < run.layout.world(); ++rank)
    ranks.emplace_back([&, rank] {
      StoreOnly communicators(rank, store);
      work(rank, communicators);
    });
  for (std::thread& rank : ranks) rank.join();
}

void save(const RunSpec& run, const std::filesystem::path& folder) {
  on_every_rank(run, [&](std::int64_t rank, StoreOnly& c) { save_checkpoint(folder, 7, run, SamplerState{1, 48, 1, 5, 1}, groups_of(run, rank), c); });
}

/// Values of the rank's groups that loading did not bring back exactly; everything when nothing was loaded.
std::int64_t lost(const RunSpec& run, const std::filesystem::path& folder) {
  std::atomic<std::int64_t> wrong = 0;
  on_every_rank(run, [&](std::int64_t rank, StoreOnly& c) {
    RunSpec other = run;
    other.seed += 100;  // what is not loaded keeps these values
    Groups expected = groups_of(run, rank), found = groups_of(other, rank);
    const auto loaded = load_newest_checkpoint(folder, run, found, c);
    if (!loaded || loaded->step != 7 || loaded->sampler != SamplerState{1, 48, 1, 5, 1}) wrong += 1;
    for (std::size_t g = 0; g < expected.size(); ++g) {
      const GroupLayout& l = expected[g].layout;
      const std::int64_t owned = std::clamp<std::int64_t>(l.elements - l.state_begin(), 0, l.state_elements);
      const auto differ = [&](const at::Tensor& a, const at::Tensor& b) {
        return at::ne(a.narrow(0, 0, owned), b.narrow(0, 0, owned)).sum().item<std::int64_t>();
      };
      wrong += differ(expected[g].master, found[g].master) + differ(expected[g].exp_avg, found[g].exp_avg) +
               differ(expected[g].exp_avg_sq, found[g].exp_avg_sq);
    }
  });
  return wrong;
}

/// A model so small that drawing its values takes no time; three shards of its embedding are padded.
RunSpec one_rank() {
  RunSpec run = small_run();
  run.model.d_model = 40, run.model.head_dim = 10, run.model.ffn = 12, run.model.vocab = 65;
  return run;
}

std::vector<RunSpec> all_runs() {
  std::vector<RunSpec> out = sharded_runs(one_rank());
  out.push_back(one_rank());
  out.push_back(with_layout(one_rank(), 1, 4, 2));
  out.back().layout.placement = {{7, 2, 5, 0, 3, 6, 1, 4}, {0, 1, 2, 3, 4, 5, 6, 7}, {1, 3, 5, 7, 0, 2, 4, 6}};
  return out;
}

}  // namespace

TEST_CASE("every layout reads every layout's checkpoint, bit for bit") {
  for (const RunSpec& writer : all_runs()) {
    const TempDirectory folder;
    save(writer, folder.path());
    CHECK(leftovers(folder.path()).empty());
    for (const RunSpec& reader : all_runs()) {
      INFO(writer.layout.name() << " -> " << reader.layout.name());
      CHECK(lost(reader, folder.path()) == 0);
    }
  }
}

TEST_CASE("the comparison sees one flipped bit, though the file's checksum agrees") {
  const TempDirectory folder;
  save(one_rank(), folder.path());
  const auto checkpoint = folder / "step-00000007", shard = checkpoint / "shard-00001-of-00001.safetensors";
  const auto checksum = [&] { return checksum_file(shard).xxh3; };
  const std::string before = checksum();
  std::string bytes = read_bytes(shard);
  bytes[bytes.size() - 4] ^= 1;
  write_bytes(shard, bytes);
  std::string manifest = read_bytes(checkpoint / "manifest.json");
  manifest.replace(manifest.find(before), before.size(), checksum());
  write_bytes(checkpoint / "manifest.json", manifest);
  CHECK(lost(one_rank(), folder.path()) == 1);
}
