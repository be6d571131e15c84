// NCCL's rules for what ranks call, on the records that nccl_stand_in writes: every communicator is made by all of its
// ranks and destroyed once by each, its ranks come to the same collectives in the same order, sends meet receives of
// the same size in the same group, and nothing is called after the end.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace wt::test {

/// The calls of one process, in order; keys as nccl_stand_in/nccl.cpp notes them.
using NcclRecord = std::vector<nlohmann::json>;

inline std::vector<NcclRecord> nccl_records(const std::filesystem::path& folder) {
  std::vector<NcclRecord> out;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".jsonl") continue;
    out.emplace_back();
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) out.back().push_back(nlohmann::json::parse(line));
  }
  return out;
}

/// What a rank of a communicator does at once: a collective, or the sends and receives of a group.
struct NcclEntry {
  std::string collective;                                  ///< with its count, type, op and root; empty: a group
  std::map<int, std::vector<std::string>> sent, received;  ///< by peer: count and type
};

inline std::string nccl_size(const nlohmann::json& call) {
  return fmt::format("{} of type {}", call.at("count").get<std::int64_t>(), call.at("type").get<int>());
}

/// What one rank calls on one communicator.
struct NcclRank {
  std::vector<NcclEntry> entries;
  int ranks = 0, made = 0, destroyed = 0;
};

class NcclContract {
 public:
  explicit NcclContract(const std::vector<NcclRecord>& records) {
    for (const NcclRecord& record : records) read(record);
    for (const auto& [comm, ranks] : comms_) check(comm, ranks);
  }
  /// What breaks the rules; empty: nothing does.
  const std::vector<std::string>& broken() const { return broken_; }
  std::size_t communicators() const { return comms_.size(); }
  std::size_t collectives() const { return collectives_; }
  std::size_t messages() const { return messages_; }

 private:
  using Ranks = std::map<int, NcclRank>;

  void read(const NcclRecord& record) {
    std::map<std::string, std::int64_t> open;  ///< group that the last entry of a communicator is of
    for (const nlohmann::json& call : record) {
      const std::string kind = call.at("call"), comm = call.at("comm");
      NcclRank& rank = comms_[comm][call.at("rank")];
      const std::string who = fmt::format("communicator {}, rank {}: {}", comm, call.at("rank").get<int>(), kind);
      if (kind == "init") {
        if (rank.made++ > 0) broken_.push_back(who + " twice");
        rank.ranks = call.at("ranks");
        continue;
      }
      if (rank.made == 0) broken_.push_back(who + " before it was made");
      if (rank.destroyed > 0) broken_.push_back(who + " after it was destroyed");
      if (kind == "destroy") {
        ++rank.destroyed;
        continue;
      }
      const bool message = kind == "send" || kind == "receive";
      if (!message) {
        std::string what = fmt::format("{} of {}", kind, nccl_size(call));
        for (const char* key : {"op", "root"})
          if (call.contains(key)) what += fmt::format(", {} {}", key, call.at(key).get<int>());
        rank.entries.push_back({std::move(what), {}, {}});
        open.erase(comm);
        ++collectives_;
        continue;
      }
      const std::int64_t of_group = call.at("group");
      const auto group = open.find(comm);
      if (of_group == 0 || group == open.end() || group->second != of_group) rank.entries.emplace_back();
      open[comm] = of_group;
      auto& to = kind == "send" ? rank.entries.back().sent : rank.entries.back().received;
      to[call.at("peer")].push_back(nccl_size(call));
      ++messages_;
    }
  }

  /// Lets the ranks go on together as long as they can: a collective when all have come to the same, a group when all
  /// that it sends to and receives from have come to theirs.
  void check(const std::string& comm, const Ranks& ranks) {
    const int size = ranks.begin()->second.ranks;
    for (int rank = 0; rank < size; ++rank)
      if (!ranks.contains(rank)) broken_.push_back(fmt::format("communicator {}: rank {} never comes", comm, rank));
    for (const auto& [rank, of] : ranks) {
      if (of.ranks != size)
        broken_.push_back(fmt::format("communicator {}: found {} and {} ranks", comm, size, of.ranks));
      if (of.destroyed != 1)
        broken_.push_back(fmt::format("communicator {}, rank {}: destroyed {} times", comm, rank, of.destroyed));
    }
    std::map<int, std::size_t> at;
    for (;;) {
      std::map<int, const NcclEntry*> ready;
      for (const auto& [rank, of] : ranks)
        if (at[rank] < of.entries.size()) ready[rank] = &of.entries[at[rank]];
      if (ready.empty()) return;
      for (bool changed = true; changed;) {
        changed = false;
        for (auto it = ready.begin(); it != ready.end();)
          if (can_end(it->first, *it->second, ready, size))
            ++it;
          else
            it = ready.erase(it), changed = true;
      }
      if (ready.empty()) {
        broken_.push_back(fmt::format("communicator {}: the ranks do not meet: {}", comm, where(ranks, at)));
        return;
      }
      for (const auto& [rank, entry] : ready) ++at[rank];
    }
  }

  static bool can_end(int rank, const NcclEntry& entry, const std::map<int, const NcclEntry*>& ready, int size) {
    if (!entry.collective.empty())
      return static_cast<int>(ready.size()) == size && std::all_of(ready.begin(), ready.end(), [&](const auto& other) {
               return other.second->collective == entry.collective;
             });
    const auto met = [&](const auto& messages, auto theirs) {
      return std::all_of(messages.begin(), messages.end(), [&](const auto& one) {
        const auto peer = ready.find(one.first);
        if (peer == ready.end()) return false;
        const auto& of_peer = (*peer->second).*theirs;
        const auto found = of_peer.find(rank);
        return found != of_peer.end() && found->second == one.second;
      });
    };
    return met(entry.sent, &NcclEntry::received) && met(entry.received, &NcclEntry::sent);
  }

  static std::string where(const Ranks& ranks, std::map<int, std::size_t>& at) {
    std::string out;
    for (const auto& [rank, of] : ranks) {
      std::string what = "at its end";
      if (at[rank] < of.entries.size()) {
        const NcclEntry& entry = of.entries[at[rank]];
        what = entry.collective;
        for (const auto& [peer, sizes] : entry.sent) what += fmt::format(" sends {} to {}", sizes.front(), peer);
        for (const auto& [peer, sizes] : entry.received)
          what += fmt::format(" receives {} from {}", sizes.front(), peer);
      }
      out += fmt::format("{}rank {}, call {}: {}", out.empty() ? "" : "; ", rank, at[rank], what);
    }
    return out;
  }

  std::map<std::string, Ranks> comms_;
  std::vector<std::string> broken_;
  std::size_t collectives_ = 0, messages_ = 0;
};

}  // namespace wt::test
