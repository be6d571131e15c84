// The safetensors container and tensors put together from parts: golden bytes, properties of the cut, damage by name.
#include "trainer/safetensors/safetensors.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "configs/base/error.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/safetensors/sealed_document.hpp"
#include "trainer/safetensors/tensor_parts.hpp"

using namespace wt;
using namespace wt::test;

namespace {

using Shape = std::vector<std::int64_t>;

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::string refused(const std::string& bytes) {
  const TempDirectory folder;
  write_bytes(folder / "a.safetensors", bytes);
  try {
    read_safetensors(folder / "a.safetensors");
  } catch (const Error& e) {
    CHECK(e.code() == Code::usage);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a file is a length, a header padded to 8 bytes and the values; PyTorch's key says where parts begin") {
  const TempDirectory folder;
  const float values[] = {1, 2};
  write_safetensors(folder / "a.safetensors", {{"w", "F32", {1, 2}, values, {3, 0}}});
  const std::string bytes = read_bytes(folder / "a.safetensors");
  const std::uint64_t length = *reinterpret_cast<const std::uint64_t*>(bytes.data());
  CHECK((length % 8 == 0 && bytes.size() == 8 + length + 8));
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  CHECK(header.at("w") == nlohmann::json::parse(R"({"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]})"));
  CHECK(header.at("__metadata__").at("format") == "pt");
  CHECK(header.at("__metadata__").at("DCP_VERSION") == "1.0");
  CHECK(header.at("__metadata__").at("DCP_SHARDING_INFO") == R"({"w":{"saved_offsets":[3,0]}})");
}

TEST_CASE("whole tensors of any type come back as they went, and say nothing of sharding") {
  const TempDirectory folder;
  const std::uint16_t halves[] = {1, 2, 3};
  const double one = 1.5;
  write_safetensors(folder / "a.safetensors", {{"b", "BF16", {3}, halves}, {"s", "F64", {}, &one}});
  const StoredFile file = read_safetensors(folder / "a.safetensors");
  std::uint16_t last[2];
  read_values(file.tensors.at("b"), 1, 2, last);
  CHECK((last[0] == 2 && last[1] == 3));
  CHECK((file.tensors.at("s").shape.empty() && file.tensors.at("b").offsets == Shape{0}));
  CHECK(read_bytes(folder / "a.safetensors").find("DCP") == std::string::npos);
}

TEST_CASE("rectangles of a run follow one another, fill it and are no more than 2 dims - 1") {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    Shape shape(1 + random() % 3);
    for (auto& n : shape) n = 1 + random() % 5;
    const std::int64_t total = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    const std::int64_t begin = static_cast<std::int64_t>(random()) % total,
                       count = static_cast<std::int64_t>(random()) % (total - begin + 1);
    std::int64_t next = begin;
    const auto parts = rectangles(shape, begin, count);
    CHECK(parts.size() <= 2 * shape.size() - 1);
    for (const Rectangle& r : parts) {
      CHECK(r.begin == next);
      std::int64_t last = 0, size = 1;  // position of the rectangle's last value
      for (std::size_t d = 0; d < shape.size(); ++d) {
        CHECK((r.shape[d] >= 1 && r.offsets[d] + r.shape[d] <= shape[d]));
        last = last * shape[d] + r.offsets[d] + r.shape[d] - 1, size *= r.shape[d];
      }
      CHECK((size == r.count && last == r.begin + r.count - 1));  // contiguous: as many values as lie between its ends
      next += r.count;
    }
    CHECK(next == begin + count);
  }
  CHECK(rectangles({4, 6}, 3, 20).size() == 3);
  CHECK(rectangles({}, 0, 1).at(0).shape.empty());
  CHECK_THROWS_AS(rectangles({4, 6}, 20, 5), Error);
}

TEST_CASE("parts in several files are one tensor; a hole in it is named") {
  const TempDirectory folder;
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.f);
  std::vector<std::filesystem::path> files;
  for (const auto& [begin, count] : {std::pair{0, 7}, {7, 9}, {16, 8}})
    for (const Rectangle& r : rectangles({4, 6}, begin, count)) {
      files.push_back(folder / fmt::format("{}.safetensors", r.begin));
      write_safetensors(files.back(), {{"w", "F32", r.shape, values.data() + r.begin, r.offsets}});
    }
  CHECK(files.size() == 6);
  CHECK(StoredTensors(files).read("w") == values);
  std::vector<float> some(5);
  StoredTensors(files).read("w", 5, 5, some.data());
  CHECK(some == std::vector<float>{5, 6, 7, 8, 9});
  files.push_back(files[2]);  // the same part twice
  CHECK(StoredTensors(files).read("w") == values);
  files.erase(files.begin() + 2), files.pop_back();
  CHECK_THROWS_WITH(StoredTensors(files).read("w"), Catch::Contains("w: found 7 of values 0..24"));
  CHECK_THROWS_WITH(StoredTensors(files).read("v"), Catch::Contains("v: no such tensor"));
}

TEST_CASE("damage is found by tensor name") {
  const TempDirectory folder;
  const auto file = folder / "a.safetensors";
  const std::vector<float> values{1, 2, 3, 4};
  const WrittenFile written =
      write_safetensors(file, {{"first", "F32", {2}, values.data()}, {"second", "F32", {2}, values.data() + 2}});
  CHECK(damage_of(file, written).empty());
  const std::string good = read_bytes(file);
  const auto with_flipped = [&](std::size_t at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    write_bytes(file, bytes);
    return damage_of(file, written);
  };
  CHECK(with_flipped(good.size() - 1) == "a.safetensors: tensor second has another checksum");
  CHECK(with_flipped(good.size() - 9) == "a.safetensors: tensor first has another checksum");
  CHECK(with_flipped(20) == "a.safetensors: the header has another checksum");
  CHECK_THAT(with_flipped(6), Catch::Contains("header of") && Catch::Contains("does not fit the file"));
  write_bytes(file, good + "x");
  CHECK(damage_of(file, written) ==
        fmt::format("a.safetensors has another size: {} bytes of {}", good.size() + 1, good.size()));
  std::filesystem::remove(file);
  CHECK(damage_of(file, written) == "a.safetensors is missing");
}

TEST_CASE("what is not safetensors is refused with its reason") {
  const std::string data(8, 'x');
  CHECK_THAT(refused(""), Catch::Contains("cut off"));
  CHECK_THAT(refused(std::string(8, '\xff')), Catch::Contains("does not fit the file"));
  CHECK_THAT(refused(file_of("{\"w\":", data)), Catch::Contains("the header is not safetensors'"));
  CHECK_THAT(refused(file_of(R"({"w": {"shape": [2], "data_offsets": [0, 8]}})", data)), Catch::Contains("dtype"));
  CHECK_THAT(refused(file_of(R"({"w": {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}})", data)),
             Catch::Contains("w: found type F33"));
  CHECK_THAT(refused(file_of(R"({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", data)),
             Catch::Contains("shape [3], offsets [0] and bytes 0..8 disagree"));
  CHECK_THAT(refused(file_of(R"({"w": {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]}})", data)),
             Catch::Contains("disagree"));
  CHECK_THAT(refused(file_of(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})", data)),
             Catch::Contains("lie outside the file"));
  // Sizes whose products and differences no 64 bits hold.
  const std::vector<std::pair<const char*, const char*>> kCases{
      {R"("F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0])", "and bytes 0..0 disagree"},
      {R"("F64", "shape": [2305843009213693952], "data_offsets": [0, 0])", "and bytes 0..0 disagree"},
      {R"("F32", "shape": [2], "data_offsets": [-9223372036854775808, 9223372036854775807])",
       "bytes -9223372036854775808..9223372036854775807 disagree; the file is damaged"},
      {R"("F32", "shape": [2], "data_offsets": [8, 0])", "bytes 8..0 disagree; the file is damaged"},
      {R"("F32", "shape": [2], "data_offsets": [9223372036854775800, 9223372036854775807])",
       "lie outside the file; it is cut off"}};
  for (const auto& [tensor, said] : kCases)
    CHECK_THAT(refused(file_of(fmt::format(R"({{"w": {{"dtype": {}}}}})", tensor), data)), Catch::Contains(said));
  CHECK_THAT(
      refused(file_of(
          R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"DCP_SHARDING_INFO": "{\"w\":{\"saved_offsets\":[0,0]}}"}})",
          data)),
      Catch::Contains("offsets [0,0]"));
  const TempDirectory folder;
  const float value = 0;
  CHECK_THROWS_WITH(write_safetensors(folder / "a", {{"w", "F32", {1}, &value}, {"w", "F32", {1}, &value}}),
                    Catch::Contains("w: twice in one safetensors file"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("no bit of a sealed document can be flipped unseen") {
  using nlohmann::json;
  const json document{{"step", 12}, {"sampler", {{"epoch", 1}, {"sample_in_epoch", 240}}}, {"files", {"a", "b"}}};
  const std::string text = sealed(document).dump();
  CHECK(unsealed(json::parse(text)) == document);
  CHECK(sealed(json::parse(text)).dump() == text);
  const auto seen = [](const std::string& changed) {
    const json found = json::parse(changed, nullptr, /*allow_exceptions=*/false);
    if (found.is_discarded()) return true;
    try {
      unsealed(found);
    } catch (const Error& e) {
      return e.code() == Code::usage;
    }
    return false;
  };
  CHECK(seen(document.dump()));
  CHECK(seen("[]"));
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    INFO(changed);
    CHECK(seen(changed));
  }
}
