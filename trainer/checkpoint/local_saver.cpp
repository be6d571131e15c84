#include "trainer/checkpoint/local_saver.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

constexpr std::chrono::milliseconds kLook(2);  // between two checks of the transfers

bool over(const std::future<void>& work, std::chrono::milliseconds after) {
  return work.wait_for(after) == std::future_status::ready;
}

}  // namespace

LocalSaver::LocalSaver(const CopySite& site, const RunSpec& run, RankLinks& links,
                       const std::vector<ShardedGroup>& groups, Done done)
    : site_(site),
      run_(run),
      links_(links),
      done_(std::move(done)),
      own_(packed_elements(groups), groups.front().master.device()) {
  std::vector<Link> all;
  for (std::size_t rank = 0; rank < site.places.size(); ++rank)
    if (const std::int64_t holder = site.plan.holder[rank]; holder >= 0)
      all.push_back({static_cast<std::int64_t>(rank), holder});
  for (const Link& link : all) {
    if (link.from == site.rank) out_.push_back(link);
    if (link.to == site.rank) in_.push_back(link);
  }
  for (std::size_t i = 0; i < in_.size(); ++i) received_.emplace_back(packed_elements(groups), at::kCPU);
  links_.connect(all);
}

void LocalSaver::save(std::int64_t step, const SamplerState& sampler, const std::vector<ShardedGroup>& groups) {
  const double begin = Clocks::now().wall_s;
  finish();
  begun_at_s_ = begin, times_ = {};
  record_ = {step, site_.history, site_.own().shard, sampler};
  if (keeps()) {
    pack_state(groups, own_.data());
    times_.bytes = static_cast<double>(own_.values().size_bytes());
  }
  under_way_ = std::async(std::launch::async, [this] { write_and_exchange(); });
  times_.blocking_s = Clocks::now().wall_s - begin;
}

void LocalSaver::poll() {
  if (under_way_.valid() && over(under_way_, std::chrono::milliseconds(0))) finish();
}

void LocalSaver::finish() {
  if (!under_way_.valid()) return;
  links_.wait_for(fmt::format("copies of step {} to the memory of nodes", record_.step),
                  [this] { return over(under_way_, kLook); });
  under_way_.get();
  for (const Pending& work : std::exchange(moving_, {})) work->wait();  // finished; throws if it failed
  done_(times_);
}

void LocalSaver::write_and_exchange() {
  if (keeps()) own_.seal();
  for (const Link& link : out_) moving_.push_back(links_.move(link, own_.tensor()));
  for (std::size_t i = 0; i < in_.size(); ++i) {
    received_[i].unseal();  // a transfer that fails before its first byte leaves the previous values in place
    moving_.push_back(links_.move(in_[i], received_[i].tensor()));
  }
  if (keeps()) write("local", record_.shard, own_.values());
  while (!given_up_ && !std::ranges::all_of(moving_, [](const Pending& work) { return work->done(); }))
    std::this_thread::sleep_for(kLook);
  if (!given_up_) keep_received();
  times_.total_s = Clocks::now().wall_s - begun_at_s_;
}

void LocalSaver::keep_received() {
  for (std::size_t i = 0; i < in_.size(); ++i) {
    const std::int64_t shard = site_.places[static_cast<std::size_t>(in_[i].from)].shard;
    if (received_[i].intact())
      write("peer", shard, received_[i].values());
    else
      print_error("rank {}: the copy of step {} that rank {} sent is not what it sent; it is not kept\n", site_.rank,
                  record_.step, in_[i].from);
  }
}

void LocalSaver::write(const char* level, std::int64_t shard, std::span<const float> values) {
  try {
    remove_older_copies(site_.folder / level, shard, record_.step, run_.resilience.local.keep);
    CopyRecord record = record_;
    record.shard = shard;
    write_copy(site_.folder / level, record, run_, values);
  } catch (const std::exception& e) {
    print_error("rank {}: the copy of step {} in the node's memory was not written: {}\n", site_.rank, record_.step,
                e.what());
  }
}

}  // namespace wt
