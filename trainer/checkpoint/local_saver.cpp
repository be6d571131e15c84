#include "trainer/checkpoint/local_saver.hpp"

#include "configs/spec/support/error.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

bool over(const std::future<void>& work) { return work.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

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
  sealed_ = false, stage_ = Stage::writing;
  if (site_.plan.keeps[static_cast<std::size_t>(site_.rank)]) {
    pack_state(groups, own_.data());
    times_.bytes = static_cast<double>(own_.values().size_bytes());
    written_ = std::async(std::launch::async, [this] { write_own(); });
  } else {
    sealed_ = true;
  }
  times_.blocking_s = Clocks::now().wall_s - begin;
}

void LocalSaver::advance(bool wait) {
  if (stage_ == Stage::writing) {
    if (wait && written_.valid()) written_.wait();
    if (!sealed_) return;
    for (const Link& link : out_) moving_.push_back(links_.move(link, own_.tensor()));
    for (std::size_t i = 0; i < in_.size(); ++i) moving_.push_back(links_.move(in_[i], received_[i].tensor()));
    stage_ = Stage::moving;
  }
  if (stage_ == Stage::moving) {
    const bool moved = std::all_of(moving_.begin(), moving_.end(), [](const Pending& work) { return work->done(); });
    if (!wait && !(moved && (!written_.valid() || over(written_)))) return;
    for (const Pending& work : moving_) work->wait();
    moving_.clear();
    if (written_.valid()) written_.get();
    kept_ = std::async(std::launch::async, [this] { keep_received(); });
    stage_ = Stage::keeping;
  }
  if (stage_ == Stage::keeping) {
    if (!wait && !over(kept_)) return;
    kept_.get();
    stage_ = Stage::idle;
    times_.total_s = Clocks::now().wall_s - begun_at_s_;
    done_(times_);
  }
}

void LocalSaver::write_own() {
  own_.seal();
  sealed_ = true;
  write("local", record_.shard, own_.values());
}

void LocalSaver::keep_received() {
  for (std::size_t i = 0; i < in_.size(); ++i) {
    const std::int64_t shard = site_.places[static_cast<std::size_t>(in_[i].from)].shard;
    if (received_[i].intact())
      write("peer", shard, received_[i].values());
    else
      fmt::print(stderr, "rank {}: the copy of step {} that rank {} sent is not what it sent; it is not kept\n",
                 site_.rank, record_.step, in_[i].from);
  }
}

void LocalSaver::write(const char* level, std::int64_t shard, std::span<const float> values) {
  try {
    remove_older_copies(site_.folder / level, shard, record_.step, run_.resilience.local.keep);
    CopyRecord record = record_;
    record.shard = shard;
    write_copy(site_.folder / level, record, run_, values);
  } catch (const std::exception& e) {
    fmt::print(stderr, "rank {}: the copy of step {} in the node's memory was not written: {}\n", site_.rank,
               record_.step, e.what());
  }
}

}  // namespace wt
