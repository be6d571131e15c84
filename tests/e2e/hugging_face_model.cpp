// For tests/python/hugging_face_test.py: our model with a Hugging Face folder's weights.
//   hugging_face_model logits FOLDER TOKEN...    prints one line of logits a token
//   hugging_face_model save FOLDER TO            loads and saves under the family's names
//   hugging_face_model positions FOLDER          prints its rotary frequencies, then amplitude and softmax scale
#include <string>

#include "configs/spec/support/error.hpp"
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
    for (std::int64_t layer = 0; layer < spec.layers; ++layer) add(Group::dense, layer), add(Group::expert, layer);
    if (spec.router.bias_update_rate > 0) add(Group::router_bias, -1);
    PretrainedWeights(folder, spec).load(groups);
  }
  Slot slot(std::size_t group) const {
    Slot out = Slot::make(groups[group].layout, at::kFloat);
    out.flat.narrow(0, 0, groups[group].master.numel()).copy_(groups[group].master);
    return out;
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
    at::Tensor bias;
    if (model.spec.router.bias_update_rate > 0 && model.spec.moe(layer))
      bias = model.groups.back().master.view({-1, model.spec.experts})[layer - model.spec.dense_layers];
    const Slot dense = model.slot(first);
    segments.attention(s, dense, layer, Direction::forward, keep_nothing, bias, loss);
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

std::vector<float> parameter(const Model& model, const ParameterInfo& wanted) {
  for (const ShardedGroup& group : model.groups)
    for (const ParameterInfo& p : group.layout.parameters)
      if (p.name == wanted.name)
        return {group.master.data_ptr<float>() + p.offset, group.master.data_ptr<float>() + p.offset + p.elements()};
  throw_error(Code::runtime, "no parameter {}", wanted.name);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    at::set_num_threads(1);
    const std::string verb = argc > 2 ? argv[1] : "";
    if (verb == "save" && argc == 4) {
      const Model model(argv[2]);
      save_pretrained(argv[3], model.spec, false, [&](const ParameterInfo& p) { return parameter(model, p); });
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
      throw_error(Code::usage, "usage: hugging_face_model logits FOLDER TOKEN... | save FOLDER TO | positions FOLDER");
    const Model model(argv[2]);
    at::Tensor tokens = at::empty({argc - 3}, at::kLong);
    for (int i = 3; i < argc; ++i) tokens[i - 3] = std::stol(argv[i]);
    const at::Tensor out = logits(model, tokens);
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
