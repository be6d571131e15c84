// Runs that go to other trainers' formats, and what is said of them.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "configs/spec/find.hpp"
#include "configs/spec/run.hpp"

namespace wt::test {

inline RunSpec preset(const std::string& name) { return read_run(find_config("runs", name)); }

/// Llama 3 8B on 2 x 8 ranks, context 4 in each shard group of 8.
inline RunSpec with_context() {
  RunSpec run = preset("llama3-8b-128-h100");
  run.layout = {};
  run.layout.replicate = 2, run.layout.shard = 8, run.layout.context = 4, run.layout.microbatch = 2;
  run.seq = 8192, run.global_batch = 32;
  return run;
}

/// Mixtral on 64 ranks in stages with tensor groups, as Megatron-LM runs it.
inline RunSpec with_stages() {
  RunSpec run = with_context();
  run.model = read_model("mixtral-8x7b");
  Layout& l = run.layout = {};
  l.shard = 8, l.expert = 8, l.tensor = 2, l.sequence_parallel = true, l.pipeline = 4, l.virtual_stages = 2;
  l.reshard_after_forward = l.reduce_every_microbatch = false;
  run.seq = 4096, run.global_batch = 64;
  return run;
}

/// Any of the list has these words.
inline bool says(const std::vector<std::string>& list, const std::string& what) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& one) { return one.find(what) != std::string::npos; });
}

}  // namespace wt::test
