#include "trainer/executor/run_profile.hpp"

#include <cmath>
#include <map>

#include "configs/base/error.hpp"
#include "configs/files/recompute_mask.hpp"
#include "configs/machine/fingerprint.hpp"
#include "trainer/device/device.hpp"

#include <torch/version.h>

namespace wt {
namespace {

std::string direction_suffix(Direction direction) {
  return direction == Direction::forward ? ".fwd" : direction == Direction::recompute ? ".rec" : ".bwd";
}

}  // namespace

Profile run_profile(const RunSpec& run, const Executor& executor, const std::vector<StepTimeline>& timelines,
                    bool collectives) {
  const auto instances = unroll(executor.program());
  const bool cpu = executor.device().is_cpu();  // otherwise an op's time is the device's, not the issuing thread's
  Profile profile;
  profile.fingerprint = host_facts();
  profile.fingerprint["torch"] = TORCH_VERSION;
  for (const auto& [key, value] : device_facts(executor.device())) profile.fingerprint[key] = value;
  profile.fingerprint["attention"] = executor.attention_backend();
  profile.fingerprint["run.layout"] = run.layout.name();
  std::map<std::string, Measurement> ops;
  std::map<std::string, std::vector<double>> rows;
  const Microbatches sequences = executor.sequences();
  for (const StepTimeline& timeline : timelines)
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const Op& op = *instances[i].op;
      const OpRecord& record = timeline.ops[i];
      if (op.work.empty() || (op.asynchronous() && !(collectives && cpu)))
        continue;  // on a device only the lane's time is known, not that of the cast before
      // A module's op does more than the layers' op of the same name.
      if (run.model.mtp(instances[i].layer)) continue;
      const std::string kernel = "op:" + to_string(op.action) + direction_suffix(op.direction);
      const std::int64_t recompute =  // of the layer: it determines the op's work
          instances[i].layer < 0 ? 0 : mask_of(run.layout.recompute.of(instances[i].layer, run.model.layers));
      const bool smaller = instances[i].microbatch >= 0 && sequences.of(instances[i].microbatch) < sequences.each;
      const std::string key =
          kernel + to_string(op.group) + std::to_string(recompute) + (smaller ? " of a smaller microbatch" : "");
      Measurement& m = ops[key];
      m.kernel = kernel;
      m.pass = op.direction == Direction::backward ? "backward" : "forward";
      m.shape["group"] = static_cast<std::int64_t>(op.group);
      m.shape["recompute"] = recompute;
      m.shape["microbatch"] = smaller ? sequences.last : sequences.each;
      if (op.action == Action::head_loss && run.model.mtp_layers > 0) m.shape["mtp_layers"] = run.model.mtp_layers;
      m.samples.push_back(cpu ? record.thread_cpu_s : record.done_s - record.issued_s);
      rows[key].push_back(record.rows);
    }
  const ModelSpec& model = run.model;
  for (auto& [key, m] : ops) {
    m.dtype = to_string(run.precision);
    m.clock = cpu ? "thread_cpu" : "device";
    m.evidence = {Evidence::measured,
                  fmt::format("{} samples on rank {} of {}", m.samples.size(), timelines.front().rank, run.name)};
    double mean_rows = 0;
    for (double r : rows[key]) mean_rows += r / static_cast<double>(rows[key].size());
    const std::pair<const char*, std::int64_t> facts[] = {{"rows", std::llround(mean_rows)},
                                                          {"seq", run.seq},
                                                          {"layers", model.layers},
                                                          {"d_model", model.d_model},
                                                          {"n_heads", model.heads},
                                                          {"kv_heads", model.kv_heads},
                                                          {"head_dim", model.head_dim},
                                                          {"ffn", model.ffn},
                                                          {"experts", model.experts},
                                                          {"top_k", model.top_k},
                                                          {"vocab", model.vocab},
                                                          {"expert_ranks", run.layout.expert},
                                                          {"replicate", run.layout.replicate},
                                                          {"shard", run.layout.shard}};
    for (const auto& [name, value] : facts) m.shape[name] = value;
    if (run.lora) m.shape["adapters"] = run.lora->rank;  // its ops omit work of full training
    if (cpu && collectives && run.layout.world() > 1)
      m.shape["host_ranks"] = run.layout.world();  // ranks that shared the cores
    profile.measurements.push_back(m);
  }
  return profile;
}

}  // namespace wt
