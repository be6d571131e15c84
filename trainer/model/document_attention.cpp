#include "trainer/model/document_attention.hpp"

#include <algorithm>

#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

/// Queries of one document in one piece of a rank's tokens.
struct DocumentPart {
  std::int64_t queries, first_key, keys;
  std::optional<Tensor> mask;
};

std::vector<DocumentPart> parts_of(const std::vector<std::int64_t>& begins, std::int64_t seq,
                                   const std::vector<Tensor>& masks, std::int64_t pieces, std::int64_t length) {
  std::vector<DocumentPart> out;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const Tensor mask = masks.empty() ? Tensor() : masks[static_cast<std::size_t>(piece)];
    const std::int64_t first = pieces == 1 ? 0 : mask.size(3) - length, end = first + length;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const std::int64_t from = std::max(begins[i], first);
      const std::int64_t to = std::min(i + 1 < begins.size() ? begins[i + 1] : seq, end);
      if (from >= to) continue;
      DocumentPart part{to - from, begins[i], to - begins[i], {}};
      if (mask.defined()) part.mask = mask.narrow(2, from - first, part.queries).narrow(3, part.first_key, part.keys);
      if (mask.defined() && !mask.is_cpu()) part.mask = part.mask->contiguous();  // kernels require aligned rows
      out.push_back(std::move(part));
    }
  }
  return out;
}

}  // namespace

Tensor attend_documents(const Tensor& q, const Tensor& k, const Tensor& v, const Documents& documents,
                        const std::vector<Tensor>& masks, std::int64_t context, std::int64_t v_head_dim,
                        const AttentionCore& core) {
  const std::int64_t pieces = context == 1 ? 1 : 2, length = q.size(2) / pieces;
  // split() instead of narrow(), because its backward writes each gradient only once.
  const auto q_all = q.split(1, 0), k_all = k.split(1, 0), v_all = v.split(1, 0);
  std::vector<Tensor> out;
  for (std::size_t sequence = 0; sequence < q_all.size(); ++sequence) {
    const auto parts = parts_of(documents.at(sequence), k.size(2), masks, pieces, length);
    std::vector<std::int64_t> sizes;
    for (const DocumentPart& part : parts) sizes.push_back(part.queries);
    const auto queries = q_all[sequence].split_with_sizes(sizes, 2);
    std::vector<Tensor> keys, values;
    if (pieces == 1) {
      keys = k_all[sequence].split_with_sizes(sizes, 2), values = v_all[sequence].split_with_sizes(sizes, 2);
    } else {  // both pieces may see keys of the same document
      for (const DocumentPart& part : parts) {
        keys.push_back(k_all[sequence].narrow(2, part.first_key, part.keys));
        values.push_back(v_all[sequence].narrow(2, part.first_key, part.keys));
      }
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
      out.push_back(core(queries[i], keys[i], values[i], parts[i].mask).narrow(3, 0, v_head_dim)[0].transpose(0, 1));
  }
  return at::cat(out, 0);
}

}  // namespace wt
