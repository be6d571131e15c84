#include "bench/formats/unpacked.hpp"

#include <zlib.h>

#include <memory>

#include "configs/base/error.hpp"

namespace wt {

std::string read_unpacked(const std::filesystem::path& file, const std::string& needs, std::uintmax_t most) {
  std::error_code none;
  const auto close = [](gzFile open) { gzclose(open); };
  const std::unique_ptr<gzFile_s, decltype(close)> in(
      std::filesystem::is_regular_file(file, none) ? gzopen(file.c_str(), "rb") : nullptr, close);
  if (!in) throw_usage("{}: cannot be read; needs {}", file.string(), needs);
  constexpr std::size_t kPiece = 1 << 20;
  std::string out;
  for (int got = 1; got > 0;) {
    const std::size_t before = out.size();
    out.resize(before + kPiece);
    got = gzread(in.get(), out.data() + before, static_cast<unsigned>(kPiece));
    out.resize(before + static_cast<std::size_t>(std::max(got, 0)));
    if (out.size() > most)
      throw_usage("{}: found more than {} MiB after unpacking, needs {} of fewer steps", file.string(), most >> 20,
                  needs);
  }
  int code = Z_OK;
  gzerror(in.get(), &code);  // a cut stream gives Z_BUF_ERROR after its last whole block
  if (code != Z_OK && code != Z_STREAM_END)
    throw_usage("{}: found gzip that is damaged or cut, needs {}", file.string(), needs);
  return out;
}

}  // namespace wt
