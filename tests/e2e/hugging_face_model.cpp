// For tests/python/hugging_face_test.py: our model with a Hugging Face folder's weights.
//   hugging_face_model logits FOLDER TOKEN...    prints one line of logits a token
//   hugging_face_model save FOLDER TO            loads and saves under the family's names
//   hugging_face_model gradients FOLDER TO TOKEN...  saves so the gradients of the mean cross entropy of the next
//   tokens,
//                                                without what balances the router
//   hugging_face_model positions FOLDER          prints its rotary frequencies, then amplitude and softmax scale
#include <string>

#include "configs/base/error.hpp"
#include "trainer/model/segments.hpp"
#include "trainer/parameters/hugging_face.hpp"
#include "trainer/pch.hpp"

namespace {

using namespace wt;

struct Model {
  explicit Model(const std::string& folder) : spec(read_model(folder)) {
    const auto add = [&](Group group, std::int64_t layer) {
      groups.push_back(make_group(group_layout(spec, layout, group, layer, 0), 1));
    };
    add(Group::embedding, -1), add(Group::head, -1);
    for (std::int64_t layer = 0; layer < spec.blocks(); ++layer) add(Group::dense, layer), add(Group::expert, layer);
    if (spec.router.bias_update_rate > 0) add(Group::router_bias, -1);
    PretrainedWeights(folder, spec).load(groups);
  }
  Slot slot(std::size_t group) const {
    Slot out = Slot::make(groups[group].layout, at::kFloat);
    out.flat.narrow(0, 0, groups[group].master.numel()).copy_(groups[group].master);
    return out;
  }
  /// What loss-free balancing adds to the layer's scores.
  at::Tensor bias(std::int64_t layer) const {
    if (spec.router.bias_update_rate == 0 || !spec.moe(layer)) return {};
    return groups.back().master.view({-1, spec.experts})[spec.moe_layers_before(layer)];
  }
  ModelSpec spec;
  Layout layout;
  std::vector<ShardedGroup> groups;
};

at::Tensor logits(const Model& model, const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  const Segments segments(model.spec, model.layout, tokens.size(0), 1, at::kFloat);
  const LayerRecompute keep_nothing{true, false, false, false};
  const Slot head = model.slot(1), embedding = model.spec.tied ? head : model.slot(0);
  at::Tensor x = segments.embed(embedding, tokens);
  for (std::int64_t layer = 0; layer < model.spec.layers; ++layer) {
    const auto first = static_cast<std::size_t>(2 + 2 * layer);
    LayerState s;
    s.input = x;
    RouterLoss loss;
    const Slot dense = model.slot(first);
    segments.attention(s, dense, layer, Direction::forward, keep_nothing, model.bias(layer), loss);
    if (model.spec.ffn_width(layer) > 0) segments.ffn(s, dense, layer, Direction::forward, keep_nothing);
    if (model.spec.moe(layer)) {
      segments.experts(s, model.slot(first + 1), Direction::forward, keep_nothing);
      x = segments.combine_rows(s, keep_nothing);
    } else {
      x = s.residual;
    }
  }
  return at::mm(norm(x, head, "norm", model.spec), head.leaves.back().t());
}

/// Saves values that lie in `flat`, a tensor for each group, as the groups' weights do.
void save(const std::string& to, const Model& model, const std::vector<at::Tensor>& flat) {
  save_pretrained(to, model.spec, false, [&](const ParameterInfo& wanted) -> std::vector<float> {
    for (std::size_t group = 0; group < flat.size(); ++group)
      for (const ParameterInfo& p : model.groups[group].layout.parameters)
        if (const float* first = flat[group].data_ptr<float>() + p.offset; p.name == wanted.name)
          return {first, first + p.elements()};
    throw_runtime("no parameter {}", wanted.name);
  });
}

std::vector<at::Tensor> masters(const Model& model) {
  std::vector<at::Tensor> out;
  for (const ShardedGroup& group : model.groups) out.push_back(group.master);
  return out;
}

std::vector<at::Tensor> gradients(Model& model, const at::Tensor& tokens) {
  model.spec.router.aux_loss_weight = 0;
  const at::Tensor inputs = tokens.narrow(0, 0, tokens.size(0) - 1), targets = tokens.narrow(0, 1, inputs.size(0));
  const Segments segments(model.spec, model.layout, inputs.size(0), 1, at::kFloat);
  std::vector<Slot> slots;
  std::vector<GradientBuffer> buffers;
  std::vector<at::Tensor> out;
  for (std::size_t group = 0; group < model.groups.size(); ++group) {
    slots.push_back(model.slot(group)), buffers.push_back(GradientBuffer::make(model.groups[group].layout));
    slots.back().accumulate_into(buffers.back());
    out.push_back(buffers.back().flat);
  }
  const std::size_t embedding = model.spec.tied ? 1 : 0;
  std::vector<LayerState> states(static_cast<std::size_t>(model.spec.layers));
  RouterLoss loss;
  at::Tensor x = segments.embed(slots[embedding], inputs);
  for (std::int64_t layer = 0; layer < model.spec.layers; ++layer) {
    const auto first = static_cast<std::size_t>(2 + 2 * layer);
    LayerState& s = states[static_cast<std::size_t>(layer)];
    s.input = x;
    segments.attention(s, slots[first], layer, Direction::forward, {}, model.bias(layer), loss);
    if (model.spec.ffn_width(layer) > 0) segments.ffn(s, slots[first], layer, Direction::forward, {});
    if (model.spec.moe(layer)) segments.experts(s, slots[first + 1], Direction::forward, {});
    x = model.spec.moe(layer) ? segments.combine_rows(s, {}) : std::move(s.residual);
  }
  at::Tensor gradient = segments.head(slots[1], slots[1], x, targets, 0, at::zeros({1}, at::kDouble));
  for (std::int64_t layer = model.spec.layers - 1; layer >= 0; --layer) {
    LayerState& s = states[static_cast<std::size_t>(layer)];
    s.output_gradient = std::move(gradient);
    if (model.spec.moe(layer)) segments.combine_rows_backward(s), segments.experts_backward(s);
    if (model.spec.ffn_width(layer) > 0) segments.ffn_backward(s);
    gradient = segments.attention_backward(s);
  }
  segments.embed_backward(buffers[embedding], inputs, gradient);
  return out;
}

at::Tensor tokens_of(int argc, char** argv, int first) {
  at::Tensor tokens = at::empty({argc - first}, at::kLong);
  for (int i = first; i < argc; ++i) tokens[i - first] = std::stol(argv[i]);
  return tokens;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    at::set_num_threads(1);
    const std::string verb = argc > 2 ? argv[1] : "";
    if (verb == "save" && argc == 4) {
      const Model model(argv[2]);
      save(argv[3], model, masters(model));
      return 0;
    }
    if (verb == "gradients" && argc > 5) {
      Model model(argv[2]);
      save(argv[3], model, gradients(model, tokens_of(argc, argv, 4)));
      return 0;
    }
    if (verb == "positions" && argc == 3) {
      const ModelSpec m = read_model(argv[2]);
      const RopeScaling& scaling = m.attention.rope_scaling;
      for (const double frequency : rope_frequencies(scaling, m.attention.rope_theta, m.rope_dim()))
        fmt::print("{} ", frequency);
      fmt::print("\n{} {}\n", rope_amplitude(scaling), m.softmax_scale());
      return 0;
    }
    if (verb != "logits")
      throw_usage(
          "usage: hugging_face_model logits FOLDER TOKEN... | save FOLDER TO | gradients FOLDER TO TOKEN... | "
          "positions FOLDER");
    const Model model(argv[2]);
    const at::Tensor out = logits(model, tokens_of(argc, argv, 3));
    for (std::int64_t t = 0; t < out.size(0); ++t) {
      for (std::int64_t v = 0; v < out.size(1); ++v) fmt::print("{} ", out[t].data_ptr<float>()[v]);
      fmt::print("\n");
    }
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
