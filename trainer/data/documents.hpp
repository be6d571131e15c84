// Documents, one after the other, out of text files (a file is a document) and JSON lines (a line is one).
#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/pack_inputs.hpp"

namespace wt {

/// A document, or part of one: a text file is handed out in pieces of about a MiB that end with a line where there is
/// one, and never inside a character of UTF-8.
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
    objects,  ///< JSON objects alone, each handed out as JSON text
  };
  /// Throws Error{usage}: a text file among `inputs` where objects are wanted.
  DocumentReader(std::vector<PackInput> inputs, Unit unit);

  /// None at the end. Documents without text are counted and left out. Throws Error{usage} naming file and line: no
  /// JSON, no object, a missing key or one that holds no text; and as PackFile does.
  std::optional<DocumentPiece> next();

  std::int64_t files() const { return files_; }
  std::int64_t documents() const { return documents_; }
  std::int64_t empty_documents() const { return empty_documents_; }
  std::uint64_t bytes() const { return bytes_; }                                      ///< of text handed out
  std::uint64_t position() const { return done_ + (file_ ? file_->position() : 0); }  ///< stored bytes read
  std::uint64_t stored_bytes() const { return stored_; }                              ///< of all inputs

 private:
  bool open_next();
  void close();
  bool fill();  ///< reads on; false at the end of the file
  std::optional<DocumentPiece> next_piece();
  std::optional<DocumentPiece> next_line();
  std::optional<DocumentPiece> from_json(std::string_view text, const std::string& place);

  std::vector<PackInput> inputs_;
  Unit unit_;
  std::size_t next_input_ = 0;
  std::optional<PackFile> file_;
  bool json_ = false;
  bool at_end_ = false;  ///< of the open file
  bool within_ = false;  ///< a document whose first pieces were handed out
  std::string buffer_;
  std::size_t begin_ = 0;  ///< of what is not handed out yet, in buffer_
  std::int64_t line_ = 0;
  std::uint64_t handed_out_ = 0;       ///< bytes of a text file
  std::vector<std::string> elements_;  ///< of a .json file that is one array: JSON texts, the next one last
  std::int64_t element_ = 0;
  std::int64_t files_ = 0, documents_ = 0, empty_documents_ = 0;
  std::uint64_t bytes_ = 0, done_ = 0, stored_ = 0;
};

}  // namespace wt
