#include "trainer/checkpoint/levels.hpp"

#include "configs/base/linked_folder.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/checkpoint/store_checkpoints.hpp"
#include "trainer/pch.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {

CheckpointLevels::CheckpointLevels(const std::filesystem::path& output, const RunSpec& run,
                                   const RankEnvironment& environment, RankWatch& watch, Communicators& communicators,
                                   std::vector<ShardedGroup>& groups)
    : output_(output), run_(run), communicators_(communicators), groups_(groups), links_(environment, watch) {
  if (run.resilience.local.interval > 0)
    site_ = make_copy_site(output, run, node_name(environment.rank), rack_name(), communicators);
}

std::optional<LoadedCheckpoint> CheckpointLevels::load(const UnfitState& unfit) {
  std::optional<StoreCheckpoints> at_store;
  if (run_.autoresume && run_.save && !run_.save_folder.empty()) at_store.emplace(run_, output_, communicators_);
  std::optional<LocalLoader> copies;
  if (site_) copies.emplace(*site_, run_, communicators_, links_, groups_);
  auto loaded = load_newest_checkpoint(output_ / kCheckpointsFolder, run_, groups_, communicators_,
                                       copies ? &*copies : nullptr, unfit, at_store ? &*at_store : nullptr);
  if (!loaded) return loaded;
  passed_over_ = loaded->passed_over;
  loaded_path_ = loaded->path;
  last_is_missing_ = run_.save && loaded->step == run_.steps && loaded->path.empty();
  if (communicators_.rank() == 0 && !loaded->path.empty()) try {
      name_latest(loaded->path);  // a run may have been killed between renaming the folder and updating `latest`
    } catch (const std::exception& e) {
      print_error("latest was not put right: {}\n", e.what());
    }
  return loaded;
}

void CheckpointLevels::start(std::int64_t done, CheckpointSaver::Done saved, LocalSaver::Done copied,
                             const StoreLease* lease) {
  saver_.emplace(output_ / kCheckpointsFolder, run_, communicators_, Beginning{done, loaded_path_}, passed_over_,
                 std::move(saved), lease);
  if (!site_) return;
  if (site_->leads()) clean_node_folder(site_->folder, done, run_);
  if (site_->rank == 0) remove_other_nodes(*site_);
  communicators_.barrier();
  copier_.emplace(*site_, run_, links_, groups_, std::move(copied));
}

bool CheckpointLevels::due_in_storage(std::int64_t step, bool ends) const {
  return run_.save && (ends || (run_.save_interval > 0 && step % run_.save_interval == 0));
}

bool CheckpointLevels::due_in_memory(std::int64_t step, bool ends) const {
  return copier_ && (ends || step % run_.resilience.local.interval == 0);
}

bool CheckpointLevels::due(std::int64_t step, bool ends) const {
  return due_in_storage(step, ends) || due_in_memory(step, ends);
}

void CheckpointLevels::after_step(std::int64_t step, const SamplerState& sampler, bool ends) {
  if (due_in_memory(step, ends))
    copier_->save(step, sampler, groups_);
  else if (copier_)
    copier_->poll();
  if (due_in_storage(step, ends)) saver_->save(step, sampler, groups_);
}

void CheckpointLevels::complete(const SamplerState& sampler) {
  if (last_is_missing_) saver_->save(run_.steps, sampler, groups_);
}

void CheckpointLevels::finish() {
  saver_->finish();
  if (copier_) copier_->finish();
}

void CheckpointLevels::finish_uploads() {
  if (run_.save_folder.empty() || !run_.save) return;
  saver_->finish_upload(output_);
}

void CheckpointLevels::give_back_memory() {
  if (site_ && site_->leads() && run_.save) remove_linked_folder(site_->folder);
}

}  // namespace wt
