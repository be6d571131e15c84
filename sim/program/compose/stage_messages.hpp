// Chunks of a pipeline stage, and the messages between neighbouring ones.
#pragma once
#include <map>
#include <optional>
#include <utility>

#include "sim/program/compose/pipeline_schedule.hpp"
#include "sim/program/compose/step_builder.hpp"

namespace wt {

/// Neighbouring blocks, with what stands around them.
struct Chunk {
  int first, last;         ///< first > last: none
  bool embedding = false;  ///< the model's first chunk
  bool head = false;       ///< its last one
  int before = -1;         ///< where the chunk before it is: stages from this one; 0 = here
  int behind = 1;          ///< and the one behind it
  bool blocks() const { return first <= last; }
};

/// The stage's chunks, in the model's order.
std::vector<Chunk> stage_chunks(const ModelSpec& model, const Layout& layout, std::int64_t stage);

class StageMessages : protected StepBuilder {
 protected:
  using StepBuilder::StepBuilder;

  /// The message before one on the same lane: its layer, and its microbatch counted from this one's.
  using Behind = std::optional<std::pair<int, int>>;
  /// Of the message that the pass ends with; nothing where there is none, or it is the first.
  Behind behind(const StageWork& work, const Chunk& chunk) const;
  void note_sent(const StageWork& work, const Chunk& chunk);

  /// Ops of one layer.
  static void at(Nodes& out, int layer, Nodes body) {
    out.push_back(loop(Loop::Index::layer, layer, layer, std::move(body)));
  }
  /// A message between neighbouring stages.
  Op message(OpKind kind, Direction direction, double bytes, int stages) const;
  /// Receives, and lets the compute lane wait for it. What arrives is of the neighbouring block, as its name says; the
  /// embedding's output and the gradient of the head's input are without a block. Nothing where that chunk is here.
  void add_receive(Nodes& out, Direction direction, const Chunk& chunk) const;
  /// Behind the op `after` and the message before, which thereby gives its buffer back.
  void add_send(Nodes& out, Direction direction, const Chunk& chunk, const std::string& after,
                const Behind& behind) const;
  /// The last messages, of the last microbatch, have left.
  void add_sent();

 private:
  struct Sent {
    int microbatch, layer;
    Direction direction;
  };
  /// Bytes between chunks: one hidden state, or between the modules of multi-token prediction and the head theirs, too.
  double message_bytes(bool before_head) const;
  Lane lane_of_message(bool sends, Direction direction, int stages) const;
  /// Of the message that a pass ends with; none where the next chunk is here, or there is none.
  std::optional<Lane> sends_on(StageWork::Pass pass, const Chunk& chunk) const;

  std::map<Lane, Sent> sent_;  ///< the last message each way
};

}  // namespace wt
