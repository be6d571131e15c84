#include "trainer/checkpoint/local_load.hpp"

#include <algorithm>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/checkpoint/agreement.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using nlohmann::json;

void say_passed_over(std::int64_t step, const std::string& why) {
  print_error("copies of step {} in the memory of nodes are passed over: {}\n", step, why);
}

/// The first part that is missing from these; -1: none.
std::int64_t missing_part(const std::set<std::int64_t>& parts, const RunSpec& run) {
  for (std::int64_t shard = 0; shard < state_ranks(run.layout); ++shard)
    if (!parts.contains(shard)) return shard;
  return -1;
}

/// Called on rank 0 with the findings of all ranks: the steps that have every part from one start, newest first.
json whole_steps(const std::vector<std::string>& of_ranks, const RunSpec& run) {
  // By step and history: the parts found, and the record of one of them.
  std::map<std::pair<std::int64_t, std::string>, std::pair<std::set<std::int64_t>, json>> parts;
  std::string another_run;
  for (const std::string& of_rank : of_ranks) {
    const json listed = json::parse(of_rank);
    for (const json& text : listed.at("passed_over")) print_error("passed over: {}\n", text.get<std::string>());
    if (another_run.empty()) another_run = listed.at("another_run").get<std::string>();
    for (const json& copy : listed.at("copies")) {
      auto& [shards, one] = parts[{copy.at("step"), copy.at("history")}];
      shards.insert(copy.at("shard").get<std::int64_t>());
      one = copy;
    }
  }
  json out = json::array();
  for (auto it = parts.rbegin(); it != parts.rend(); ++it) {
    const auto& [step, history] = it->first;
    if (const std::int64_t missing = missing_part(it->second.first, run); missing >= 0)
      say_passed_over(step, fmt::format("no node has part {}", missing));
    else
      out.push_back(it->second.second);
  }
  return {{"steps", out}, {"another_run", another_run}};
}

}  // namespace

LocalLoader::LocalLoader(const CopySite& site, const RunSpec& run, Communicators& communicators, RankLinks& links,
                         std::vector<ShardedGroup>& groups)
    : site_(site), run_(run), communicators_(communicators), links_(links), groups_(groups) {
  list_candidates();
}

void LocalLoader::list_candidates() {
  std::vector<PassedOverCopy> passed_over;
  json own = {{"copies", json::array()}, {"passed_over", json::array()}, {"another_run", ""}};
  found_ = find_copies(site_.folder, run_, passed_over);
  for (const FoundCopy& copy : site_.leads() ? found_ : std::vector<FoundCopy>())
    own["copies"].push_back({{"step", copy.record.step},
                             {"history", copy.record.history},
                             {"shard", copy.record.shard},
                             {"sampler", to_json(copy.record.sampler)},
                             {"notes", copy.notes}});
  for (const PassedOverCopy& copy : site_.leads() ? passed_over : std::vector<PassedOverCopy>()) {
    own["passed_over"].push_back(copy.why);
    if (copy.another_run) own["another_run"] = copy.why;
  }
  const json whole = json::parse(agree(communicators_, run_.layout.world(), "copies", own.dump(),
                                       [&](const auto& of_ranks) { return whole_steps(of_ranks, run_).dump(); }));
  another_run_ = whole.at("another_run");
  for (const json& step : whole.at("steps"))
    candidates_.push_back({step.at("step"), step.at("history"),
                           sampler_state_from_json(step.at("sampler"), "copies in memory"), step.at("notes")});
}

std::vector<const FoundCopy*> LocalLoader::to_read(const CopyCandidate& candidate) const {
  std::vector<std::int64_t> here;  // ranks on this node
  for (std::size_t rank = 0; rank < site_.places.size(); ++rank)
    if (site_.places[rank].node == site_.own().node) here.push_back(static_cast<std::int64_t>(rank));
  const auto holds = [&](std::int64_t rank, std::int64_t shard) {
    return site_.places[static_cast<std::size_t>(rank)].shard == shard;
  };
  std::vector<const FoundCopy*> out;
  std::size_t of_nobody = 0;
  for (const FoundCopy& copy : found_) {
    if (copy.record.step != candidate.step || copy.record.history != candidate.history) continue;
    const std::int64_t shard = copy.record.shard;
    const bool of_rank = std::ranges::any_of(here, [&](std::int64_t rank) { return holds(rank, shard); });
    if (of_rank ? holds(site_.rank, shard) : here[of_nobody++ % here.size()] == site_.rank) out.push_back(&copy);
  }
  return out;
}

bool LocalLoader::verify(const CopyCandidate& candidate) {
  read_.clear(), having_.clear();
  json own = {{"parts", json::array()}, {"wrong", json::array()}};
  for (const FoundCopy* copy : to_read(candidate)) {
    if (read_.contains(copy->record.shard)) continue;  // one of two copies on the node suffices
    try {
      PackedState state(packed_elements(groups_), at::kCPU);
      read_copy(*copy, state.values());
      read_.emplace(copy->record.shard, std::move(state));
      own["parts"].push_back(copy->record.shard);
    } catch (const std::exception& e) {
      own["wrong"].push_back(e.what());
    }
  }
  const std::string about = fmt::format("copies of step {} of {}", candidate.step, candidate.history);
  const json verdict = json::parse(
      agree(communicators_, run_.layout.world(), about, own.dump(), [&](const std::vector<std::string>& of_ranks) {
        std::map<std::string, std::vector<std::size_t>> having;
        std::set<std::int64_t> parts;
        for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
          const json of_rank = json::parse(of_ranks[rank]);
          for (const json& text : of_rank.at("wrong")) print_error("passed over: {}\n", text.get<std::string>());
          for (const json& part : of_rank.at("parts"))
            parts.insert(part.get<std::int64_t>()), having[part.dump()].push_back(rank);
        }
        const std::int64_t missing = missing_part(parts, run_);
        if (missing >= 0) say_passed_over(candidate.step, fmt::format("no node has part {} undamaged", missing));
        return json{{"whole", missing < 0}, {"having", having}}.dump();
      }));
  for (const auto& [part, ranks] : verdict.at("having").items())
    having_[std::stoll(part)] = ranks.get<std::vector<std::int64_t>>();
  return verdict.at("whole");
}

CopyLevel LocalLoader::load() {
  std::vector<Link> links;
  for (std::size_t rank = 0; rank < site_.places.size(); ++rank) {
    const std::vector<std::int64_t>& having = having_.at(site_.places[rank].shard);
    if (const auto to = static_cast<std::int64_t>(rank); std::ranges::find(having, to) == having.end())
      links.push_back({having.front(), to});
  }
  links_.connect(links);
  std::vector<Pending> moving;
  const std::int64_t own = site_.own().shard;
  for (const Link& link : links) {
    const std::int64_t shard = site_.places[static_cast<std::size_t>(link.to)].shard;
    if (link.from == site_.rank) read_.at(shard).seal();
    if (link.to == site_.rank) read_.insert_or_assign(own, PackedState(packed_elements(groups_), at::kCPU));
    if (link.from == site_.rank || link.to == site_.rank) moving.push_back(links_.move(link, read_.at(shard).tensor()));
  }
  for (const Pending& work : moving) work->wait();
  const bool received = std::ranges::any_of(links, [&](const Link& link) { return link.to == site_.rank; });
  if (received && !read_.at(own).intact())
    throw_runtime("rank {}: the copy that came from a peer is not what it sent; start again", site_.rank);
  unpack_state(read_.at(own).data(), groups_);
  read_.clear();
  return links.empty() ? CopyLevel::local : CopyLevel::peer;
}

}  // namespace wt
