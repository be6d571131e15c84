#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>
#include <stdexcept>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/base/text.hpp"
#include "configs/files/index_samples.hpp"
#include "tests/fuzz/door.hpp"
#include "trainer/data/documents.hpp"
#include "trainer/data/finetuning.hpp"
#include "trainer/data/labelled_tokens.hpp"
#include "trainer/data/mds_compression.hpp"
#include "trainer/data/mds_encoding.hpp"
#include "trainer/data/mds_index.hpp"
#include "trainer/data/mds_shard_file.hpp"
#include "trainer/data/mds_writer.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/safetensors/adapter.hpp"
#include "trainer/safetensors/manifest.hpp"
#include "trainer/safetensors/pretrained_files.hpp"
#include "trainer/safetensors/safetensors.hpp"
#include "trainer/safetensors/sealed_document.hpp"
#include "trainer/storage/aws_profile.hpp"
#include "trainer/storage/s3_error.hpp"
#include "trainer/storage/s3_list.hpp"

namespace wt::fuzz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// As a loader reads them.
void read_all(const StoredFile& file) {
  for (const auto& [key, tensor] : file.tensors) {
    std::vector<std::byte> values(static_cast<std::size_t>(tensor.bytes()));
    read_values(tensor, 0, tensor.elements(), values.data());
  }
}

std::string bytes_in(const fs::path& file) { return read_file(file, "a seed"); }

/// A data set of two samples, of ids of 16 bits and of a text.
struct SmallDataset {
  std::string index, shard;
};
SmallDataset small_dataset(const std::string& column, const std::string& encoding,
                           const std::vector<std::string>& samples) {
  const ScratchFolder scratch("fuzz-mds");
  MdsWriter writer(scratch.path() / "mds", {{column, encoding}});
  for (const std::string& sample : samples) writer.write(std::span(&sample, 1));
  writer.finish();
  return {bytes_in(scratch.path() / "mds" / kMdsIndexName), bytes_in(scratch.path() / "mds" / "shard.00000.mds")};
}

std::vector<std::string> safetensors_seeds() {
  const ScratchFolder scratch("fuzz-safetensors");
  const fs::path file = scratch.path() / "a.safetensors";
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  write_safetensors(file, {{"w", "F32", {2, 3}, values.data(), {}}, {"b", "BF16", {2}, values.data(), {}}});
  const std::string whole = bytes_in(file);
  write_safetensors(file, {{"w", "F32", {1, 3}, values.data(), {1, 0}}});
  return {whole, bytes_in(file)};
}

/// Weights of an adapter whose configuration is in the corpus of adapter_config.
std::string adapter_weights() {
  const ScratchFolder scratch("fuzz-adapter");
  LoraSpec spec;
  spec.rank = 2;
  spec.target_modules = {"q_proj"};
  write_adapter(scratch.path(),
                {spec, "base", {{"model.layers.0.self_attn.q_proj", {2, 2, {1, 2, 3, 4}, {1, 2, 3, 4}}}}});
  return bytes_in(scratch.path() / "adapter_model.safetensors");
}

std::string manifest_seed() {
  const json file = {{"name", "model.safetensors"}, {"bytes", 128}, {"header_xxh3", "0123456789abcdef"}};
  return sealed({{"schema", kCheckpointSchema},
                 {"step", 12},
                 {"data", {{"seed", 1}}},
                 {"model", {{"n_layers", 2}}},
                 {"sampler", {{"epoch", 0}}},
                 {"files", json::array({file})}})
      .dump(1);
}

const std::vector<std::string>& codecs() {
  static const std::vector<std::string> kCodecs{"zstd", "gz", "br", "bz2", "snappy"};
  return kCodecs;
}

}  // namespace

std::vector<Door> data_doors() {
  std::vector<Door> doors;
  const std::vector<std::uint16_t> ids{1, 2, 3, 500};
  const std::string encoded = encode_mds_tokens(ids);
  const SmallDataset dataset = small_dataset("tokens", "ndarray:uint16", {encoded, encoded});
  doors.push_back({"mds_index", {dataset.index}, [](const auto& input, const auto&) {
                     python_json(mds_index(parse_mds_index(input, "index.json")));
                     std::istringstream text(input);
                     samples_in_index(text);
                   }});
  doors.push_back(
      {"mds_shard",
       {dataset.shard},
       [entry = parse_mds_index(dataset.index, "index.json").at(0)](const auto& input, const fs::path& folder) mutable {
         entry.raw.bytes = input.size();  // else nothing but the size is looked at
         if (input.size() >= 4) {
           std::uint32_t samples = 0;
           std::memcpy(&samples, input.data(), 4);
           entry.samples = samples;
         }
         const MdsShardFile shard(written(folder, "shard.mds", input), entry, 0);
         for (std::int64_t i = 0; i < entry.samples; ++i) shard.tokens(static_cast<std::size_t>(i));
       }});
  doors.push_back({"mds_tokens", {encoded}, [](const auto& input, const auto&) {
                     for (const char* encoding : {"ndarray", "ndarray:uint16", "ndarray:int32:2,2", "bytes"}) {
                       try {
                         decode_mds_tokens(mds_encoding_from_string(encoding, "index"), bytes_of(input), "sample");
                       } catch (const Error&) {
                         need_refusal();  // of another encoding: the next one
                       }
                     }
                   }});
  doors.push_back({"mds_encoding", {"ndarray:uint16:2,3", "int", "bytes"}, [](const auto& input, const auto&) {
                     mds_encoding_from_string(input, "index");
                   }});
  doors.push_back({"mds_compression_name", {"zstd:7", "gz", "br:11", "snappy"}, [](const auto& input, const auto&) {
                     mds_compression_from_string(input, "index");
                   }});
  Door zip{"mds_compression", {}, [](const auto& input, const auto&) {
             if (input.empty()) return;
             const std::string& codec = codecs()[static_cast<unsigned char>(input[0]) % codecs().size()];
             decompress_mds(mds_compression_from_string(codec, "index"), bytes_of(input).subspan(1), 4096, "shard");
           }};
  const std::string raw(4096, 'a');
  for (std::size_t i = 0; i < codecs().size(); ++i)  // the first byte says which
    zip.seeds.push_back(static_cast<char>(i) +
                        compress_mds(mds_compression_from_string(codecs()[i], "index"), bytes_of(raw)));
  doors.push_back(std::move(zip));
  for (const auto unit : {DocumentReader::Unit::text, DocumentReader::Unit::objects})
    doors.push_back({unit == DocumentReader::Unit::text ? "documents" : "examples",
                     {},
                     [unit](const auto& input, const fs::path& folder) {
                       if (input.empty()) return;
                       for (const char* name : {"a.jsonl", "a.json", "a.txt"}) {
                         if (unit == DocumentReader::Unit::objects && std::string(name) == "a.txt") continue;
                         try {
                           DocumentReader reader({{written(folder, name, input), input.size()}}, unit);
                           while (const auto piece = reader.next())
                             if (unit == DocumentReader::Unit::objects)
                               finetuning_example(lax_json(piece->text), piece->place);
                         } catch (const Error&) {
                           need_refusal();  // of another kind: the next one
                         }
                       }
                     }});
  doors.push_back({"turns", {}, [](const auto& input, const auto&) { labelled_tokens(input, {}, 16, "example"); }});
  doors.push_back(
      {"sampler_state",
       {to_json(SamplerState{}).dump(),
        to_json(SamplerState{1, 8, 2, 7, 1, {{0, 0, {0.5, 1}}}, {2, 4}, {{1, 2}}}).dump(1)},
       [](const auto& input, const auto&) { sampler_state_from_json(parse_json(input, "state"), "state"); }});
  doors.push_back({"safetensors", safetensors_seeds(), [](const auto& input, const fs::path& folder) {
                     read_all(read_safetensors(written(folder, "a.safetensors", input)));
                   }});
  doors.push_back(
      {"safetensors_index", {}, [tensors = safetensors_seeds()[0]](const auto& input, const fs::path& folder) {
         written(folder, "model-00001-of-00001.safetensors", tensors);
         written(folder, "model.safetensors.index.json", input);
         pretrained_tensors(folder);
       }});
  doors.push_back({"adapter_config", {}, [weights = adapter_weights()](const auto& input, const fs::path& folder) {
                     written(folder, "adapter_model.safetensors", weights);
                     written(folder, "adapter_config.json", input);
                     read_adapter(folder);
                   }});
  doors.push_back({"adapter_weights", {adapter_weights()}, [](const auto& input, const fs::path& folder) {
                     LoraSpec spec;
                     spec.rank = 2;
                     spec.target_modules = {"q_proj"};
                     written(folder, "adapter_config.json", adapter_config(spec, "base").dump());
                     written(folder, "adapter_model.safetensors", input);
                     read_adapter(folder);
                   }});
  doors.push_back({"manifest", {manifest_seed()}, [](const auto& input, const fs::path& folder) {
                     const fs::path checkpoint = folder / step_name(12);
                     fs::create_directories(checkpoint);
                     const json changed = lax_json(input);  // sealed again: else the seal alone is looked at
                     written(checkpoint, "manifest.json", changed.is_object() ? sealed(changed).dump() : input);
                     read_manifest(checkpoint);
                   }});
  doors.push_back({"s3_error", {}, [](const auto& input, const auto&) {
                     s3_error_of({403, {}, input, input.size()});
                     s3_error_in({200, {}, input, input.size()});
                   }});
  doors.push_back({"s3_list",
                   {"<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true"
                    "</IsTruncated><NextContinuationToken>t</NextContinuationToken><Contents><Key>runs%2Fa+b/shard"
                    "</Key><Size>12</Size></Contents><Contents><Key>runs/../x</Key><Size>-1</Size></Contents>"
                    "</ListBucketResult>"},
                   [](const auto& input, const auto&) {
                     pugi::xml_document document;
                     if (!document.load_string(input.c_str())) return;
                     for (const StoreEntry& file : s3_list_page(document.child("ListBucketResult"), "runs/", "").files)
                       if (const fs::path name(file.name);
                           name.is_absolute() || *name.lexically_normal().begin() == "..")
                         throw std::logic_error("a name that leads out: " + file.name);
                   }});
  doors.push_back({"aws_profile", {}, [](const auto& input, const fs::path& folder) {
                     setenv("AWS_SHARED_CREDENTIALS_FILE", written(folder, "credentials", input).c_str(), 1);
                     setenv("AWS_CONFIG_FILE", (folder / "credentials").c_str(), 1);
                     aws_profile();
                   }});
  return doors;
}

}  // namespace wt::fuzz
