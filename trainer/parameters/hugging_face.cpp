#include "trainer/parameters/hugging_face.hpp"

#include <c10/util/BFloat16.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"
#include "trainer/safetensors/pretrained_files.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string shown(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t size : shape) out += (out.empty() ? "" : ", ") + std::to_string(size);
  return "(" + out + ")";
}

/// Tensors that files may contain, and that we recompute or duplicate.
bool ignored(const std::string& name, const ModelSpec& model) {
  return name.ends_with("rotary_emb.inv_freq") || (model.tied && name == "lm_head.weight");
}

/// Returns the folder after checking that its config.json has the model's family.
const fs::path& of_family(const fs::path& folder, const ModelSpec& model) {
  const std::string family = family_of(model_from_hugging_face(folder / "config.json")), own = family_of(model);
  if (family != own)
    throw_usage(
        "{}: config.json is of family {}, the run's model {} is of family {}; give the run this folder as its model",
        folder.string(), family, model.name, own);
  return folder;
}

/// Rows and columns of a parameter; a vector has one column.
std::pair<std::int64_t, std::int64_t> matrix(const ParameterInfo& p) {
  return {p.shape[0], p.shape.size() == 1 ? 1 : p.shape[1]};
}

}  // namespace

PretrainedWeights::PretrainedWeights(const fs::path& folder, const ModelSpec& model)
    : tensors_(pretrained_tensors(of_family(folder, model))), names_(model, family_of(model)) {
  for (const auto& [name, shape] : names_.shapes()) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
      throw_usage(
          "{}: found no tensor {}, the model {} needs it with shape {}; the files are of another model or incomplete",
          folder.string(), name, model.name, shown(shape));
    if (found->second.shape != shape)
      throw_usage("{}: tensor {} has shape {}, the model {} needs {}; give the run this folder as its model",
                  folder.string(), name, shown(found->second.shape), model.name, shown(shape));
    if (const std::string& type = found->second.dtype; type != "F32" && type != "F16" && type != "BF16")
      throw_usage("{}: tensor {} is of type {}, allowed F32, F16, BF16; convert it", folder.string(), name, type);
  }
  for (const auto& [name, tensor] : tensors_)
    if (!names_.shapes().contains(name) && !ignored(name, model))
      throw_usage(
          "{}: tensor {} is not known in family {}, allowed are the names of its modeling code; remove it, or load "
          "another model",
          folder.string(), name, family_of(model));
}

std::vector<float> PretrainedWeights::read(const std::string& parameter, std::int64_t rows, std::int64_t columns,
                                           std::int64_t first, std::int64_t last) const {
  std::vector<float> out(static_cast<std::size_t>((last - first) * columns));
  std::vector<char> bytes;
  std::vector<float> block;
  for (const WeightPiece& piece : names_.pieces(parameter)) {
    const std::int64_t begin = std::max(first, piece.row), end = std::min(last, piece.row + piece.rows);
    if (begin >= end) continue;
    const StoredTensor& tensor = tensors_.at(piece.tensor);
    const auto take = [&](std::int64_t from, std::int64_t count, float* to) {
      bytes.resize(static_cast<std::size_t>(count * safetensors_type_bytes(tensor.dtype)));
      read_values(tensor, from, count, bytes.data());
      widen_values(tensor.dtype, bytes.data(), count, to);
    };
    if (!piece.transposed) {
      take((piece.their_row + begin - piece.row) * columns, (end - begin) * columns,
           out.data() + (begin - first) * columns);
      continue;
    }
    block.resize(static_cast<std::size_t>(columns * rows));  // transposed: our columns are its rows
    take(piece.their_row * rows, columns * rows, block.data());
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        out[static_cast<std::size_t>((row - first) * columns + column)] =
            block[static_cast<std::size_t>(column * rows + piece.column_of(row))];
  }
  return out;
}

void PretrainedWeights::load(std::vector<ShardedGroup>& groups) const {
  for (ShardedGroup& group : groups) {
    if (group.layout.group == Group::adapter) continue;
    const std::int64_t begin = group.layout.state_begin(), end = begin + group.master.numel();
    for (const ParameterInfo& p : group.layout.parameters) {
      const std::int64_t from = std::max(begin, p.offset), to = std::min(end, p.offset + p.elements());
      if (from >= to) continue;
      const auto [rows, columns] = matrix(p);
      const std::int64_t first = (from - p.offset) / columns, last = (to - p.offset + columns - 1) / columns;
      const std::vector<float> values = read(p.name, rows, columns, first, last);
      fill_from_host(group.master.narrow(0, from - begin, to - from), [&](float* master) {
        std::copy_n(values.begin() + (from - p.offset - first * columns), to - from, master);
      });
    }
  }
}

void save_pretrained(const fs::path& folder, const ModelSpec& model, bool bf16,
                     const std::function<std::vector<float>(const ParameterInfo&)>& values) {
  const WeightNames names(model, family_of(model));
  std::map<std::string, std::vector<float>> tensors;
  for (const auto& [name, shape] : names.shapes())
    tensors[name].resize(
        static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  for (const ParameterInfo& p : all_parameters(model)) {
    const std::vector<float> own = values(p);
    const auto [rows, columns] = matrix(p);
    for (const WeightPiece& piece : names.pieces(p.name)) {
      float* to = tensors.at(piece.tensor).data();
      if (!piece.transposed) {
        std::copy_n(own.begin() + piece.row * columns, piece.rows * columns, to + piece.their_row * columns);
        continue;
      }
      for (std::int64_t row = piece.row; row < piece.row + piece.rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
          to[(piece.their_row + column) * rows + piece.column_of(row)] =
              own[static_cast<std::size_t>(row * columns + column)];
    }
  }
  std::vector<OutgoingTensor> outgoing;
  std::map<std::string, std::vector<c10::BFloat16>> narrowed;
  for (const auto& [name, own] : tensors) {
    const void* data = own.data();
    if (bf16) data = (narrowed[name] = std::vector<c10::BFloat16>(own.begin(), own.end())).data();
    outgoing.push_back({name, bf16 ? "BF16" : "F32", names.shapes().at(name), data, {}});
  }
  fs::create_directories(folder);
  write_safetensors(folder / "model.safetensors", outgoing);
  write_file_atomically(folder / "config.json", config_json(model).dump(2) + "\n");
}

std::vector<ParameterInfo> all_parameters(const ModelSpec& model) {
  std::vector<ParameterInfo> out;
  const auto add = [&](Group group, std::int64_t layer) {
    const GroupLayout layout = group_layout(model, {}, group, layer, 0);
    out.insert(out.end(), layout.parameters.begin(), layout.parameters.end());
  };
  add(Group::embedding, -1), add(Group::head, -1);
  for (std::int64_t layer = 0; layer < model.blocks(); ++layer) add(Group::dense, layer), add(Group::expert, layer);
  if (model.moe_layers() > 0 && model.router.bias_update_rate > 0) add(Group::router_bias, -1);
  return out;
}

void export_pretrained(const fs::path& folder, const RunSpec& run, const std::vector<ShardedGroup>& groups,
                       Communicators& communicators) {
  const Mesh mesh(run.layout);
  const std::int64_t rank = communicators.rank();
  const bool owner = mesh.coordinate(state_copies_axis(run.layout), rank) == 0;
  const auto gather = [&](const ParameterInfo& wanted) {
    at::Tensor values = at::zeros({wanted.elements()}, at::kFloat);
    for (const ShardedGroup& group : groups) {
      if (group.layout.copied ? rank != 0 : !owner) continue;
      for (const ParameterInfo& p : group.layout.parameters) {
        if (p.name != wanted.name || p.further_copy) continue;
        const std::int64_t begin = std::max(group.layout.state_begin(), p.offset);
        const std::int64_t end =
            std::min(group.layout.state_begin() + group.layout.state_elements, p.offset + p.elements());
        if (begin < end)
          values.narrow(0, begin - p.offset, end - begin)
              .copy_(group.master.narrow(0, begin - group.layout.state_begin(), end - begin));
      }
    }
    if (run.layout.world() > 1) communicators.all_reduce(Axis::world, values)->wait();
    return values;
  };
  if (rank != 0) {
    for (const ParameterInfo& p : all_parameters(run.model)) gather(p);
    return;
  }
  save_pretrained(folder, run.model, run.export_precision == Precision::bf16, [&](const ParameterInfo& p) {
    const at::Tensor values = gather(p);
    return std::vector<float>(values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
  });
}

}  // namespace wt
