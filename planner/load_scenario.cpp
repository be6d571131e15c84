#include "planner/load_scenario.hpp"

#include <filesystem>
#include <fstream>
#include <numeric>

#include "configs/spec/error.hpp"
#include "configs/spec/find.hpp"
#include "configs/spec/nearest.hpp"

namespace wt {
namespace {

Provenance evidence_in(const std::filesystem::path& file) {
  static const std::string kMark = "Evidence: ";
  std::ifstream in(file);
  for (std::string line; std::getline(in, line) && line.starts_with('#');) {
    const std::size_t at = line.find(kMark);
    if (at == std::string::npos) continue;
    const std::string word =
        line.substr(at + kMark.size(),
                    line.find_first_not_of("abcdefghijklmnopqrstuvwxyz", at + kMark.size()) - (at + kMark.size()));
    return {evidence_from_string(word), file.filename().string() + ": " + line.substr(2)};
  }
  return {Evidence::assumed, file.filename().string() + " does not say where its counts come from"};
}

}  // namespace

LoadScenario read_load_scenario(const std::string& name_or_file, std::int64_t experts) {
  std::filesystem::path file = name_or_file;
  if (!std::filesystem::is_regular_file(file)) file = configs_folder() / "routing" / (name_or_file + ".csv");
  if (!std::filesystem::is_regular_file(file)) {
    std::vector<std::string> names = preset_names("routing");
    std::erase(names, "README");
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
    throw_error(Code::usage, "'{}' is neither a file nor a histogram in configs/routing{}; histograms: {}",
                name_or_file, did_you_mean(name_or_file, names), list);
  }
  return {file.stem().string(), read_histogram(file, experts), evidence_in(file)};
}

std::vector<double> shares_of(const LoadScenario& scenario, std::int64_t layer) {
  std::vector<double> shares = scenario.counts[static_cast<std::size_t>(layer) % scenario.counts.size()];
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

LoadScenario load_scenario(const RoutingSource& routing, const std::string& name, std::int64_t layers,
                           std::int64_t source_ranks, std::int64_t first_step, std::int64_t last_step,
                           Provenance evidence) {
  if (layers < 1 || source_ranks < 1 || last_step < first_step)
    throw_error(Code::usage, "loads of {}: found {} layers, {} ranks, steps {} to {}; needs at least one of each", name,
                layers, source_ranks, first_step, last_step);
  LoadScenario out{name, {}, std::move(evidence)};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::vector<double> sum;
    for (std::int64_t step = first_step; step <= last_step; ++step)
      for (std::int64_t rank = 0; rank < source_ranks; ++rank) {
        const std::vector<double> counts = routing.counts(step, 0, layer, rank);
        sum.resize(counts.size(), 0.0);
        for (std::size_t e = 0; e < counts.size(); ++e) sum[e] += counts[e];
      }
    out.counts.push_back(std::move(sum));
  }
  return out;
}

}  // namespace wt
