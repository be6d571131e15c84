#include "bench/formats/nccl_run.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <map>
#include <regex>

#include "configs/base/error.hpp"
#include "configs/base/parsed.hpp"

namespace wt {
namespace {

/// The programs of nccl-tests, and this project's names of their collectives.
const std::map<std::string, std::string> kPrograms{
    {"all_reduce", "all_reduce"}, {"all_gather", "all_gather"},  {"reduce_scatter", "reduce_scatter"},
    {"alltoall", "all_to_all"},   {"alltoallv", "all_to_all_v"}, {"broadcast", "broadcast"},
    {"reduce", "reduce"},         {"sendrecv", "send_recv"},     {"gather", "gather"},
    {"scatter", "scatter"},       {"hypercube", "hypercube"}};

std::string letters(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (std::isalpha(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(c));
  return out.ends_with("perf") ? out.substr(0, out.size() - 4) : out;
}

/// The longest program that the word is or ends with: "/opt/bin/all_reduce" is no "reduce".
std::string program_of(const std::string& word) {
  std::string longest;
  for (const auto& [program, collective] : kPrograms) {
    const bool ends =
        word.ends_with(program) && (word.size() == program.size() || word[word.size() - program.size() - 1] == '_');
    if (ends && program.size() > longest.size()) longest = program;
  }
  return longest;
}

}  // namespace

std::set<std::string> nccl_test_names(const std::string& text) {
  static const std::regex program("([a-z_]+?)_perf");  // with any suffix: _mpi, .exe, -cuda12
  std::set<std::string> out;
  if (text.find("_perf") == std::string::npos) return out;
  for (std::sregex_iterator it(text.begin(), text.end(), program), end; it != end; ++it)
    if (const std::string known = program_of((*it)[1]); !known.empty()) out.insert(kPrograms.at(known));
  return out;
}

std::string nccl_test_named(const std::string& said, const std::string& where) {
  std::string allowed;
  for (const auto& [program, collective] : kPrograms) {
    if (letters(program) == letters(said) || letters(collective) == letters(said)) return collective;
    allowed += (allowed.empty() ? "" : ", ") + program;
  }
  throw_usage("{}: found '{}', allowed {}", where, said, allowed);
}

std::optional<PrintedNumber> printed_number(const std::string& word) {
  const auto value = parsed<double>(word);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  const std::size_t e = std::min(word.find_first_of("eE"), word.size()), point = word.find('.');
  const int decimals = point < e ? static_cast<int>(e - point - 1) : 0;
  const int exponent = e < word.size() ? parsed<int>(word.substr(e + (word[e + 1] == '+' ? 2 : 1))).value_or(0) : 0;
  return PrintedNumber{*value, 0.5 * std::pow(10.0, exponent - decimals)};
}

void check_nccl_results(const std::string& wrong, const std::string& where) {
  // Tests before 2.13 print the largest error in place of the count.
  if (!wrong.empty() && wrong != "N/A" && !(parsed<double>(wrong).value_or(1) <= 1e-3))
    refuse_nccl(where, wrong + " wrong results",
                "0 or N/A; do not use this cluster's figures before it computes rightly");
}

std::string nccl_version(std::int64_t code) {  // nccl.h, NCCL_VERSION, since 2.9
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

void refuse_nccl(const std::string& where, const std::string& found, const std::string& allowed) {
  throw_usage("{}: found {}, allowed {}", where, found, allowed);
}

void NcclDeviceList::clear() { seen_.clear(); }

void NcclDeviceList::add(NcclRun& run, NcclDevice device, const std::string& index, const std::string& bus,
                         const std::string& where) {
  if (device.rank != static_cast<std::int64_t>(run.devices.size()))
    refuse_nccl(where, fmt::format("rank {} behind {} ranks", device.rank, run.devices.size()),
                "ranks 0, 1, 2, ... of one run");
  if (!run.devices.empty() && run.devices.front().gpu != device.gpu)
    refuse_nccl(where, "GPUs " + run.devices.front().gpu + " and " + device.gpu, "one kind of GPU");
  if (!seen_.insert({device.host, index, bus}).second)
    refuse_nccl(where, fmt::format("a second rank on device {} of host {}, bus id {}", index, device.host, bus),
                "a GPU a rank; hosts with one name count as one, give each its own");
  run.devices.push_back(std::move(device));
}

}  // namespace wt
