#include "planner/experiments/system_text.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "trainer/data/mds_reader.hpp"
#include "trainer/data/pack.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> system_texts(std::uint64_t bytes) {
  std::vector<fs::path> documents, chosen;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/usr/share/doc", none))
    if (const fs::path file = entry.path() / "copyright";
        fs::is_regular_file(file, none) && !fs::is_symlink(file, none))
      documents.push_back(file);
  std::ranges::sort(documents);
  std::uint64_t total = 0;
  if (fs::is_directory("/usr/share/common-licenses", none)) chosen.emplace_back("/usr/share/common-licenses");
  for (const fs::path& file : documents) {
    const std::uint64_t size = fs::file_size(file, none);
    if (none || size == 0 || total + size > bytes) continue;
    chosen.push_back(file);
    total += size;
  }
  return chosen;
}

}  // namespace

fs::path system_text_folder(const fs::path& folder, std::int64_t seq_len) {
  return folder / fmt::format("data-seq{}", seq_len);
}

std::string ensure_system_text(const fs::path& folder, std::int64_t seq_len, std::uint64_t bytes) {
  if (fs::exists(folder / "index.json")) {
    const MdsReader data(folder);
    return fmt::format("{} samples in {} (packed earlier)", data.size(), folder.string());
  }
  fs::create_directories(folder.parent_path());
  PackOptions options;
  options.seq_len = seq_len;
  const PackResult r = pack_text(system_texts(bytes), folder, options);
  return fmt::format("{} files, {} of text: {} samples of {} tokens in {}", r.files,
                     format_bytes(static_cast<double>(r.bytes)), r.samples, seq_len, folder.string());
}

}  // namespace wt
