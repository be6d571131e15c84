#include "tests/fuzz/door.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <typeinfo>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"

namespace wt::fuzz {

namespace fs = std::filesystem;

namespace {

/// What a file of the corpus stands for. NAME.repeated is a long input, made of its lines: a count and a JSON string
/// that is repeated so often.
std::string input_of(const fs::path& file) {
  const std::string text = read_file(file, "an input");
  if (file.extension() != ".repeated") return text;
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    const auto piece = nlohmann::json::parse(line.substr(space + 1)).get<std::string>();
    for (int i = std::stoi(line.substr(0, space)); i > 0; --i) out += piece;
  }
  return out;
}

}  // namespace

std::vector<std::string> known_inputs(const Door& door) {
  const fs::path corpus = fs::path("tests/fuzz/corpus") / door.name;
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(corpus, none)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> out = door.seeds;
  for (const fs::path& file : files) out.push_back(input_of(file));
  if (out.empty()) throw_usage("{}: found no seed, needs one in {}", door.name, corpus.string());
  return out;
}

std::string answer(const Door& door, const std::string& input, const fs::path& folder, std::string& refused) {
  try {
    door.read(input, folder);
    return "";
  } catch (const Error& e) {
    const std::string& said = refused = e.what();
    if (e.code() != Code::usage) return fmt::format("an error of code {}: {}", static_cast<int>(e.code()), said);
    if (said.empty()) return "an empty message";
    return "";
  } catch (const std::exception& e) {
    return fmt::format("{}: {}", typeid(e).name(), e.what());
  }
}

void need_refusal() {
  try {
    throw;
  } catch (const Error& e) {
    if (e.code() != Code::usage || std::string(e.what()).empty()) throw;
  }
}

std::string sample(const fs::path& file, std::size_t most) {
  const std::string text = read_file(file, "a sample, from the root of the source tree");
  return text.size() <= most ? text : text.substr(0, text.rfind('\n', most) + 1);
}

fs::path written(const fs::path& folder, const std::string& name, const std::string& bytes) {
  std::ofstream(folder / name, std::ios::binary | std::ios::trunc) << bytes;
  return folder / name;
}

}  // namespace wt::fuzz
