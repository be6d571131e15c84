#include "trainer/data/examples.hpp"

#include <fmt/format.h>

namespace wt {

Examples::Examples(const ShardCache& data, const DatasetSpec& spec, std::int64_t max_seq_len)
    : data_(data),
      spec_(spec.finetuning.value()),
      folder_(spec.folder().string()),
      max_seq_len_(max_seq_len),
      sizes_(static_cast<std::size_t>(data.size())) {}

LabelledTokens Examples::example(std::int64_t id) const {
  return labelled_tokens(data_.payload(id), spec_, max_seq_len_, fmt::format("{}: sample {}", folder_, id));
}

ExampleSize Examples::size(std::int64_t id) {
  ExampleSize& known = sizes_.at(static_cast<std::size_t>(id));
  if (known.tokens > 0) return known;
  const LabelledTokens read = example(id);
  known = {static_cast<std::int32_t>(read.tokens.size()), static_cast<std::int32_t>(read.targets())};
  return known;
}

}  // namespace wt
