// Lets tests/referee/safetensors_referee.py write and read through Titan's safetensors code.
//
//   safetensors_probe write FOLDER < jobs.json   files through the writer's functions
//   safetensors_probe read FILE...               one line of JSON for each file
//   safetensors_probe index FOLDER               one line of JSON: tensors and their pieces
//   safetensors_probe hash FILE...               one XXH3-128 a line
//
// jobs.json: [{"file", "metadata": {text: text}, "sharding": null or {tensor: [offset, ...]},
// "tensors": [{"name", "dtype", "shape", "data": "<file with the bytes>"}]}]. For a refused file or
// folder it prints {"kind", "error"}.
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <titan/checkpoints/metadata_texts.h>
#include <titan/checkpoints/safetensors.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>
#include <titan/value.h>

namespace {

using namespace titan;

std::vector<int64_t> numbers_of(const Value& list) {
  std::vector<int64_t> numbers;
  for (const Value& number : list.as_list()) numbers.push_back(number.as_integer());
  return numbers;
}

Value list_of(const std::vector<int64_t>& numbers) {
  return Value::List(numbers.begin(), numbers.end());
}

void write_file(const std::filesystem::path& folder, const Value& job) {
  std::vector<TensorEntry> tensors;
  std::map<std::string, std::string> data;
  for (const Value& tensor : job.at("tensors").as_list()) {
    const std::string& name = tensor.at("name").as_string();
    tensors.push_back({name, tensor.at("dtype").as_string(), numbers_of(tensor.at("shape"))});
    data[name] = read_text(tensor.at("data").as_string());
  }
  lay_out(tensors);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : job.at("metadata").as_map()) metadata[key] = text.as_string();
  if (job.at("sharding").is_map()) {
    std::map<std::string, std::vector<int64_t>> offsets;
    for (const auto& [name, list] : job.at("sharding").as_map()) offsets[name] = numbers_of(list);
    metadata[kShardingKey] = sharding_text(offsets);
  }
  const std::string header = header_bytes(tensors, metadata);
  const File file = File::create(folder / job.at("file").as_string());
  file.write(0, header.data(), static_cast<int64_t>(header.size()));
  for (const TensorEntry& tensor : tensors) {
    const std::string& bytes = data.at(tensor.name);
    TITAN_CHECK(tensor.end - tensor.begin == static_cast<int64_t>(bytes.size()), data, "tensor ",
                tensor.name, " has ", bytes.size(), " bytes");
    file.write(static_cast<int64_t>(header.size()) + tensor.begin, bytes.data(),
               static_cast<int64_t>(bytes.size()));
  }
  file.sync();
}

Value read_file(const std::string& path) {
  const SafetensorsHeader header = read_header(path);
  const File file = File::open_to_read(path);
  Value::List tensors;
  for (const TensorEntry& entry : header.tensors) {
    std::string bytes(entry.end - entry.begin, '\0');
    file.read(header.data_start + entry.begin, bytes.data(), entry.end - entry.begin);
    tensors.push_back(Value::map({{"name", entry.name},
                                  {"dtype", entry.dtype},
                                  {"shape", list_of(entry.shape)},
                                  {"position", header.data_start + entry.begin},
                                  {"bytes", entry.end - entry.begin},
                                  {"xxh3_128", hash_hex(bytes)}}));
  }
  Value metadata = Value::map();
  for (const auto& [key, text] : header.metadata) metadata[key] = text;
  return Value::map({{"tensors", std::move(tensors)}, {"metadata", std::move(metadata)}});
}

Value read_index(const std::string& folder) {
  const TensorIndex index = index_files(safetensors_files(folder));
  Value tensors = Value::map();
  for (const auto& [name, tensor] : index.tensors) {
    Value::List pieces;
    for (const StoredPiece& piece : tensor.pieces)
      pieces.push_back(Value::map({{"file", index.files[piece.file].string()},
                                   {"offsets", list_of(piece.offsets)},
                                   {"sizes", list_of(piece.sizes)},
                                   {"position", piece.position},
                                   {"bytes", piece.bytes}}));
    tensors[name] = Value::map(
        {{"dtype", tensor.dtype}, {"shape", list_of(tensor.shape)}, {"pieces", std::move(pieces)}});
  }
  return tensors;
}

/// The result of `read`, or its error.
template <class Read>
void print(const Read& read) {
  Value result;
  try {
    result = read();
  } catch (const Error& e) {
    result = Value::map({{"kind", to_string(e.kind())}, {"error", e.message()}});
  }
  std::cout << to_json(result) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 2) {
    std::cerr
        << "usage: safetensors_probe write FOLDER | read FILE... | index FOLDER | hash FILE...\n";
    return 2;
  }
  try {
    const std::string& verb = arguments[0];
    if (verb == "write") {
      const std::string text(std::istreambuf_iterator<char>(std::cin), {});
      for (const Value& job : parse_json(text).as_list()) write_file(arguments[1], job);
    }
    for (size_t i = 1; i < arguments.size() && verb != "write"; ++i)
      if (verb == "hash")
        std::cout << hash_hex(read_text(arguments[i])) << "\n";
      else
        print([&] { return verb == "index" ? read_index(arguments[i]) : read_file(arguments[i]); });
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
