// Memory snapshots of PyTorch: their peaks, and that a pickle never runs anything.
#include <catch2/catch.hpp>
#include <set>

#include "bench/formats/memory_snapshot.hpp"
#include "bench/formats/pickle.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;

namespace {

constexpr double kMiB = 1 << 20;

std::string text(const std::string& value) { return "\x8c" + std::string(1, static_cast<char>(value.size())) + value; }
std::string whole(std::int64_t value) {
  std::string out = "\x8a\x08";
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
  return out;
}
std::string event(const std::string& action, std::int64_t size) {
  return "}(" + text("action") + text(action) + text("size") + whole(size) + "u";
}
/// One segment of 20 MiB with 4 MiB of tensors, and a history.
std::string snapshot(const std::string& events) {
  return "\x80\x04}(" + text("segments") + "](}(" + text("device") + "K" + std::string(1, '\0') + text("total_size") +
         whole(20 << 20) + text("allocated_size") + whole(4 << 20) + "ue" + text("device_traces") + "](](" + events +
         "eeu.";
}

std::string refusal(const std::string& bytes) {
  return usage_error([&] { memory_snapshot_from(bytes, "s.pickle"); });
}

}  // namespace

TEST_CASE("peaks of a snapshot are found by going back in its history, as Python wrote it") {
  // 20 and 30 MiB reserved, 8 and 4 MiB of tensors; the 8 and the 30 given back (tests/fuzz/corpus/memory_snapshot).
  for (const char* protocol : {"2", "4", "5"}) {
    const MemorySnapshot s =
        read_memory_snapshot(std::string("tests/fuzz/corpus/memory_snapshot/protocol") + protocol + ".pickle");
    CHECK(s.reserved_bytes == 50 * kMiB);
    CHECK(s.allocated_bytes == 12 * kMiB);
    CHECK((s.events == 7 && s.from_start && s.failures == 0));
  }
}

TEST_CASE("a history without its beginning, with early frees, with a failure, and none") {
  const MemorySnapshot none = memory_snapshot_from(snapshot(""), "s.pickle");
  CHECK((none.reserved_bytes == 20 * kMiB && none.allocated_bytes == 4 * kMiB && none.events == 0));
  const MemorySnapshot s = memory_snapshot_from(
      snapshot(event("alloc", 3 << 20) + event("free_completed", 3 << 20) + event("oom", 1 << 30)), "s.pickle");
  CHECK((s.allocated_bytes == 7 * kMiB && s.reserved_bytes == 20 * kMiB && s.failures == 1 && !s.from_start));
  const MemorySnapshot odd = memory_snapshot_from(snapshot(event("alloc", 1) + event("free_completed", 1)), "s.pickle");
  CHECK(odd.allocated_bytes == 4 * kMiB + 512);  // as the allocator rounds
}

TEST_CASE("a pickle that names, makes or calls anything is refused, whatever it is") {
  // os.system of protocol 0, and by the opcodes of later ones
  CHECK_THAT(refusal("cos\nsystem\n(S'true'\ntR."), Contains("opcode 0x63") && Contains("may run code"));
  CHECK_THAT(refusal("\x80\x04\x8c\x02os\x8c\x06system\x93."), Contains("opcode 0x93"));
  const std::set<int> plain{0x80, 0x95, '(',  'N', 0x88, 0x89, 'K', 'M', 'J', 0x8a, 'G',
                            'X',  0x8c, 0x8d, ']', ')',  '}',  'l', 't', 'd', 0x85, 0x86,
                            0x87, 'a',  'e',  's', 'u',  0x94, 'q', 'r', 'h', 'j',  '.'};
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (plain.contains(opcode)) continue;
    CHECK_THAT(refusal("\x80\x04}}}(" + std::string(1, static_cast<char>(opcode)) + "."), Contains("may run code"));
  }
}

TEST_CASE("pickles that are cut, without sense or of something else are refused") {
  const std::string all = snapshot(event("alloc", 1 << 20));
  for (std::size_t size = 0; size < all.size(); ++size) CHECK(refusal(all.substr(0, size)) != "no error");
  CHECK_THAT(refusal("\x80\x04}."), Contains("no segments"));
  CHECK_THAT(refusal(snapshot(event("alloc", -5))), Contains("no size of"));
  std::string keys;
  for (int i = 0; i < 101; ++i) keys += text("k" + std::to_string(i)) + "N";
  CHECK_THAT(refusal(snapshot("}(" + keys + "u")), Contains("more than 100 keys"));
  CHECK_THAT(refusal("\x80\x01}."), Contains("another protocol"));
  CHECK_THAT(refusal("\x80\x04u."), Contains("no mark"));
  CHECK_THAT(refusal("\x80\x04}(Nu."), Contains("a key without a value"));
  CHECK_THAT(refusal("\x80\x04NNa."), Contains("something else than a list"));
  CHECK_THAT(refusal("\x80\x04h\x07."), Contains("not kept"));
  CHECK_THAT(refusal("\x80\x04NN."), Contains("no single value"));
  CHECK_THAT(refusal("\x80\x04\x8a\x09" + std::string(9, '\x7f') + "."), Contains("more than 64 bits"));
}

TEST_CASE("numbers and shared values of a pickle") {
  const std::string bytes = "\x80\x02](K\x07J" + std::string("\xfe\xff\xff\xff", 4) + "M" + std::string("\x70\x11", 2) +
                            "G" + std::string("\x3f\xe0\0\0\0\0\0\0", 8) + "\x8a\x02" + std::string("\x00\xff", 2) +
                            "]\x94h" + std::string(1, '\0') + "\x89" + "Ne.";
  const Pickle pickle(bytes, "p");
  const auto& items = pickle.root().items;
  REQUIRE(items.size() == 9);
  CHECK((items[0]->whole == 7 && items[1]->whole == -2 && items[2]->whole == 0x1170 && items[3]->real == 0.5));
  CHECK(items[4]->whole == -256);
  CHECK(items[5] == items[6]);
  CHECK((items[7]->kind == PickleValue::Kind::boolean && items[8]->kind == PickleValue::Kind::none));
  // A list that has itself inside ends, and so does one whose parts double with each step.
  CHECK_NOTHROW(Pickle("\x80\x04]\x94h" + std::string(1, '\0') + "a.", "p"));
  std::string doubled = "\x80\x04]\x94";
  for (int i = 0; i < 60; ++i) doubled += "]\x94(h" + std::string(1, char(i)) + "h" + std::string(1, char(i)) + "e";
  for (int i = 0; i < 60; ++i) doubled += "\x86";
  CHECK_NOTHROW(Pickle(doubled + ".", "p"));
}
