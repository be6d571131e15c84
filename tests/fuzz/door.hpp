// A door: what takes text or bytes that came from anywhere. Whatever comes, it reads them or throws Error{usage}.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace wt::fuzz {

struct Door {
  std::string name;
  std::vector<std::string> seeds;  ///< what it reads without an error: one that is refused is a finding
  /// `folder`: empty at the first input; readers of files find theirs there.
  std::function<void(const std::string& input, const std::filesystem::path& folder)> read;
};

std::vector<Door> spec_doors();         ///< configs/files: YAML files and the words in them
std::vector<Door> recipe_doors();       ///< runs of other trainers
std::vector<Door> measurement_doors();  ///< profiles and what they are made of, machine models, tables
std::vector<Door> data_doors();         ///< MDS, text, safetensors, checkpoints, answers of object stores
std::vector<Door> record_doors();       ///< what runs, plans, watches and health checks have left behind
/// Of the program: fuzz_doors has the five above, fuzz_checkpoint_doors those of doors_checkpoint.cpp.
std::vector<Door> all_doors();

/// The seeds, then the files of tests/fuzz/corpus/NAME in the order of their names; a file *.repeated says how its
/// input is made. Throws Error{usage} where there are none.
std::vector<std::string> known_inputs(const Door& door);

/// What is wrong with how the door answered; empty where nothing is. `refused`: what a refusal says.
std::string answer(const Door& door, const std::string& input, const std::filesystem::path& folder,
                   std::string& refused);

/// Call it where a door goes on after a refusal: throws it again unless it is one of code usage that says something.
void need_refusal();

/// Doors that fail, each in another way: each must be found out.
std::vector<Door> planted_doors();

/// The bytes of a file of the source tree, cut after the last line that ends within `most` bytes.
std::string sample(const std::filesystem::path& file, std::size_t most = 6000);
/// The file `name` in the folder, with these bytes.
std::filesystem::path written(const std::filesystem::path& folder, const std::string& name, const std::string& bytes);

}  // namespace wt::fuzz
