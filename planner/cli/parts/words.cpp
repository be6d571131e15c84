#include "planner/cli/parts/words.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace wt {
namespace {

/// For a larger number, CLI11 silently uses the largest representable one.
Word whole(CLI::Option* option) {
  return Word(option->check([](const std::string& text) {
    errno = 0;
    std::strtoll(text.c_str(), nullptr, 10);
    return errno == ERANGE ? "found " + text + ", allowed are whole numbers of 64 bits" : std::string();
  }));
}

}  // namespace

Word Word::required() const { return Word(option_->required()); }
Word Word::existing_folder() const { return Word(option_->check(CLI::ExistingDirectory)); }
Word Word::between(std::int64_t least, std::int64_t most) const {
  return Word(option_->check(CLI::Range(least, most)));
}
Word Word::between(double least, double most) const { return Word(option_->check(CLI::Range(least, most))); }
Word Word::count(int least, int most) const { return Word(option_->expected(least, most)); }
Word Word::one_a_mention() const { return Word(option_->allow_extra_args(false)); }
Word Word::shows_default() const { return Word(option_->capture_default_str()); }
Word Word::needs(const Word& other) const { return Word(option_->needs(other.option_)); }
Word Word::excludes(const Word& other) const { return Word(option_->excludes(other.option_)); }

Command::Command(CLI::App& parent, const std::string& name, const std::string& help)
    : app_(parent.add_subcommand(name, help)) {}
Command Command::subcommand(const std::string& name, const std::string& help) const { return {*app_, name, help}; }
void Command::require_subcommand() const { app_->require_subcommand(1); }

Word Command::option(const std::string& name, std::string& value, const std::string& help) const {
  return Word(app_->add_option(name, value, help));
}
Word Command::option(const std::string& name, std::filesystem::path& value, const std::string& help) const {
  return Word(app_->add_option(name, value, help));
}
Word Command::option(const std::string& name, std::int64_t& value, const std::string& help) const {
  return whole(app_->add_option(name, value, help));
}
Word Command::option(const std::string& name, std::optional<std::int64_t>& value, const std::string& help) const {
  return whole(app_->add_option(name, value, help));
}
Word Command::option(const std::string& name, std::uint64_t& value, const std::string& help) const {
  return Word(app_->add_option(name, value, help));
}
Word Command::option(const std::string& name, double& value, const std::string& help) const {
  return Word(app_->add_option(name, value, help));
}
Word Command::option(const std::string& name, std::vector<std::string>& values, const std::string& help) const {
  return Word(app_->add_option(name, values, help));
}
Word Command::output(std::string& place, Output kind, const std::string& help) const {
  return Word(app_->add_option("-o,--output", place, help)->check(writable(kind)));
}
Word Command::output(std::filesystem::path& place, Output kind, const std::string& help) const {
  return Word(app_->add_option("-o,--output", place, help)->check(writable(kind)));
}
Word Command::flag(const std::string& name, bool& value, const std::string& help) const {
  return Word(app_->add_flag(name, value, help));
}

void Command::runs(std::function<void()> action) const {
  app_->callback([app = app_, action = std::move(action)] {
    if (app->get_subcommands().empty()) action();
  });
}

}  // namespace wt
