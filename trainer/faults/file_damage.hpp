// Damage to the newest checkpoint of a folder, as failing disks and half-done copies leave it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "configs/files/scenario.hpp"

namespace wt {

/// Waits until the checkpoint of that step is published: a save goes on while the next step trains. Throws
/// Error{runtime} after a minute.
void wait_for_checkpoint(const std::filesystem::path& checkpoints, std::int64_t step);

/// Returns what proves it: the file, its size and XXH3 before and after. Throws Error{usage} where there is nothing to
/// damage: no checkpoint, one shard to exchange, no older checkpoint for an old manifest or a stale `latest`.
nlohmann::json damage_newest(const std::filesystem::path& checkpoints, FileDamage damage);

}  // namespace wt
