// Reads documents in sequence from text files (one document each) and JSON lines (one document per line).
#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/pack_inputs.hpp"

namespace wt {

/// A document, or part of one. A text file is read in pieces of about a MiB that end at a line if possible, and never
/// inside a UTF-8 character.
struct DocumentPiece {
  std::string text;
  std::string place;  ///< for errors: "a.jsonl: line 7", "a.txt: from byte 1048400"
  bool begins = true;
  bool ends = true;
};

class DocumentReader {
 public:
  enum class Unit {
    text,     ///< text files, and the key "text" of JSON objects
    objects,  ///< only JSON objects, each returned as JSON text
  };
  /// Throws Error{usage} for a text file among `inputs` with Unit::objects.
  DocumentReader(std::vector<PackInput> inputs, Unit unit);

  /// None at the end. Empty documents are counted and skipped. Throws Error{usage} with file and line: no JSON, no
  /// object, a missing key or one that is not text; and as PackFile does.
  std::optional<DocumentPiece> next();

  std::int64_t files() const { return files_; }
  std::int64_t documents() const { return documents_; }
  std::int64_t empty_documents() const { return empty_documents_; }
  std::uint64_t bytes() const { return bytes_; }                                      ///< of returned text
  std::uint64_t position() const { return done_ + (file_ ? file_->position() : 0); }  ///< stored bytes read
  std::uint64_t stored_bytes() const { return stored_; }                              ///< of all inputs

 private:
  bool open_next();
  void close();
  bool fill();  ///< reads more; false at the end of the file
  std::optional<DocumentPiece> next_piece();
  std::optional<DocumentPiece> next_line();
  std::optional<DocumentPiece> from_json(std::string_view text, const std::string& place);

  std::vector<PackInput> inputs_;
  Unit unit_;
  std::size_t next_input_ = 0;
  std::optional<PackFile> file_;
  bool json_ = false;
  bool at_end_ = false;  ///< of the open file
  bool within_ = false;  ///< inside a document whose first pieces were returned
  std::string buffer_;
  std::size_t begin_ = 0;  ///< of unreturned text in buffer_
  std::int64_t line_ = 0;
  std::uint64_t handed_out_ = 0;       ///< bytes returned of a text file
  std::vector<std::string> elements_;  ///< of a .json file that is one array: JSON texts in reverse order
  std::int64_t element_ = 0;
  std::int64_t files_ = 0, documents_ = 0, empty_documents_ = 0;
  std::uint64_t bytes_ = 0, done_ = 0, stored_ = 0;
};

}  // namespace wt
