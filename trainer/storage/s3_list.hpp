// What a store says that it holds: one page of its answer to ListObjectsV2.
#pragma once
#include <string>
#include <vector>

#include "trainer/storage/store.hpp"

namespace pugi {
class xml_node;
}

namespace wt {

struct S3ListPage {
  std::vector<StoreEntry> files;  ///< names below `root`, in the order of the answer
  std::string next;               ///< token of the next page
  bool is_last = true;
};

/// Of a <ListBucketResult>. `root`: of the address, "" or with a "/" at its end; `prefix`: what was asked for below it.
/// A key of another prefix is left out, as lists decide what is removed; so is a name that could lead out of a folder,
/// and "folder/", which some tools make.
S3ListPage s3_list_page(const pugi::xml_node& result, const std::string& root, const std::string& prefix);

}  // namespace wt
