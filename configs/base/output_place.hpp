// Whether a command can write where it is told to, known before its work.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

namespace wt {

enum class Output { file, folder, either };

/// Why nothing can be written there, "" where it can: a file where a folder must be or the other way round, no
/// permission. Creates nothing. Standard output ("-") and devices are files that can be written.
std::string refused_output(const std::filesystem::path& output, Output kind);
/// The same as a check of an option's value, which CLI11 calls while it parses.
std::function<std::string(const std::string&)> writable(Output kind);

}  // namespace wt
