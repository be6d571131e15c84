// Checkpoints move between layouts without the loss of a bit: parameters and both AdamW moments, padding and permuted
// experts included. Real save and load; the ranks are threads that share a store.
#include <catch2/catch.hpp>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "trainer/checkpoint/agreement.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/pch.hpp"
#include "trainer/safetensors/safetensors.hpp"
#include "trainer/safetensors/sealed_document.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using namespace wt::test;

namespace {

/// Every state that can be read will do.
const UnfitState kFits = [](std::int64_t, const SamplerState&) { return std::string(); };

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
  std::unique_ptr<SharedStore> reconnect() override { return std::make_unique<Connection>(*this); }

 private:
  struct Connection : SharedStore {
    explicit Connection(ThreadStore& of) : store(of) {}
    void set(const std::string& key, const std::string& value) override { store.set(key, value); }
    std::string get(const std::string& key) override { return store.get(key); }
    bool has(const std::string& key) override { return store.has(key); }
    std::unique_ptr<SharedStore> reconnect() override { return store.reconnect(); }
    ThreadStore& store;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

struct Done : PendingWork {
  void wait() override {}
  bool done() override { return true; }
};

/// Saving and loading use the store, and broadcasts over the replicas: bytes in the store.
class StoreOnly : public Communicators {
 public:
  StoreOnly(std::int64_t rank, const Layout& layout, ThreadStore& store) : rank_(rank), mesh_(layout), store_(store) {}
  std::int64_t rank() const override { return rank_; }
  SharedStore& store() override { return store_; }
  const IssuedCollective& last_issued() const override { refuse(); }
  Pending all_gather(Axis, at::Tensor, at::Tensor) override { refuse(); }
  Pending reduce_scatter(Axis, at::Tensor, at::Tensor) override { refuse(); }
  Pending all_reduce(Axis, at::Tensor) override { refuse(); }
  Pending all_to_all(Axis, at::Tensor, at::Tensor, std::vector<std::int64_t>, std::vector<std::int64_t>) override {
    refuse();
  }
  Pending broadcast(Axis axis, at::Tensor tensor) override {
    const std::string key =
        fmt::format("broadcast/{}/{}/{}", to_string(axis), mesh_.group_index(axis, rank_), broadcasts_++);
    if (mesh_.coordinate(axis, rank_) == 0)
      store_.set(key, std::string(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()));
    else
      std::memcpy(tensor.data_ptr(), store_.get(key).data(), tensor.nbytes());
    return std::make_unique<Done>();
  }
  void barrier() override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw Error(Code::runtime, "checkpoints need no such collective"); }
  std::int64_t rank_;
  Mesh mesh_;
  int broadcasts_ = 0;
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
      StoreOnly communicators(rank, run.layout, store);
      work(rank, communicators);
    });
  for (std::thread& rank : ranks) rank.join();
}

void save(const RunSpec& run, const std::filesystem::path& folder) {
  on_every_rank(run, [&](std::int64_t rank, StoreOnly& c) {
    CheckpointSaver saver(folder, run, c, {}, {}, [](std::int64_t, const SaveTimes&) {});
    saver.save(7, SamplerState{1, 48, 1, 5, 1}, groups_of(run, rank));
    saver.finish();
  });
}

/// Values of the rank's groups that loading did not bring back exactly; everything when nothing was loaded. Ranks that
/// keep copies of the state have no folder: what they get, they get from those that hold it first.
std::int64_t lost(const RunSpec& run, const std::filesystem::path& folder) {
  std::atomic<std::int64_t> wrong = 0;
  on_every_rank(run, [&](std::int64_t rank, StoreOnly& c) {
    RunSpec other = run;
    other.seed += 100;  // what is not loaded keeps these values
    Groups expected = groups_of(run, rank), found = groups_of(other, rank);
    const auto loaded = load_newest_checkpoint(rank < Mesh(run.layout).size(Axis::state) ? folder : "nowhere", run,
                                               found, c, nullptr, kFits);
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

/// A model so small that drawing its values takes no time. Shares of two, three and four ranks cut rows of it, and
/// three shards of its embedding are padded.
RunSpec one_rank() {
  RunSpec run = small_run();
  run.model.layers = 2, run.model.d_model = 20, run.model.head_dim = 5, run.model.ffn = 6, run.model.vocab = 65,
  run.model.experts = 12;
  return run;
}

/// Every way to arrange one to four ranks; two of them with experts elsewhere than in order; optimizer states cut
/// further; copies of experts; sequences shared.
std::vector<RunSpec> all_runs() {
  std::vector<RunSpec> out;
  for (std::int64_t world = 1; world <= 4; ++world)
    for (std::int64_t shard = 1; shard <= world; ++shard)
      for (std::int64_t expert = 1; expert <= shard; ++expert)
        if (world % shard == 0 && shard % expert == 0)
          out.push_back(with_layout(one_rank(), world / shard, shard, expert));
  for (const std::int64_t shard : {2, 4}) {
    out.push_back(with_layout(one_rank(), 4 / shard, shard, 2));
    out.back().layout.placement = {{7, 11, 2, 5, 0, 3, 9, 6, 1, 8, 4, 10}, {1, 3, 5, 7, 9, 11, 0, 2, 4, 6, 8, 10}};
  }
  for (const auto& [replicate, shard, optimizer] : {std::array{2, 1, 2}, {3, 1, 3}, {2, 2, 2}, {4, 1, 2}, {4, 1, 4}}) {
    out.push_back(with_layout(one_rank(), replicate, shard, shard));
    out.back().layout.optimizer_shard = optimizer;
  }
  out.push_back(with_layout(one_rank(), 1, 2, 2));  // experts with copies on both ranks, and on one
  out.back().layout.placement = {{0, 1, 2, 3, 4, 5, 3, 6, 7, 8, 9, 10, 11, 3},
                                 {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 2}};
  out.push_back(with_layout(one_rank(), 1, 4, 4));
  out.back().layout.context = 2;
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

TEST_CASE("the comparison sees one flipped bit, though every checksum agrees") {
  const TempDirectory folder;
  save(one_rank(), folder.path());
  const auto checkpoint = folder / "step-00000007", shard = checkpoint / "shard-00001-model-00001-of-00001.safetensors";
  const StoredFile before = read_safetensors(shard);
  std::vector<std::vector<float>> values;
  std::vector<OutgoingTensor> tensors;
  for (const auto& [key, stored] : before.tensors) {
    values.emplace_back(static_cast<std::size_t>(stored.elements()));
    read_values(stored, 0, stored.elements(), values.back().data());
    if (key == "norm.weight") values.back()[3] = std::nextafter(values.back()[3], 2.f);
    tensors.push_back({key, stored.dtype, stored.shape, values.back().data(), stored.offsets});
  }
  const WrittenFile changed = write_safetensors(shard, tensors);
  auto manifest = read_json(checkpoint / "manifest.json");
  manifest["files"][0]["bytes"] = changed.bytes, manifest["files"][0]["header_xxh3"] = changed.header_xxh3;
  write_bytes(checkpoint / "manifest.json", sealed(manifest).dump());
  CHECK(lost(one_rank(), folder.path()) == 1);
}

TEST_CASE("a save returns before anything is written, and what is written are the values of that moment") {
  const RunSpec run = with_layout(one_rank(), 1, 2, 2);
  const TempDirectory folder;
  std::promise<void> zeroed;
  on_every_rank(run, [&](std::int64_t rank, StoreOnly& c) {
    Groups groups = groups_of(run, rank);
    CheckpointSaver saver(folder.path(), run, c, {}, {}, [](std::int64_t, const SaveTimes&) {});
    if (rank == 0) zeroed.get_future().wait();  // until then there is not even a folder to write to
    saver.save(7, SamplerState{1, 48, 1, 5, 1}, groups);
    for (ShardedGroup& g : groups) g.master.zero_(), g.exp_avg.zero_(), g.exp_avg_sq.zero_();
    if (rank == 1) zeroed.set_value();
    saver.finish();
  });
  CHECK(lost(run, folder.path()) == 0);
}

TEST_CASE("a saver that ends without finishing gives up what it was writing") {
  const RunSpec run = with_layout(one_rank(), 1, 2, 1);
  const TempDirectory folder;
  on_every_rank(run, [&](std::int64_t rank, StoreOnly& c) {
    CheckpointSaver saver(folder.path(), run, c, {}, {}, [](std::int64_t, const SaveTimes&) {});
    if (rank == 0) saver.save(7, SamplerState{1, 48, 1, 5, 1}, groups_of(run, rank));  // rank 1 never does
  });
  CHECK(folder.entries() == 0);
}

TEST_CASE("every rank hears that one of them could not write, and the next save is none the worse for it") {
  const RunSpec run = with_layout(one_rank(), 2, 2, 1);
  const TempDirectory folder;
  write_bytes(folder / "step-00000007.partial", "in the way");
  std::atomic<int> failed = 0;
  on_every_rank(run, [&](std::int64_t rank, StoreOnly& c) {
    CheckpointSaver saver(folder / "step-00000007.partial", run, c, {}, {}, [](std::int64_t, const SaveTimes&) {});
    saver.save(7, SamplerState{}, groups_of(run, rank));
    try {
      saver.finish();
    } catch (const Error& e) {
      failed += e.code() == Code::runtime && std::string(e.what()).find("checkpoint of step 7 was not written") == 0;
    }
  });
  CHECK(failed == 4);
  save(run, folder.path());
  CHECK(lost(run, folder.path()) == 0);
}

TEST_CASE("a checkpoint with a tensor more, a tensor less or another shape is of another model, on every rank") {
  const TempDirectory folder;
  const RunSpec saved = with_layout(one_rank(), 1, 2, 2);
  save(saved, folder.path());
  const auto refused = [&](const std::function<void(Groups&)>& change) {
    const RunSpec run = with_layout(one_rank(), 2, 2, 2);
    std::atomic<int> count = 0;
    std::string said;
    on_every_rank(run, [&](std::int64_t rank, StoreOnly& c) {
      Groups groups = groups_of(run, rank);
      change(groups);
      try {
        load_newest_checkpoint(folder.path(), run, groups, c, nullptr, kFits);
      } catch (const Error& e) {
        if (rank == 0) said = e.what();
        count += e.code() == Code::usage;
      }
    });
    CHECK(count == 4);
    return said;
  };
  CHECK_THAT(refused([](Groups& g) { g.erase(g.begin()); }),
             Catch::Contains("does not have: embedding.weight, state.embedding.weight.exp_avg"));
  CHECK_THAT(refused([](Groups& g) { g[0].layout.parameters[0].name = "wte"; }),
             Catch::Contains("wte: no such tensor"));
  CHECK_THAT(refused([](Groups& g) {
               g[0].layout.parameters[0].shape = {20, 65};
             }),
             Catch::Contains("embedding.weight: found shape [65,20], the model has [20,65]"));
}

TEST_CASE("a state that cannot be judged is none to go on from, and a judge that throws is heard on every rank") {
  const RunSpec run = with_layout(one_rank(), 2, 2, 1);
  const TempDirectory folder;
  save(run, folder.path());
  std::atomic<int> refused = 0, told = 0;
  on_every_rank(run, [&](std::int64_t rank, StoreOnly& c) {
    Groups groups = groups_of(run, rank);
    try {
      load_newest_checkpoint(folder.path(), run, groups, c, nullptr,
                             [](std::int64_t, const SamplerState&) -> std::string { throw std::out_of_range("no"); });
    } catch (const Error& e) {
      refused += e.code() == Code::usage && std::string(e.what()).find("step-00000007: no)") != std::string::npos;
    }
    try {
      agree(c, 4, "nothing", "", [](const auto&) -> std::string { throw Error(Code::runtime, "cannot be judged"); });
    } catch (const Error& e) {
      told += std::string(e.what()) == "cannot be judged";
    }
  });
  CHECK(refused == 4);
  CHECK(told == 4);
}

// tests/python/checkpoint_reader_test.py runs this one, and reads what it wrote with PyTorch.
TEST_CASE("checkpoints for PyTorch's reader", "[.reader]") {
  const std::filesystem::path folder = std::getenv("WT_READER_FOLDER");
  for (const RunSpec& run : all_runs())
    save(run, folder / fmt::format("{} {}", run.layout.name(), run.layout.placement.empty() ? "" : "placed"));
  std::vector<OutgoingTensor> whole;
  const Groups groups = groups_of(one_rank(), 0);
  const float step = 7;
  for (const ShardedGroup& g : groups)
    for (const ParameterInfo& p : g.layout.parameters) {
      whole.push_back({p.name, "F32", p.shape, g.master.data_ptr<float>() + p.offset});
      whole.push_back({"state." + p.name + ".exp_avg", "F32", p.shape, g.exp_avg.data_ptr<float>() + p.offset});
      whole.push_back({"state." + p.name + ".exp_avg_sq", "F32", p.shape, g.exp_avg_sq.data_ptr<float>() + p.offset});
      whole.push_back({"state." + p.name + ".step", "F32", {}, &step});
    }
  write_safetensors(folder / "expected.safetensors", whole);
}
