#include "configs/files/dataset.hpp"

#include <array>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr std::array kShuffles{"naive", "py1s", "py2s", "py1br", "py1e"};
constexpr std::array kBatchings{"random", "stratified", "per_stream", "device_per_stream"};

std::string inside(const std::string& folder, const std::string& split) {
  if (folder.empty() || split.empty()) return folder;
  return folder + (folder.back() == '/' ? "" : "/") + split;
}

}  // namespace

std::string to_string(ShuffleAlgorithm algorithm) { return word_for(algorithm, kShuffles); }

ShuffleAlgorithm shuffle_algorithm_from_string(const std::string& word) {
  if (const auto known = enumerator_of<ShuffleAlgorithm>(word, kShuffles)) return *known;
  throw_usage("shuffle_algo: found '{}', allowed are naive, py1s, py2s, py1br, py1e; use {} of these words", word,
              word == "py1b" ? "py1br, which replaced it," : "one");
}

std::string to_string(SamplingMethod method) { return method == SamplingMethod::fixed ? "fixed" : "balanced"; }
std::string to_string(BatchingMethod method) { return word_for(method, kBatchings); }
std::string to_string(PartitionAlgorithm algorithm) {
  return algorithm == PartitionAlgorithm::orig ? "orig" : "relaxed";
}

std::string StreamSpec::remote_folder() const { return inside(remote, split); }
std::string StreamSpec::local_folder() const { return inside(local, split); }

std::filesystem::path DatasetSpec::folder() const {
  if (streams.empty()) return {};
  const std::string local = streams.front().local_folder();
  return local.empty() ? streams.front().remote_folder() : local;
}

std::int64_t samples_of_epoch(const DatasetSpec& spec, const std::string& where) {
  if (spec.empty())
    throw_usage("{}: found epochs without a data set; needs train_loader, or batches such as 40ba", where);
  if (spec.epoch_size) return *spec.epoch_size;
  std::int64_t sum = 0;
  for (const StreamSpec& stream : spec.streams) {
    if (stream.choose) {
      sum += *stream.choose;
      continue;
    }
    const std::string local = stream.local_folder();
    const std::int64_t samples = samples_of(local.empty() ? stream.remote_folder() : local, where);
    sum += stream.repeat ? static_cast<std::int64_t>(*stream.repeat * static_cast<double>(samples)) : samples;
  }
  return sum;
}

std::int64_t DatasetSpec::samples_drawn(std::int64_t sequences) const {
  if (!packs()) return sequences;
  return static_cast<std::int64_t>(static_cast<double>(sequences) * finetuning->packing_ratio);
}

void DatasetSpec::use_folder(const std::filesystem::path& folder) {
  streams.clear();
  curriculum.clear();
  epoch_size.reset();
  finetuning.reset();
  if (!folder.empty()) streams.emplace_back().local = folder.string();
}

}  // namespace wt
