// windtunnel data mix: what each stream contributes to a run.
#pragma once

namespace wt {

class Command;

void add_data_mix(const Command& data);

}  // namespace wt
