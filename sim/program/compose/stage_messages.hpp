// Chunks of a pipeline stage, and the messages between neighbouring chunks.
#pragma once
#include <map>
#include <optional>
#include <utility>

#include "sim/program/compose/pipeline_schedule.hpp"
#include "sim/program/compose/step_builder.hpp"

namespace wt {

/// Consecutive blocks, possibly with embedding or head.
struct Chunk {
  int first, last;         ///< first > last: no blocks
  bool embedding = false;  ///< the model's first chunk
  bool head = false;       ///< the model's last chunk
  int before = -1;         ///< stages from this one to that of the previous chunk; 0 = the same stage
  int behind = 1;          ///< likewise to that of the next chunk
  bool blocks() const { return first <= last; }
};

/// The stage's chunks, in the model's order.
std::vector<Chunk> stage_chunks(const ModelSpec& model, const Layout& layout, std::int64_t stage);

class StageMessages : protected StepBuilder {
 protected:
  using StepBuilder::StepBuilder;

  /// The previous message on the same lane: its layer, and its microbatch relative to this one.
  using Behind = std::optional<std::pair<int, int>>;
  /// The one before the message at the end of the pass; nothing if the pass sends no message, or its first.
  Behind behind(const StageWork& work, const Chunk& chunk) const;
  void note_sent(const StageWork& work, const Chunk& chunk);

  /// Ops of one layer.
  static void at(Nodes& out, int layer, Nodes body) {
    out.push_back(loop(Loop::Index::layer, layer, layer, std::move(body)));
  }
  /// A message between neighbouring stages.
  Op message(OpKind kind, Direction direction, double bytes, int stages) const;
  /// Receives a message and makes the compute lane wait for it. It is named after the neighbouring block; the
  /// embedding's output and the gradient of the head's input have no block. Nothing if the neighbouring chunk is on
  /// this stage.
  void add_receive(Nodes& out, Direction direction, const Chunk& chunk) const;
  /// Sends after the op `after` and the previous message, whose buffer is freed then.
  void add_send(Nodes& out, Direction direction, const Chunk& chunk, const std::string& after,
                const Behind& behind) const;
  /// Waits until the last messages have been sent.
  void add_sent();

 private:
  struct Sent {
    int microbatch, layer;
    Direction direction;
  };
  /// Bytes between chunks: one hidden state. Between modules of multi-token prediction and the head also the modules'
  /// hidden states.
  double message_bytes(bool before_head) const;
  Lane lane_of_message(bool sends, Direction direction, int stages) const;
  /// The lane of the message at the end of a pass; none if the next chunk is on this stage, or if there is no next
  /// chunk.
  std::optional<Lane> sends_on(StageWork::Pass pass, const Chunk& chunk) const;

  std::map<Lane, Sent> sent_;  ///< the last message on each lane
};

}  // namespace wt
