// The words of a subcommand: the part of CLI11 that subcommands use. Only words.cpp includes CLI11 for them, because
// its headers cost three seconds of compile time per source.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/base/output_place.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace wt {

/// A flag, an option or a positional word, and its rules. A command line that breaks a rule is refused when it is
/// parsed.
class Word {
 public:
  explicit Word(CLI::Option* option) : option_(option) {}
  Word required() const;
  Word existing_folder() const;
  Word between(std::int64_t least, std::int64_t most) const;
  Word between(double least, double most) const;
  Word count(int least, int most) const;  ///< number of values
  Word one_a_mention() const;             ///< for a list: --x a --x b, so that a positional word may follow
  Word shows_default() const;             ///< shows its current value as the default in the help
  Word needs(const Word& other) const;
  Word excludes(const Word& other) const;

 private:
  CLI::Option* option_;
};

/// A subcommand. Parsed values go to the given variables, which must live as long as the command line.
class Command {
 public:
  Command(CLI::App& parent, const std::string& name, const std::string& help);
  Command subcommand(const std::string& name, const std::string& help) const;
  void require_subcommand() const;

  /// "-o,--output", or a name without dashes for a positional word.
  Word option(const std::string& name, std::string& value, const std::string& help) const;
  Word option(const std::string& name, std::filesystem::path& value, const std::string& help) const;
  Word option(const std::string& name, std::int64_t& value, const std::string& help) const;
  Word option(const std::string& name, std::optional<std::int64_t>& value, const std::string& help) const;
  Word option(const std::string& name, std::uint64_t& value, const std::string& help) const;
  Word option(const std::string& name, double& value, const std::string& help) const;
  Word option(const std::string& name, std::vector<std::string>& values, const std::string& help) const;
  /// "-o,--output". A place where nothing of its kind can be written is refused before the work.
  Word output(std::string& place, Output kind, const std::string& help) const;
  Word output(std::filesystem::path& place, Output kind, const std::string& help) const;
  Word flag(const std::string& name, bool& value, const std::string& help) const;

  /// Called after parsing, unless a subcommand of this one was named.
  void runs(std::function<void()> action) const;
  /// The same with the options that it returns, into which words are parsed.
  template <typename Options>
  std::shared_ptr<Options> runs(void (*action)(const Options&)) const {
    auto options = std::make_shared<Options>();
    runs([options, action] { action(*options); });
    return options;
  }

 private:
  CLI::App* app_;
};

}  // namespace wt
