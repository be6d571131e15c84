// Damages the newest checkpoint of a folder, like failing disks and incomplete copies do.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "configs/files/scenario.hpp"

namespace wt {

/// Waits until the checkpoint of that step is published, because a save continues during the next step. Throws
/// Error{runtime} after a minute.
void wait_for_checkpoint(const std::filesystem::path& checkpoints, std::int64_t step);

/// Returns proof: the file, with size and XXH3 before and after. Throws Error{usage} where the damage is impossible: no
/// checkpoint, only one shard for an exchange, no older checkpoint for an old manifest or a stale `latest`.
nlohmann::json damage_newest(const std::filesystem::path& checkpoints, FileDamage damage);

}  // namespace wt
