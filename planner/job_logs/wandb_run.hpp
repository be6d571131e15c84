// Runs that Weights & Biases keeps on disk, run-*.wandb, also of jobs without a network: what was logged, row by row.
//
// The file is a LevelDB log: blocks of 32 KiB with pieces of records, each with a checksum. A record is a message of
// wandb_internal.proto. Only rows of the history are read: neither the configuration nor the console's text, which may
// have secrets in them. Sources: LevelDB's log_format.md; wandb's datastore.py and wandb_internal.proto.
#pragma once
#include <string_view>

#include "planner/job_logs/metric_files.hpp"

namespace wt {

/// Whether a file that begins with these bytes, 7 at least, is one.
bool is_wandb_run(std::string_view begin);

/// Throws Error{usage} for bytes with another checksum than theirs, pieces out of order, and a record above 64 MiB.
MetricRecords wandb_run_steps(std::string_view bytes, const std::string& origin, MetricSteps& metrics);

}  // namespace wt
