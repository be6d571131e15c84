// Writes the byte tokenizer into the folder given, for tests in Python.
#include "trainer/data/tokenizer_files.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  wt::write_byte_tokenizer(argv[1]);
  return 0;
}
