#include "bench/formats/memory_snapshot.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/formats/pickle.hpp"
#include "bench/formats/unpacked.hpp"
#include "configs/base/error.hpp"

namespace wt {
namespace {

using Kind = PickleValue::Kind;

double bytes_at(const PickleValue& of, std::string_view key, const std::string& origin) {
  const PickleValue* const found = of.at(key, Kind::whole);
  if (found == nullptr || found->whole < 0)
    throw_usage("{}: found no {} of a segment or an event, needs what torch.cuda.memory._dump_snapshot writes", origin,
                key);
  return static_cast<double>(found->whole);
}

/// A dict is looked through for each key.
void check_size(const PickleValue& of, const std::string& origin) {
  constexpr std::size_t kMostKeys = 100;
  if (of.items.size() > 2 * kMostKeys)
    throw_usage(
        "{}: found a segment or an event of more than {} keys, needs what torch.cuda.memory._dump_snapshot "
        "writes",
        origin, kMostKeys);
}

struct Device {
  double reserved = 0, allocated = 0;
};

std::map<std::int64_t, Device> devices(const PickleValue& segments, const std::string& origin) {
  std::map<std::int64_t, Device> out;
  for (const PickleValue* segment : segments.items) {
    check_size(*segment, origin);
    const PickleValue* const device = segment->at("device", Kind::whole);
    Device& on = out[device == nullptr ? 0 : device->whole];
    on.reserved += bytes_at(*segment, "total_size", origin);
    on.allocated += bytes_at(*segment, "allocated_size", origin);
  }
  return out;
}

/// Goes back in time from the snapshot.
void walk_back(MemorySnapshot& out, Device now, const PickleValue& trace, const std::string& origin) {
  constexpr double kRounding = 512;
  for (const PickleValue* event : trace.items) check_size(*event, origin);
  const auto action_of = [](const PickleValue* event) {
    const PickleValue* const action = event->at("action", Kind::text);
    return action == nullptr ? std::string_view() : action->text;
  };
  // A tensor's memory counts as free when it is asked for; early releases only record when it is done.
  const bool asks =
      std::ranges::any_of(trace.items, [&](const PickleValue* event) { return action_of(event) == "free_requested"; });
  const std::string_view freed = asks ? "free_requested" : "free_completed";
  for (auto event = trace.items.rbegin(); event != trace.items.rend(); ++event) {
    const std::string_view action = action_of(*event);
    const double size = action == "snapshot" ? 0 : bytes_at(**event, "size", origin);
    if (action == "alloc") now.allocated -= std::ceil(size / kRounding) * kRounding;
    if (action == freed) now.allocated += std::ceil(size / kRounding) * kRounding;
    if (action == "segment_alloc" || action == "segment_map") now.reserved -= size;
    if (action == "segment_free" || action == "segment_unmap") now.reserved += size;
    if (action == "oom") ++out.failures;
    out.reserved_bytes = std::max(out.reserved_bytes, now.reserved);
    out.allocated_bytes = std::max(out.allocated_bytes, now.allocated);
  }
  out.events = std::ssize(trace.items);
  out.from_start = out.events > 0 && now.reserved <= 0;
}

}  // namespace

MemorySnapshot memory_snapshot_from(std::string_view bytes, const std::string& origin) {
  const Pickle pickle(bytes, origin);
  const PickleValue* const segments = pickle.root().at("segments", Kind::list);
  if (segments == nullptr || segments->items.empty())
    throw_usage("{}: found no segments, needs what torch.cuda.memory._dump_snapshot writes", origin);
  const auto all = devices(*segments, origin);
  const auto fullest = std::ranges::max_element(all, {}, [](const auto& each) { return each.second.reserved; });
  MemorySnapshot out{.reserved_bytes = fullest->second.reserved, .allocated_bytes = fullest->second.allocated};
  const PickleValue* const traces = pickle.root().at("device_traces", Kind::list);
  const auto index = static_cast<std::size_t>(fullest->first);
  if (traces != nullptr && index < traces->items.size() && traces->items[index]->kind == Kind::list)
    walk_back(out, fullest->second, *traces->items[index], origin);
  return out;
}

MemorySnapshot read_memory_snapshot(const std::filesystem::path& file) {
  constexpr std::uintmax_t kMost = std::uintmax_t{2} << 30;
  return memory_snapshot_from(read_unpacked(file, "a memory snapshot", kMost), file.string());
}

}  // namespace wt
