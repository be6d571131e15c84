// How long a rank waits for what another one reads or writes.
#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/communication/storage_progress.hpp"

using namespace wt;

namespace {

/// The answer is there after so many questions; meanwhile storage moves, as far as it does.
class SlowStore : public SharedStore {
 public:
  SlowStore(int questions, bool moves) : left_(questions), moves_(moves) {}
  void set(const std::string&, const std::string&) override { throw Error(Code::runtime, "nobody sets anything"); }
  std::string get(const std::string& key) override { return key == kStorageMoves ? std::to_string(told_) : "answer"; }
  bool has(const std::string& key) override {
    if (key == kStorageMoves) {
      told_ += moves_ ? 1 : 0;
      return true;
    }
    return --left_ < 0;
  }
  std::unique_ptr<SharedStore> reconnect() override { throw Error(Code::runtime, "one connection will do"); }
  int told() const { return told_; }

 private:
  int left_, told_ = 0;
  bool moves_;
};

}  // namespace

TEST_CASE("patience begins anew as long as storage moves, and ends when it stands still") {
  constexpr double kPatience_s = 1e-9;  // it is over at every question
  SlowStore moving(6, true);
  CHECK(wait_for(moving, "fetched", nullptr, kPatience_s) == "answer");
  CHECK(moving.told() == 6);
  SlowStore still(1'000'000, false);
  CHECK_THROWS_WITH(wait_for(still, "fetched", nullptr, kPatience_s), Catch::Contains("fetched: nothing heard for"));
  SlowStore patient(6, false);
  CHECK(wait_for(patient, "fetched") == "answer");
}

TEST_CASE("what moves is told at once, and then seldom") {
  struct Told : SlowStore {
    using SlowStore::SlowStore;
    void set(const std::string& key, const std::string& value) override { values.push_back(key + " = " + value); }
    std::vector<std::string> values;
  } store(0, false);
  StorageProgress progress(store, 3);
  for (int i = 0; i < 1000; ++i) progress.moves();
  REQUIRE_FALSE(store.values.empty());
  CHECK(store.values.size() < 100);  // ten seconds between two
  CHECK_THAT(store.values.front(), Catch::StartsWith("storage/moves = 3 "));
}

TEST_CASE("a store that is gone does not end what moves") {
  SlowStore gone(0, false);
  StorageProgress(gone, 0).moves();
}
