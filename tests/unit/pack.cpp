#include "trainer/data/pack.hpp"

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "tests/fixtures/gzip_file.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/data/mds_reader.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using wt::pack_text;
using wt::PackOptions;
using wt::test::read_bytes;
using wt::test::TempDirectory;
using wt::test::write_bytes;
using wt::test::write_gzip;
using Ids = std::vector<std::int32_t>;

namespace {

PackOptions sequence_of(std::int64_t seq_len) {
  PackOptions options;
  options.seq_len = seq_len;
  return options;
}

}  // namespace

TEST_CASE("bytes become tokens, files end with 256, neighbours share one token") {
  const TempDirectory directory;
  write_bytes(directory / "a", "abc");
  write_bytes(directory / "b", std::string("\xff\0xyz", 5));
  const auto result = pack_text({directory / "a", directory / "b"}, directory / "set", sequence_of(4));
  // a b c 256 ff 0 x y z 256: ten tokens, samples at 0 and 4, the last token left over
  CHECK(result.files == 2);
  CHECK(result.bytes == 8);
  CHECK(result.tokens == 10);
  CHECK(result.samples == 2);
  CHECK(result.dropped_tokens == 1);
  CHECK(result.shards == 1);
  const wt::MdsReader reader(directory / "set");
  REQUIRE(reader.size() == 2);
  CHECK(reader.tokens(0) == Ids{'a', 'b', 'c', 256, 255});
  CHECK(reader.tokens(1) == Ids{255, 0, 'x', 'y', 'z'});
}

TEST_CASE("every token but the first is predicted once") {
  const TempDirectory directory;
  std::string text;
  for (int i = 0; i < 1001; ++i) text += static_cast<char>(i * 31 % 251);
  write_bytes(directory / "text", text);
  for (const std::int64_t seq_len : {1, 7, 143, 1001}) {
    PackOptions options = sequence_of(seq_len);
    options.writer.overwrite = true;
    const auto result = pack_text({directory / "text"}, directory / "set", options);
    const wt::MdsReader reader(directory / "set");
    CHECK(result.samples == 1001 / seq_len);
    CHECK(result.tokens == 1 + result.samples * seq_len + result.dropped_tokens);
    Ids predicted;
    for (std::int64_t i = 0; i < reader.size(); ++i) {
      const Ids sample = reader.tokens(i);
      REQUIRE(static_cast<std::int64_t>(sample.size()) == seq_len + 1);
      predicted.insert(predicted.end(), sample.begin() + 1, sample.end());
    }
    Ids expected;
    for (std::size_t i = 1; i <= predicted.size(); ++i)
      expected.push_back(i < 1001 ? static_cast<unsigned char>(text[i]) : 256);
    CHECK(predicted == expected);
  }
}

TEST_CASE("gzip files are decompressed, also larger than a buffer") {
  const TempDirectory directory;
  std::string text;
  while (text.size() < 700'000) text += std::to_string(text.size() * text.size());
  write_bytes(directory / "plain", text);
  write_gzip(directory / "packed.gz", text);
  const auto plain = pack_text({directory / "plain"}, directory / "one", sequence_of(999));
  const auto packed = pack_text({directory / "packed.gz"}, directory / "two", sequence_of(999));
  CHECK(packed.bytes == text.size());
  CHECK(plain.samples == packed.samples);
  CHECK(read_bytes(directory / "one/shard.00000.mds") == read_bytes(directory / "two/shard.00000.mds"));
}

TEST_CASE("a directory stands for its regular files in sorted order") {
  const TempDirectory directory;
  fs::create_directories(directory / "text/b");
  write_bytes(directory / "text/c", "3");
  write_bytes(directory / "text/b/z", "2");
  write_bytes(directory / "text/a", "1");
  write_bytes(directory / "text/empty", "");
  fs::create_symlink(directory / "text/a", directory / "text/aa");
  fs::create_directory_symlink(directory / "text", directory / "text/loop");
  const auto result = pack_text({directory / "text"}, directory / "set", sequence_of(5));
  CHECK(result.files == 3);
  CHECK(result.empty_files == 1);
  CHECK(wt::MdsReader(directory / "set").tokens(0) == Ids{'1', 256, '2', 256, '3', 256});
}

TEST_CASE("an earlier data set is replaced only where that was asked for, and packing twice gives the same bytes") {
  const TempDirectory directory;
  write_bytes(directory / "text", "to be or not to be");
  pack_text({directory / "text"}, directory / "set", sequence_of(3));
  const std::string first = read_bytes(directory / "set/index.json");
  CHECK_THROWS_WITH(pack_text({directory / "text"}, directory / "set", sequence_of(4)),
                    Contains("set: found a dataset") && Contains("--overwrite"));
  CHECK(read_bytes(directory / "set/index.json") == first);
  PackOptions options = sequence_of(3);
  options.writer.overwrite = true;
  pack_text({directory / "text"}, directory / "set", options);
  CHECK(read_bytes(directory / "set/index.json") == first);
  CHECK(directory.entries() == 2);
}

TEST_CASE("progress ends at all stored bytes") {
  const TempDirectory directory;
  write_gzip(directory / "a.gz", std::string(5000, 'a'));
  write_bytes(directory / "b", "bcd");
  PackOptions options = sequence_of(10);
  std::vector<std::uint64_t> done;
  std::uint64_t all = 0;
  options.progress = [&](std::uint64_t bytes, std::uint64_t total) {
    done.push_back(bytes);
    all = total;
  };
  pack_text({directory / "a.gz", directory / "b"}, directory / "set", options);
  CHECK(all == fs::file_size(directory / "a.gz") + 3);
  CHECK(done.back() == all);
  CHECK(std::is_sorted(done.begin(), done.end()));
}

TEST_CASE("text that cannot be packed is an error and leaves nothing") {
  const TempDirectory directory;
  const fs::path text = directory / "text";
  const auto refuses = [&](const fs::path& input, std::int64_t seq_len, const std::string& why) {
    CHECK_THROWS_WITH(pack_text({input}, directory / "set", sequence_of(seq_len)), Contains(why));
    CHECK(directory.entries() == 1);
  };
  SECTION("missing") {
    write_bytes(text, "x");
    refuses(directory / "nowhere", 1, "nowhere: cannot be read: No such file");
  }
  SECTION("empty") {
    write_bytes(text, "");
    refuses(text, 1, "text: cannot be read: it is empty");
  }
  SECTION("too short") {
    write_bytes(text, "abc");
    refuses(text, 4, "found 4 tokens of text, allowed are at least seq_len + 1 = 5");
  }
  SECTION("no sequence") {
    write_bytes(text, "abc");
    refuses(text, 0, "--seq-len: found 0");
  }
  SECTION("directory without text") {
    fs::create_directory(text);
    refuses(text, 1, "holds no file with text");
  }
  SECTION("named .gz and not gzip") {
    write_bytes(directory / "plain.gz", "plain text");
    refuses(directory / "plain.gz", 1, "named .gz and is not gzip");
  }
  SECTION("cut off gzip") {
    std::string text_of_it(9000, 'x');
    text_of_it += "end";
    write_gzip(directory / "cut.gz", text_of_it);
    fs::resize_file(directory / "cut.gz", fs::file_size(directory / "cut.gz") - 6);
    refuses(directory / "cut.gz", 1, "cut.gz: cannot be read");
  }
  SECTION("damaged gzip") {
    write_gzip(directory / "bad.gz", "some text that was stored");
    auto bytes = read_bytes(directory / "bad.gz");
    bytes[bytes.size() - 7] ^= 1;  // in the checksum
    write_bytes(directory / "bad.gz", bytes);
    refuses(directory / "bad.gz", 1, "bad.gz: cannot be read");
  }
  CHECK_THROWS_WITH(pack_text({}, directory / "set"), Contains("no input"));
}

TEST_CASE("an output of someone else is not touched") {
  const TempDirectory directory;
  write_bytes(directory / "text", "abc");
  fs::create_directory(directory / "home");
  write_bytes(directory / "home/thesis.tex", "years of work");
  CHECK_THROWS_WITH(pack_text({directory / "text"}, directory / "home", sequence_of(1)),
                    Contains("home") && Contains("is not an earlier dataset"));
  CHECK(read_bytes(directory / "home/thesis.tex") == "years of work");
}

TEST_CASE("samples of seq_len, as LLM Foundry cuts them, and without wrapping") {
  const TempDirectory directory;
  write_bytes(directory / "a.jsonl", "{\"text\": \"abcde\"}\n{\"text\": \"fg\"}\n{\"text\": \"hijk\"}\n");
  PackOptions options = sequence_of(4);
  options.samples = wt::SampleKind::concat;
  // a b c d | e 256 f g | 256 h i j | k 256
  auto result = pack_text({directory / "a.jsonl"}, directory / "wrapped", options);
  CHECK(result.documents == 3);
  CHECK(result.tokens == 14);
  CHECK(result.dropped_tokens == 2);
  const wt::MdsReader wrapped(directory / "wrapped");
  REQUIRE(wrapped.size() == 3);
  CHECK(wrapped.tokens(1) == Ids{'e', 256, 'f', 'g'});
  CHECK(wrapped.tokens(2) == Ids{256, 'h', 'i', 'j'});
  // a b c d, e 256 dropped | f g 256 h, the rest of the third dropped
  options.wrap = false;
  result = pack_text({directory / "a.jsonl"}, directory / "cut", options);
  CHECK(result.dropped_tokens == 6);
  const wt::MdsReader cut(directory / "cut");
  REQUIRE(cut.size() == 2);
  CHECK(cut.tokens(1) == Ids{'f', 'g', 256, 'h'});
}

TEST_CASE("a document a sample, however long") {
  const TempDirectory directory;
  write_bytes(directory / "long", std::string(3 << 20, 'x'));
  write_bytes(directory / "short", "y");
  PackOptions options;
  options.samples = wt::SampleKind::document;
  CHECK(pack_text({directory / "long", directory / "short"}, directory / "set", options).dropped_tokens == 0);
  const wt::MdsReader reader(directory / "set");
  REQUIRE(reader.size() == 2);
  CHECK(reader.tokens(0).size() == (3 << 20) + 1);
  CHECK(reader.tokens(1) == Ids{'y', 256});
}

TEST_CASE("options that exclude one another are refused before anything is read") {
  const auto refuses = [](const PackOptions& options, const std::string& why) {
    CHECK_THROWS_WITH(pack_text({"/nowhere"}, "/nowhere/set", options), Contains(why));
  };
  PackOptions options;
  options.eos_text = std::string("x");
  refuses(options, "--bos-text, --eos-text: found beside");
  options = {};
  options.wrap = false;
  options.samples = wt::SampleKind::document;
  refuses(options, "--no-wrap: found beside");
  CHECK_THROWS_WITH(wt::sample_kind_from_string("documents"), Contains("did you mean 'document'?"));
}

TEST_CASE("column text holds UTF-8 alone") {
  const TempDirectory directory;
  write_bytes(directory / "a",
              "Gr\xf6\xdf"
              "e");
  PackOptions options;
  options.samples = wt::SampleKind::text;
  CHECK_THROWS_WITH(pack_text({directory / "a"}, directory / "set", options),
                    Contains("a: found bytes that are no UTF-8"));
  CHECK(directory.entries() == 1);
}
