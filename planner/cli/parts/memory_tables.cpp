#include "planner/cli/parts/memory_tables.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "configs/base/number.hpp"
#include "planner/cli/parts/cells.hpp"
#include "reports/render/program_words.hpp"

namespace wt {
namespace {

constexpr double kShownPart_bytes = 0.05 * kGiB_bytes;  // smaller buffers are summed in one row
constexpr const char* kOutside = "outside of tensors";

Cell GiB(double bytes) { return {bytes / kGiB_bytes, fmt::format("{:.2f}", bytes / kGiB_bytes)}; }

const MemoryMoment* peak_of(const std::vector<MemoryMoment>& moments) {
  const auto peak = std::ranges::max_element(moments, {}, &MemoryMoment::bytes);
  return peak == moments.end() ? nullptr : &*peak;
}

std::array<double, kMemoryUseKinds> by_use(const MemoryMoment& moment) {
  std::array<double, kMemoryUseKinds> out{};
  for (const auto& [name, bytes] : moment.bytes_of) out[static_cast<std::size_t>(buffer_words(name).kind)] += bytes;
  return out;
}

/// The keys of a run that make a use of memory smaller.
const char* lever_of(MemoryUseKind use) {
  switch (use) {
    case MemoryUseKind::weights:
      return "more shards; tensor or pipeline groups; reshard_after_forward";
    case MemoryUseKind::gradients:
      return "more shards; gradient_reduction: microbatch";
    case MemoryUseKind::optimizer:
      return "more shards; optimizer_shard_degree; offload_fraction";
    case MemoryUseKind::activations:
      return "activation_checkpointing; a smaller microbatch; context groups";
    case MemoryUseKind::rows:
      return "recompute of experts; a smaller microbatch; more even loads";
    case MemoryUseKind::communication:
      return "smaller tensor or context groups";
    case MemoryUseKind::working:
      return "loss_chunks, if it is logits; a smaller microbatch";
  }
  return "";
}

}  // namespace

std::vector<MemoryPart> memory_parts(const std::vector<MemoryMoment>& moments, double reserved_bytes,
                                     double process_bytes) {
  std::vector<MemoryPart> parts;
  const MemoryMoment* peak = peak_of(moments);
  if (!peak) return parts;
  for (const auto& [name, bytes] : peak->bytes_of) {
    const BufferWords words = buffer_words(name);
    parts.push_back({words.text, to_string(words.kind), bytes});
  }
  for (const auto& [text, bytes] : {std::pair{"gaps between blocks", reserved_bytes - peak->bytes},
                                    {"CUDA context, NCCL and dispatcher", process_bytes - reserved_bytes}})
    if (bytes > 0) parts.push_back({text, kOutside, bytes});
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return parts;
}

std::vector<std::string> memory_uses() {
  std::vector<std::string> uses;
  for (std::size_t use = 0; use < kMemoryUseKinds; ++use) uses.push_back(to_string(static_cast<MemoryUseKind>(use)));
  uses.emplace_back(kOutside);
  return uses;
}

Table memory_parts_table(const std::vector<MemoryPart>& parts) {
  Table table{.title = "What it is", .columns = {"memory", "for", numeric("at the peak", "GiB")}};
  double others = 0;
  for (const MemoryPart& part : parts)
    if (part.bytes >= kShownPart_bytes)
      table.rows.push_back({part.text, part.use, GiB(part.bytes)});
    else
      others += part.bytes;
  if (others > 0) table.rows.push_back({"all others", "", GiB(others)});
  return table;
}

Table memory_moments_table(const std::vector<MemoryMoment>& moments) {
  Table table{.title = "When it is", .columns = {"tensors"}};
  std::vector<std::array<double, kMemoryUseKinds>> uses;
  std::vector<Cell> sums{"all"};
  for (const MemoryMoment& moment : moments) {
    table.columns.push_back(numeric(to_string(moment.part), "GiB"));
    uses.push_back(by_use(moment));
    sums.push_back(GiB(moment.bytes));
  }
  table.columns.emplace_back("less by");
  for (std::size_t use = 0; use < kMemoryUseKinds; ++use) {
    const auto of = [use](const auto& moment) { return moment[use]; };
    if (std::ranges::max(uses, {}, of)[use] <= 0) continue;
    std::vector<Cell> row{to_string(static_cast<MemoryUseKind>(use))};
    for (const auto& moment : uses) row.push_back(GiB(moment[use]));
    row.emplace_back(lever_of(static_cast<MemoryUseKind>(use)));
    table.rows.push_back(std::move(row));
  }
  sums.emplace_back("");
  table.rows.push_back(std::move(sums));
  if (const MemoryMoment* peak = peak_of(moments))
    table.note = fmt::format(
        "Each part of the step at its highest moment; update: what happens once, after the last microbatch. The peak "
        "is at \"{}\".",
        op_words(peak->op));
  return table;
}

nlohmann::json moments_json(const std::vector<MemoryMoment>& moments) {
  nlohmann::json out = nlohmann::json::array();
  for (const MemoryMoment& moment : moments) {
    const auto uses = by_use(moment);
    nlohmann::json used;
    for (std::size_t use = 0; use < kMemoryUseKinds; ++use)
      if (uses[use] > 0) used[to_string(static_cast<MemoryUseKind>(use))] = uses[use];
    out.push_back({{"part", to_string(moment.part)},
                   {"op", moment.op},
                   {"bytes", moment.bytes},
                   {"bytes_by_use", used},
                   {"bytes_of", moment.bytes_of}});
  }
  return out;
}

}  // namespace wt
