#include "trainer/data/pack.hpp"

#include <utility>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "trainer/data/documents.hpp"
#include "trainer/data/packed_pieces.hpp"
#include "trainer/data/sample_writer.hpp"

namespace wt {
namespace fs = std::filesystem;
namespace {

const std::vector<std::string> kSampleKinds = {"overlapping", "concat", "document", "text", "finetune"};

void check_options(const PackOptions& options) {
  constexpr std::int64_t kMostTokens = 1 << 29;  // 2 GiB a sample, well below a shard's limit
  if (options.seq_len < 1 || options.seq_len > kMostTokens)
    throw_usage("--seq-len: found {}, allowed are 1 to {} tokens; choose the model's sequence length", options.seq_len,
                kMostTokens);
  const bool texts = !options.bos_text.empty() || !options.eos_text.empty();
  if (texts &&
      (options.tokenizer.empty() || options.samples == SampleKind::finetune || options.samples == SampleKind::text))
    throw_usage(
        "--bos-text, --eos-text: found beside samples that put no such token between documents, allowed with "
        "--tokenizer and the samples overlapping, concat and document; leave them out");
  const bool joined = options.samples == SampleKind::overlapping || options.samples == SampleKind::concat;
  if (!options.wrap && !joined)
    throw_usage(
        "--no-wrap: found beside samples that hold one document each, allowed with overlapping and concat; leave it "
        "out");
}

}  // namespace

SampleKind sample_kind_from_string(const std::string& word) {
  if (const auto kind = enumerator_of<SampleKind>(word, kSampleKinds)) return *kind;
  const std::string near = nearest(word, kSampleKinds);
  throw_usage("--samples: found '{}', allowed are {}; {}", word, fmt::join(kSampleKinds, ", "),
              near.empty() ? "choose one of them" : fmt::format("did you mean '{}'?", near));
}

PackResult pack_text(const std::vector<fs::path>& paths, const fs::path& out, const PackOptions& options) {
  check_options(options);
  PackResult result;
  using Unit = DocumentReader::Unit;
  DocumentReader documents(list_pack_inputs(paths, result.empty_files),
                           options.samples == SampleKind::finetune ? Unit::objects : Unit::text);
  const std::unique_ptr<PieceSource> pieces = packed_pieces(documents, options);
  SampleWriter writer(out, options, pieces->vocabulary());
  while (std::optional<PackedPiece> piece = pieces->next()) {
    writer.add(std::move(*piece));
    if (options.progress) options.progress(documents.position(), documents.stored_bytes());
  }
  if (options.progress) options.progress(documents.position(), documents.stored_bytes());
  result.files = documents.files();
  result.documents = documents.documents();
  result.empty_documents = documents.empty_documents();
  result.bytes = documents.bytes();
  result.vocabulary = pieces->vocabulary();
  result.tokens = writer.tokens();
  result.samples = writer.samples();
  result.dropped_tokens = writer.dropped_tokens();
  result.dropped_documents = writer.dropped_documents();
  if (result.samples == 0) {
    const bool overlapping = options.samples == SampleKind::overlapping;
    if (overlapping || options.samples == SampleKind::concat)
      throw_usage("{}: found {} tokens of text, allowed are at least {} = {}; give more text or lower --seq-len",
                  paths.front().string(), result.tokens, overlapping ? "seq_len + 1" : "seq_len",
                  options.seq_len + (overlapping ? 1 : 0));
    throw_usage(
        "{}: found no sample in {} documents ({} empty, {} with nothing to learn within {} tokens), allowed is at "
        "least one; give more text",
        paths.front().string(), result.documents + result.empty_documents, result.empty_documents,
        result.dropped_documents, options.seq_len);
  }
  result.shards = writer.finish().shards;
  return result;
}

}  // namespace wt
