#include "sim/program/compose/stage_messages.hpp"

namespace wt {
namespace {

bool goes_back(Lane sent) { return sent == Lane::send_activations_back || sent == Lane::send_gradients_back; }

}  // namespace

std::vector<Chunk> stage_chunks(const ModelSpec& model, const Layout& layout, std::int64_t stage) {
  std::vector<Chunk> out;
  std::vector<std::int64_t> layers = layout.layers_of_chunks(model.layers);
  layers.at(layers.size() - (layout.modules_before_head ? 2 : 1)) += model.mtp_layers;
  // With interleaved chunks the next chunk is on the next stage, cyclically.
  const auto stages_to = [&](std::int64_t chunk, int step) {
    return layout.schedule == Schedule::dualpipe_v ? static_cast<int>(layout.stage_of(chunk + step) - stage) : step;
  };
  std::int64_t chunk = -1, layer = 0;
  for (const std::int64_t count : layers) {
    ++chunk;
    if (layout.stage_of(chunk) == stage)
      out.push_back({static_cast<int>(layer), static_cast<int>(layer + count) - 1, chunk == 0,
                     chunk + 1 == static_cast<std::int64_t>(layers.size()), stages_to(chunk, -1), stages_to(chunk, 1)});
    layer += count;
  }
  return out;
}

StageMessages::Behind StageMessages::behind(const StageWork& work, const Chunk& chunk) const {
  const std::optional<Lane> lane = sends_on(work.pass, chunk);
  const auto before = lane ? sent_.find(*lane) : sent_.end();
  if (before == sent_.end()) return {};
  return std::pair(before->second.layer, before->second.microbatch - work.microbatch);
}

void StageMessages::note_sent(const StageWork& work, const Chunk& chunk) {
  const std::optional<Lane> lane = sends_on(work.pass, chunk);
  if (!lane) return;
  const bool forward = work.pass == StageWork::Pass::forward;
  const int layer = !chunk.blocks() ? -1 : forward ? chunk.last : chunk.first;  // -1: embedding or head
  sent_[*lane] = {work.microbatch, layer, forward ? Direction::forward : Direction::backward};
}

double StageMessages::message_bytes(bool before_head) const {
  return sizes_.x * (before_head && layout_.modules_before_head ? 1 + as_double(model_.mtp_layers) : 1);
}

Lane StageMessages::lane_of_message(bool sends, Direction direction, int stages) const {
  const bool forward = direction == Direction::forward;
  // Lanes of the path from the last stage to the first, and of its gradients in the other direction.
  if (layout_.schedule == Schedule::dualpipe_v && stages != (sends == forward ? 1 : -1))
    return sends ? (forward ? Lane::send_activations_back : Lane::send_gradients_back)
                 : (forward ? Lane::receive_activations_back : Lane::receive_gradients_back);
  return sends ? (forward ? Lane::send_activations : Lane::send_gradients)
               : (forward ? Lane::receive_activations : Lane::receive_gradients);
}

std::optional<Lane> StageMessages::sends_on(StageWork::Pass pass, const Chunk& chunk) const {
  const bool forward = pass == StageWork::Pass::forward;
  const int stages = forward ? chunk.behind : chunk.before;
  if (pass == StageWork::Pass::weights || stages == 0 || (forward ? chunk.head : chunk.embedding)) return {};
  return lane_of_message(true, forward ? Direction::forward : Direction::backward, stages);
}

Op StageMessages::message(OpKind kind, Direction direction, double bytes, int stages) const {
  const bool sends = kind == OpKind::send;
  Op o = op((sends ? "send" : "receive") + suffix(direction), Action::exchange_stages, direction);
  o.kind = kind;
  o.lane = lane_of_message(sends, direction, stages);
  o.collective = {Axis::pipeline, fixed(bytes), {}, stages};
  return o;
}

void StageMessages::add_receive(Nodes& out, Direction direction, const Chunk& chunk) const {
  const bool forward = direction == Direction::forward;
  if ((forward ? chunk.before : chunk.behind) == 0) return;
  const int from = forward ? chunk.first - 1 : chunk.last + 1;
  const bool block = from >= 0 && from < program_.layers;
  const int layer = !block || !chunk.blocks() ? from : forward ? chunk.first : chunk.last;
  const double bytes = message_bytes(forward ? chunk.head : from == program_.layers);
  Op receive = message(OpKind::receive, direction, bytes, forward ? chunk.before : chunk.behind);
  receive.layer_delta = from - layer;
  receive.allocates = {{forward ? "block.output" : "block.input.gradient", fixed(bytes)}};
  Op arrived = op("arrived" + suffix(direction), Action::exchange_stages, direction);
  arrived.kind = OpKind::host;
  arrived.waits = {{receive.name, receive.layer_delta}};
  if (block)
    at(out, layer, {receive, arrived});
  else
    out.insert(out.end(), {receive, arrived});
}

void StageMessages::add_send(Nodes& out, Direction direction, const Chunk& chunk, const std::string& after,
                             const Behind& behind) const {
  const bool forward = direction == Direction::forward;
  const int stages = forward ? chunk.behind : chunk.before;
  if (stages == 0) return;
  Op send =
      message(OpKind::send, direction, message_bytes(forward ? chunk.last == program_.layers - 1 : chunk.head), stages);
  send.waits = {{after}};
  if (behind) send.waits.push_back({send.name, 0, behind->first, behind->second});
  send.frees = {{forward ? "block.output" : "block.input.gradient"}};
  if (chunk.blocks())
    at(out, forward ? chunk.last : chunk.first, {send});
  else
    out.push_back(send);
}

void StageMessages::add_sent() {
  for (const auto& [lane, message] : sent_) {
    Op sent = op((goes_back(lane) ? "sent.back" : "sent") + suffix(message.direction), Action::exchange_stages,
                 message.direction);
    sent.kind = OpKind::host;
    sent.lane = Lane::host;
    sent.waits = {{"send" + suffix(message.direction), 0, message.layer}};
    program_.nodes.push_back(sent);
  }
}

}  // namespace wt
