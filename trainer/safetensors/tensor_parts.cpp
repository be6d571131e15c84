#include "trainer/safetensors/tensor_parts.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <ranges>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "trainer/safetensors/manifest.hpp"

namespace wt {
namespace {

using Shape = std::vector<std::int64_t>;

/// Row-major position of `offsets` in a tensor of `shape`.
std::int64_t flat_position(const Shape& shape, const Shape& offsets) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) position = position * shape[d] + offsets[d];
  return position;
}

/// Whether a rectangle is a contiguous range of the flattened tensor: leading ones, one arbitrary dim, then whole dims.
bool is_run(const Shape& shape, const Shape& part) {
  std::size_t d = 0;
  while (d < part.size() && part[d] == 1) ++d;
  return d == part.size() || std::equal(part.begin() + static_cast<std::ptrdiff_t>(d) + 1, part.end(),
                                        shape.begin() + static_cast<std::ptrdiff_t>(d) + 1);
}

/// Appends the rectangles of a range inside the sub-tensor selected by `prefix` in the leading dims.
void add_rectangles(const Shape& shape, Shape prefix, std::int64_t begin, std::int64_t count,
                    std::vector<Rectangle>& out) {
  const std::size_t dim = prefix.size();
  const auto rest = shape.begin() + static_cast<std::ptrdiff_t>(dim);
  const auto emit = [&](std::int64_t first, std::int64_t n) {  // n whole rows of this dim
    Rectangle r{prefix, Shape(dim, 1), 0, n * elements_of({rest + 1, shape.end()})};
    r.offsets.push_back(first), r.shape.push_back(n);
    r.offsets.resize(shape.size(), 0);
    r.shape.insert(r.shape.end(), rest + 1, shape.end());
    r.begin = flat_position(shape, r.offsets);
    out.push_back(std::move(r));
  };
  const auto within = [&](std::int64_t row, std::int64_t from, std::int64_t n) {
    prefix.push_back(row);
    add_rectangles(shape, prefix, from, n, out);
    prefix.pop_back();
  };
  const std::int64_t row = elements_of({rest + 1, shape.end()});
  if (const std::int64_t inside = begin % row; inside != 0) {
    const std::int64_t n = std::min(count, row - inside);
    within(begin / row, inside, n);
    begin += n, count -= n;
  }
  if (const std::int64_t rows = count / row; rows > 0)
    emit(begin / row, rows), begin += rows * row, count -= rows * row;
  if (count > 0) within(begin / row, 0, count);
}

}  // namespace

std::vector<Rectangle> rectangles(const Shape& shape, std::int64_t begin, std::int64_t count) {
  if (begin < 0 || count < 0 || begin + count > elements_of(shape))
    throw_runtime("values {}..{} of a tensor of {} values", begin, begin + count, elements_of(shape));
  std::vector<Rectangle> out;
  if (count == 0) return out;
  if (shape.empty()) return {{{}, {}, 0, 1}};
  add_rectangles(shape, {}, begin, count, out);
  return out;
}

StoredTensors::StoredTensors(const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files)
    for (auto& [key, stored] : read_safetensors(file).tensors) {
      if (stored.dtype != "F32") throw_usage("{}: {}: found {}, needs F32", file.string(), key, stored.dtype);
      Shape& shape = tensors_[key].shape;
      if (shape.empty()) shape.assign(stored.shape.size(), 0);
      if (shape.size() != stored.shape.size())
        throw_usage("{}: {}: found {} dims, another file has {}; the files are not of one checkpoint", file.string(),
                    key, stored.shape.size(), shape.size());
      for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = std::max(shape[d], stored.offsets[d] + stored.shape[d]);
      tensors_[key].parts.push_back({0, std::move(stored)});
    }
  for (auto& [key, tensor] : tensors_) {
    for (Part& part : tensor.parts) {
      if (!is_run(tensor.shape, part.stored.shape))
        throw_usage(
            "{}: {}: a part cut in columns; only runs of the flattened tensor can be read: convert the checkpoint with "
            "PyTorch",
            part.stored.file.string(), key);
      part.begin = flat_position(tensor.shape, part.stored.offsets);
    }
    std::ranges::sort(tensor.parts, {}, &Part::begin);
  }
}

StoredTensors StoredTensors::of_checkpoint(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  const nlohmann::json manifest = read_manifest(folder);
  for (const auto& file : manifest.at("files")) files.push_back(folder / file.at("name").get<std::string>());
  return StoredTensors(files);
}

std::vector<std::string> StoredTensors::keys() const { return mapped(std::views::keys(tensors_)); }

const StoredTensors::Tensor& StoredTensors::find(const std::string& key) const {
  const auto it = tensors_.find(key);
  if (it == tensors_.end()) throw_usage("{}: no such tensor in the checkpoint; it is of another model", key);
  return it->second;
}

const Shape& StoredTensors::shape(const std::string& key) const { return find(key).shape; }

void StoredTensors::read(const std::string& key, std::int64_t begin, std::int64_t count, float* values) const {
  std::int64_t next = begin;
  for (const Part& part : find(key).parts) {
    const std::int64_t end = std::min(begin + count, part.begin + part.stored.elements());
    if (part.begin > next || end <= next) continue;
    read_values(part.stored, next - part.begin, end - next, values + (next - begin));
    next = end;
  }
  if (next != begin + count)
    throw_usage("{}: found {} of values {}..{}; the checkpoint is incomplete: take another", key, next - begin, begin,
                begin + count);
}

std::vector<float> StoredTensors::read(const std::string& key) const {
  const Shape& s = shape(key);
  std::vector<float> out(static_cast<std::size_t>(elements_of(s)));
  read(key, 0, static_cast<std::int64_t>(out.size()), out.data());
  return out;
}

}  // namespace wt
