// Reads a data set as the trainer does, through the built plugin, and prints its documents: tests
// compare them with the programs that wrote the files.
//
//   dataset_probe <plugins folder> <dataset> <path> [--seed N] [--resume-every N] [--skip-odd]
//                 [--bench] [--<option> <value>]...
//
// Prints a line of JSON for each document: {"shard", "place", "text" or "tokens"}, then a last line
// {"documents", "fingerprint"}. After every N documents a new stream continues from the old one's
// position; --skip-odd skips every second document. --bench prints seconds and sizes instead. For a
// refused data set it prints {"kind", "error"}, with exit code 1. Values of options are JSON, or
// else text.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/value.h>

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace {

using namespace titan;

struct Arguments {
  std::string plugins, dataset;
  DatasetContext context;
  Value options = Value::map();
  int64_t resume_every = 0;
  bool skip_odd = false;
  bool bench = false;
};

Value parsed(const std::string& text) {
  try {
    return parse_json(text);
  } catch (const Error&) {
    return text;
  }
}

Arguments arguments_of(int argc, char** argv) {
  TITAN_CHECK(
      argc >= 4, config,
      "usage: dataset_probe <plugins folder> <dataset> <path> [--seed N] [--resume-every N] "
      "[--skip-odd] [--bench] [--<option> <value>]...");
  Arguments arguments{.plugins = argv[1], .dataset = argv[2], .context = {.path = argv[3]}};
  for (int i = 4; i < argc; ++i) {
    const std::string name = argv[i];
    TITAN_CHECK(name.starts_with("--"), config, "unknown argument ", name);
    if (name == "--skip-odd") {
      arguments.skip_odd = true;
      continue;
    }
    if (name == "--bench") {
      arguments.bench = true;
      continue;
    }
    TITAN_CHECK(++i < argc, config, name, " needs a value");
    if (name == "--seed")
      arguments.context.seed = std::strtoull(argv[i], nullptr, 10);
    else if (name == "--resume-every")
      arguments.resume_every = std::strtoll(argv[i], nullptr, 10);
    else
      arguments.options[name.substr(2)] = parsed(argv[i]);
  }
  return arguments;
}

/// Prints documents, or counts their content.
class Output {
 public:
  explicit Output(bool bench) : bench_(bench) {}

  void add(const Document& document, int64_t shard, const std::string& place) {
    ++num_documents_;
    num_bytes_ += document.text.size();
    num_tokens_ += document.tokens.size();
    if (bench_) return;
    Value line = Value::map({{"shard", shard}, {"place", place}});
    if (document.is_tokenised)
      line["tokens"] = Value::List(document.tokens.begin(), document.tokens.end());
    else
      line["text"] = document.text;
    std::cout << to_json(line) << '\n';
  }
  void finish(const Dataset& dataset, double seconds) const {
    Value line =
        Value::map({{"documents", num_documents_}, {"fingerprint", dataset.fingerprint()}});
    if (bench_) {
      line["seconds"] = seconds;
      line["text_bytes"] = num_bytes_;
      line["tokens"] = num_tokens_;
    }
    std::cout << to_json(line) << '\n';
  }

 private:
  bool bench_;
  int64_t num_documents_ = 0, num_bytes_ = 0, num_tokens_ = 0;
};

void read_indexed(const IndexedDocuments& documents, const Arguments& arguments, Output& output) {
  Document document;
  for (int64_t i = 0; i < documents.size(); i += arguments.skip_odd ? 2 : 1) {
    documents.read(i, document);
    output.add(document, 0, arguments.bench ? "" : documents.place(i));
  }
}

void read_streamed(const StreamedDocuments& documents, const Arguments& arguments, Output& output) {
  for (int64_t shard = 0; shard < documents.num_shards(); ++shard) {
    auto stream = documents.open(shard);
    Document document;
    for (int64_t count = 0;; ++count) {
      if (arguments.resume_every > 0 && count % arguments.resume_every == 0) {
        const Value position = parse_json(to_json(stream->position()));
        stream = documents.open(shard);
        stream->seek(position);
      }
      if (arguments.skip_odd && count % 2 == 1) {
        if (!stream->skip()) break;
        continue;
      }
      const std::string place = arguments.bench ? "" : stream->place();
      if (!stream->next(document)) break;
      output.add(document, shard, place);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = arguments_of(argc, argv);
    const core::Catalog catalog({arguments.plugins});
    core::Registry registry(catalog);
    const auto dataset =
        registry.create<Dataset>(arguments.dataset, arguments.options, arguments.context);
    Output output(arguments.bench);
    const auto start = std::chrono::steady_clock::now();
    if (const IndexedDocuments* documents = dataset->indexed())
      read_indexed(*documents, arguments, output);
    else
      read_streamed(*dataset->streamed(), arguments, output);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    output.finish(*dataset, elapsed.count());
  } catch (const Error& error) {
    std::cout << to_json(Value::map({{"kind", to_string(error.kind())}, {"error", error.what()}}))
              << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
