// windtunnel data mix: what the streams of a run file give to it.
#pragma once

namespace wt {

class Command;

void add_data_mix(const Command& data);

}  // namespace wt
