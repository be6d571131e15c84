// One page of a store's answer to ListObjectsV2.
#pragma once
#include <string>
#include <vector>

#include "trainer/storage/store.hpp"

namespace pugi {
class xml_node;
}

namespace wt {

struct S3ListPage {
  std::vector<StoreEntry> files;  ///< names relative to `root`, in the answer's order
  std::string next;               ///< token of the next page
  bool is_last = true;
};

/// Parses a <ListBucketResult>. `root`: the address's prefix, "" or ending in "/"; `prefix`: the requested prefix below
/// it. Skips keys with another prefix, because lists decide what is removed, names that could lead out of a folder, and
/// "folder/", which some tools create.
S3ListPage s3_list_page(const pugi::xml_node& result, const std::string& root, const std::string& prefix);

}  // namespace wt
