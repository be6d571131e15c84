#include "trainer/parameters/adapter_group.hpp"

#include <algorithm>
#include <map>

#include "configs/base/error.hpp"
#include "configs/files/adapted_modules.hpp"
#include "configs/files/weight_names.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

constexpr std::string_view kWeightEnding = ".weight";

/// The rows of one of our parameters that belong to a tensor; empty if none do.
AdaptedRows rows_of_tensor(const std::vector<WeightPiece>& pieces, const std::string& tensor) {
  std::map<std::int64_t, std::int64_t> theirs;  // by our row
  for (const WeightPiece& piece : pieces) {
    if (piece.tensor != tensor) continue;
    if (piece.transposed) throw_usage("peft_config: {} is kept transposed, allowed are weights of (out, in)", tensor);
    for (std::int64_t row = 0; row < piece.rows; ++row) theirs[piece.row + row] = piece.their_row + row;
  }
  AdaptedRows out;
  if (theirs.empty()) return out;
  out.first = theirs.begin()->first;
  for (const auto& [ours, other] : theirs) out.theirs.push_back(other);
  if (theirs.rbegin()->first - out.first + 1 != out.out())
    throw_runtime("{}: its rows do not follow each other in ours; fix {}", tensor,
                  "trainer/parameters/adapter_group.cpp");
  return out;
}

/// The factors' values on the host, concatenated.
at::Tensor on_host(const ShardedGroup& group) { return group.master.detach().cpu().contiguous(); }

}  // namespace

std::string AdaptedRows::factor(const char* which) const {
  return fmt::format("layers.{}.{}.lora.{}.{}", layer, product, module.substr(module.rfind('.') + 1), which);
}

std::vector<AdaptedRows> adapted_rows(const ModelSpec& model, const LoraSpec& lora) {
  const WeightNames names(model, family_of(model));
  std::map<std::string, AdaptedModule> wanted;
  for (AdaptedModule& module : adapted_modules(model, lora)) {
    const std::string tensor = module.name + std::string(kWeightEnding);
    wanted.emplace(tensor, std::move(module));
  }
  std::vector<AdaptedRows> out;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const char* product : {"attention.qkv", "attention.output"}) {
      const auto& pieces = names.pieces(fmt::format("layers.{}.{}.weight", layer, product));
      std::map<std::int64_t, AdaptedRows> of_product;  // by row
      for (const WeightPiece& piece : pieces) {
        const auto module = wanted.find(piece.tensor);
        if (module == wanted.end()) continue;
        AdaptedRows rows = rows_of_tensor(pieces, piece.tensor);
        rows.module = module->second.name, rows.layer = layer, rows.product = product, rows.in = module->second.in;
        of_product.try_emplace(rows.first, std::move(rows));
      }
      for (auto& [first, rows] : of_product) out.push_back(std::move(rows));
    }
  return out;
}

GroupLayout adapter_layout(const ModelSpec& model, const LoraSpec& lora) {
  GroupLayout out;
  out.group = Group::adapter;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape, double init) {
    out.leaves.push_back({name, shape, out.elements});
    out.parameters.push_back({std::move(name), std::move(shape), out.elements, init});
    out.elements += out.parameters.back().elements();
  };
  for (const AdaptedRows& rows : adapted_rows(model, lora)) {
    add(rows.factor("A"), {lora.rank, rows.in}, kUniform);
    add(rows.factor("B"), {rows.out(), lora.rank}, kZeros);
  }
  if (const std::int64_t said = adapter_shape(model, lora).elements(); out.elements != said)
    throw_runtime("the adapter's group holds {} elements, the step program says {}; fix {}", out.elements, said,
                  "trainer/parameters/adapter_group.cpp");
  out.copied = true;
  out.shard_elements = out.state_elements = out.elements;
  return out;
}

void attach_adapter(std::vector<Slot>& layers, const Slot& factors, const ModelSpec& model, const LoraSpec& lora) {
  for (const AdaptedRows& rows : adapted_rows(model, lora))
    layers.at(static_cast<std::size_t>(rows.layer))
        .adapters.push_back(
            {rows.product, factors[rows.factor("A")], factors[rows.factor("B")], rows.first, lora.scale()});
}

Adapter adapter_from(const ShardedGroup& group, const ModelSpec& model, const LoraSpec& lora, const std::string& base) {
  Adapter out{lora, base, {}};
  const at::Tensor values = on_host(group);
  const float* next = values.data_ptr<float>();
  for (const AdaptedRows& rows : adapted_rows(model, lora)) {
    LoraFactors factors{rows.out(), rows.in, {next, next + lora.rank * rows.in}, {}};
    next += lora.rank * rows.in;
    factors.b.resize(static_cast<std::size_t>(rows.out() * lora.rank));
    for (const std::int64_t theirs : rows.theirs) {
      std::copy_n(next, lora.rank, factors.b.begin() + theirs * lora.rank);
      next += lora.rank;
    }
    out.modules.emplace(rows.module, std::move(factors));
  }
  return out;
}

void check_adapter(const Adapter& adapter, const ModelSpec& model, const LoraSpec& lora, const std::string& origin) {
  if (adapter.spec.rank != lora.rank || adapter.spec.alpha != lora.alpha)
    throw_usage("{}: found r {} and lora_alpha {}, the run's peft_config says {} and {}; set them to these", origin,
                adapter.spec.rank, adapter.spec.alpha, lora.rank, lora.alpha);
  const std::vector<AdaptedRows> all = adapted_rows(model, lora);
  for (const AdaptedRows& rows : all)
    if (const auto found = adapter.modules.find(rows.module); found == adapter.modules.end())
      throw_usage("{}: found no factors of {}, the run's peft_config names it; set its target_modules", origin,
                  rows.module);
    else if (found->second.out != rows.out() || found->second.in != rows.in)
      throw_usage("{}: the factors of {} make ({}, {}), the model has ({}, {})", origin, rows.module, found->second.out,
                  found->second.in, rows.out(), rows.in);
  if (adapter.modules.size() != all.size())
    throw_usage("{}: found factors of {} modules, the run's peft_config names {}; set its target_modules", origin,
                adapter.modules.size(), all.size());
}

void fill_from_adapter(ShardedGroup& group, const Adapter& adapter, const ModelSpec& model, const LoraSpec& lora) {
  fill_from_host(group.master, [&](float* next) {
    for (const AdaptedRows& rows : adapted_rows(model, lora)) {
      const LoraFactors& factors = adapter.modules.at(rows.module);
      next = std::ranges::copy(factors.a, next).out;
      for (const std::int64_t theirs : rows.theirs)
        next = std::copy_n(factors.b.begin() + theirs * lora.rank, lora.rank, next);
    }
  });
}

}  // namespace wt
