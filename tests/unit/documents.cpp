#include "trainer/data/documents.hpp"

#include <zlib.h>

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "tests/fixtures/temp_directory.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using wt::DocumentPiece;
using wt::DocumentReader;
using wt::test::TempDirectory;
using wt::test::write_bytes;
using Unit = wt::DocumentReader::Unit;

namespace {

std::vector<DocumentPiece> read_all(const std::vector<fs::path>& files, Unit unit = Unit::text) {
  std::int64_t empty = 0;
  DocumentReader reader(wt::list_pack_inputs(files, empty), unit);
  std::vector<DocumentPiece> pieces;
  while (auto piece = reader.next()) pieces.push_back(*piece);
  CHECK(reader.files() == static_cast<std::int64_t>(files.size()));
  return pieces;
}

std::vector<std::string> texts_of(const std::vector<DocumentPiece>& pieces) {
  std::vector<std::string> texts;
  for (const DocumentPiece& piece : pieces) texts.push_back(piece.text);
  return texts;
}

}  // namespace

TEST_CASE("a line of JSON is a document: escapes, blank lines, no line end at the end, empty texts") {
  const TempDirectory directory;
  write_bytes(
      directory / "a.jsonl",
      "{\"text\": \"one\\n\\u00fc\"}\r\n\n  {\"id\": 1, \"text\": \"two\"}\n{\"text\": \"\"}\n{\"text\": \"3\"}");
  std::int64_t empty = 0;
  DocumentReader reader(wt::list_pack_inputs({directory / "a.jsonl"}, empty), Unit::text);
  std::vector<DocumentPiece> pieces;
  while (auto piece = reader.next()) pieces.push_back(*piece);
  CHECK(texts_of(pieces) == std::vector<std::string>{"one\n\xc3\xbc", "two", "3"});
  CHECK(pieces[1].place == (directory / "a.jsonl").string() + ": line 3");
  CHECK(reader.documents() == 3);
  CHECK(reader.empty_documents() == 1);
  CHECK(reader.bytes() == 6 + 3 + 1);
  CHECK(reader.position() == reader.stored_bytes());
}

TEST_CASE("a list of objects is JSON, too, and so is what gzip holds") {
  const TempDirectory directory;
  write_bytes(directory / "a.json", "[{\"text\": \"a\"},\n {\"text\": \"b\"}]\n");
  const gzFile out = ::gzopen((directory / "b.jsonl.gz").c_str(), "wb");
  const std::string line = "{\"text\": \"c\"}\n";
  CHECK(::gzwrite(out, line.data(), static_cast<unsigned>(line.size())) == static_cast<int>(line.size()));
  CHECK(::gzclose(out) == Z_OK);
  CHECK(texts_of(read_all({directory / "a.json", directory / "b.jsonl.gz"})) ==
        std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("lines longer than what is read at once stay whole") {
  const TempDirectory directory;
  std::vector<std::string> expected;
  std::string lines;
  for (const std::size_t size : {1u << 20, 3u << 20, 1u, (1u << 20) - 12}) {
    expected.emplace_back(size, static_cast<char>('a' + expected.size()));
    lines += "{\"text\": \"" + expected.back() + "\"}\n";
  }
  write_bytes(directory / "a.jsonl", lines);
  CHECK(texts_of(read_all({directory / "a.jsonl"})) == expected);
}

TEST_CASE("a text file comes in pieces that end with a line, or behind a character") {
  const TempDirectory directory;
  std::string lines, signs = "x";
  while (lines.size() < (5u << 19)) lines += std::to_string(lines.size()) + "\n";
  while (signs.size() < (5u << 19)) signs += "\xf0\x9f\x99\x82";
  write_bytes(directory / "lines", lines);
  write_bytes(directory / "signs", signs);
  for (const auto& [name, text] : {std::pair{"lines", lines}, std::pair{"signs", signs}}) {
    const auto pieces = read_all({directory / name});
    REQUIRE(pieces.size() == 3);
    std::string joined;
    for (const DocumentPiece& piece : pieces) {
      CHECK(piece.begins == (&piece == &pieces.front()));
      CHECK(piece.ends == (&piece == &pieces.back()));
      CHECK((static_cast<unsigned char>(piece.text.front()) & 0xC0) != 0x80);  // the middle of no character
      if (name == std::string("lines")) CHECK(piece.text.back() == '\n');
      joined += piece.text;
    }
    CHECK(joined == text);
    CHECK_THAT(pieces[1].place, Contains(fmt::format(": from byte {}", pieces[0].text.size())));
  }
}

TEST_CASE("a text file whose size is that of a piece is one piece") {
  const TempDirectory directory;
  for (const std::size_t size : {(1u << 20) - 1, 1u << 20, (1u << 20) + 1}) {
    write_bytes(directory / "a", std::string(size, 'x'));
    const auto pieces = read_all({directory / "a"});
    CHECK(pieces.size() == (size <= 1u << 20 ? 1 : 2));
    CHECK(pieces.back().ends);
  }
}

TEST_CASE("lines that hold no document are errors with their place") {
  const TempDirectory directory;
  const fs::path file = directory / "a.jsonl";
  const std::string good = "{\"text\": \"x\"}\n";
  const auto refuses = [&](const std::string& line, const std::string& why) {
    write_bytes(file, good + good + line + "\n" + good);
    CHECK_THROWS_WITH(read_all({file}), Contains("a.jsonl: line 3: found " + why));
  };
  refuses("{\"text\": \"x\"", "text that is no JSON");
  refuses("{\"text\": \"\xff\"}", "text that is no JSON");
  refuses("{\"text\": " + std::string(300, '[') + std::string(300, ']') + "}",
          "objects and lists in more than 200 levels");
  refuses("[\"x\"]", "array");
  refuses("\"x\"", "string");
  refuses("{\"body\": \"x\", \"id\": 2}", "the keys body, id");
  refuses("{}", "no key");
  refuses("{\"text\": 7}", "text: number");
  write_bytes(file, "[{\"text\": \"x\"}, {\"text\"]");
  CHECK_THROWS_WITH(read_all({file}), Contains("text that is no JSON, which begins as a list"));
  write_bytes(file, "[{\"text\": \"x\"}, 5]");
  CHECK_THROWS_WITH(read_all({file}), Contains("a.jsonl: element 2: found number"));
}

TEST_CASE("objects are handed out whole, and text files are none") {
  const TempDirectory directory;
  write_bytes(directory / "a.jsonl", "{\"prompt\": \"p\", \"response\": \"r\"}\n");
  write_bytes(directory / "a.txt", "text");
  CHECK(texts_of(read_all({directory / "a.jsonl"}, Unit::objects)) ==
        std::vector<std::string>{"{\"prompt\":\"p\",\"response\":\"r\"}"});
  CHECK_THROWS_WITH(read_all({directory / "a.txt"}, Unit::objects), Contains("a.txt: found a file of text"));
}
