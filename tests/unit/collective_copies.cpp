// Copies between collectives' buffers and the tensors that layers compute with.
#include <catch2/catch.hpp>

#include "configs/base/number.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/compose/tensor_slice.hpp"
#include "sim/program/mesh.hpp"

using namespace wt;

namespace {

ModelSpec small(bool tied, std::int64_t experts) {
  ModelSpec m;
  m.name = "small";
  m.layers = 4, m.d_model = 8, m.heads = 2, m.kv_heads = 1, m.head_dim = 4, m.ffn = 16, m.experts = experts;
  m.top_k = experts > 1 ? 2 : 1, m.vocab = 32, m.tied = tied;
  return m;
}

Program program_of(const ModelSpec& model, const Layout& layout, CollectiveCopies copies) {
  ProgramOptions options{16, 3, Precision::bf16};
  options.memory.collective_copies = copies;
  return build_program_set(model, layout, options).programs.front();
}

/// Bytes that all kernels of a step on the compute lane read and write, their rows bound to those of balanced loads.
double moved_bytes(const Program& program) {
  double sum = 0;
  for (const OpInstance& instance : unroll(program))
    if (instance.op->lane == Lane::compute)
      for (const WorkItem& item : instance.op->work) sum += item.bytes(item.rows.fixed + 32 * item.rows.per_row);
  return sum;
}

/// Elements that collectives of a kind move in a step for an action.
double elements(const Program& program, OpKind kind, Action action, double bytes_an_element) {
  double bytes = 0;
  for (const OpInstance& instance : unroll(program))
    if (instance.op->kind == kind && instance.op->action == action) bytes += instance.op->collective.bytes.fixed;
  return bytes / bytes_an_element;
}

}  // namespace

TEST_CASE("FSDP2 copies all that it gathers, and all that it reduces; FSDP1 what it reduces") {
  for (const bool tied : {false, true})
    for (const std::int64_t experts : {1, 4})
      for (const auto& [replicate, shard, expert] : {std::array{1, 4, 1}, {2, 2, 2}, {1, 4, 2}, {1, 4, 4}, {4, 1, 1}})
        for (const bool every : {true, false})
          for (const bool again : {true, false}) {
            if (expert > experts) continue;
            Layout layout;
            layout.replicate = replicate, layout.shard = shard, layout.expert = expert;
            layout.reduce_every_microbatch = every, layout.reshard_after_forward = again;
            INFO(layout.name() << (tied ? ", tied" : "") << (every ? "" : ", reduced once") << (again ? "" : ", kept"));
            const ModelSpec model = small(tied, experts);
            const Program none = program_of(model, layout, CollectiveCopies::none);
            const double before = moved_bytes(none);
            const double g = elements(none, OpKind::all_gather, Action::unshard, 2);               // of bf16
            const double r = elements(none, OpKind::reduce_scatter, Action::reduce_gradients, 4);  // of fp32
            CHECK((g > 0) == (shard > 1));
            CHECK(moved_bytes(program_of(model, layout, CollectiveCopies::gradients)) - before == Approx(4 * r));
            CHECK(moved_bytes(program_of(model, layout, CollectiveCopies::both)) - before == Approx(4 * g + 6 * r));
          }
}

TEST_CASE("where weights stay, each microbatch's gradients are read, added and written once") {
  for (const bool tied : {false, true})
    for (const std::int64_t experts : {1, 4})
      for (const auto& [replicate, expert, tensor, pipeline] :
           {std::array{4, 1, 1, 1}, {1, 2, 1, 1}, {2, 1, 2, 1}, {2, 1, 1, 2}, {2, 1, 2, 4}})
        for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::zero_bubble}) {
          if (expert > experts || (schedule == Schedule::zero_bubble && pipeline == 1)) continue;
          Layout layout;
          layout.replicate = replicate, layout.shard = layout.expert = expert;
          layout.tensor = tensor, layout.pipeline = pipeline;
          layout.schedule = schedule;
          layout.sequence_parallel = tensor > 1;
          layout.reshard_after_forward = layout.reduce_every_microbatch = false;
          INFO(layout.name() << (tied ? ", tied" : ""));
          const ModelSpec model = small(tied, experts);
          ProgramOptions options{16, 3, Precision::bf16};
          options.memory.resident_weights = true;
          const auto moved = [&](WeightGradients how) {
            options.memory.weight_gradients = how;
            double sum = 0;
            for (const Program& program : build_program_set(model, layout, options).programs)
              sum += moved_bytes(program);
            return sum;
          };
          // Of all stages; norms and biases are whole on every tensor rank, and a tied matrix is on both ends.
          double whole = 0;
          const ModelSpec slice = tensor_slice(model, tensor, layout.whole_experts);
          for (const Group group : {Group::embedding, Group::head})
            whole += static_cast<double>(group_elements(slice, layout, group, 0));
          if (tied && pipeline > 1) whole += static_cast<double>(group_elements(slice, layout, Group::head, 0));
          for (std::int64_t layer = 0; layer < model.layers; ++layer)
            for (const Group group : {Group::dense, Group::expert})
              whole += static_cast<double>(group_elements(slice, layout, group, layer));
          CHECK(moved(WeightGradients::added) - moved(WeightGradients::in_place) ==
                Approx(3 * (2 + 2 * 4) * whole).epsilon(0.01));  // padded to equal shares
        }
}
