// Tests of data sets.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <titan/dataset.h>
#include <titan/files/file.h>

#include "kit/jobs.h"
#include "kit/samples.h"

namespace titan::conformance::dataset_kind {
namespace {

constexpr int64_t kMostRead = 400;  // documents of a large data set

std::string path_of(TestContext& test) {
  const auto& job = test.subject().set.job;
  return job.contains("training.dataset_path") ? test.key("training.dataset_path")
                                               : write_lines(test.place().folder, 64).string();
}

std::unique_ptr<Dataset> opened(TestContext& test) {
  return test.make<Dataset>({path_of(test), test.seed()});
}

/// Everything of a document as one text.
std::string content_of(const Document& document) {
  std::string text = (document.is_tokenised ? "t" : "x") + document.text;
  for (const int32_t token : document.tokens) text += " " + std::to_string(token);
  for (const Conversation& talk : document.conversations)
    text += to_json(talk.chat) + "\1" + std::to_string(talk.first_target) + "\1" + talk.prompt +
            "\1" + talk.completion;
  return text;
}

/// The first documents of the data set, in its own order.
std::vector<std::string> contents_of(const Dataset& dataset) {
  std::vector<std::string> contents;
  Document document;
  if (const IndexedDocuments* indexed = dataset.indexed()) {
    for (int64_t i = 0; i < std::min(indexed->size(), kMostRead); ++i) {
      indexed->read(i, document);
      contents.push_back(content_of(document));
    }
    return contents;
  }
  const StreamedDocuments& streamed = *dataset.streamed();
  for (int64_t shard = 0; shard < streamed.num_shards(); ++shard) {
    const auto stream = streamed.open(shard);
    for (int64_t read = 0; read < kMostRead && stream->next(document); ++read)
      contents.push_back(content_of(document));
  }
  return contents;
}

void documents(TestContext& test) {
  const auto dataset = opened(test);
  test.expect((dataset->indexed() == nullptr) != (dataset->streamed() == nullptr),
              "exactly one of indexed() and streamed() must return documents");
  const std::vector<std::string> contents = contents_of(*dataset);
  test.expect(!contents.empty(), "it has no document");
  for (size_t i = 0; i < contents.size(); ++i)
    test.expect(contents[i].size() > 1, "document ", i, " is empty");
}

void repeatable(TestContext& test) {
  const auto dataset = opened(test), other = opened(test);
  const std::vector<std::string> first = contents_of(*dataset), again = contents_of(*dataset);
  test.expect(first == again, "a second pass over the documents reads other documents");
  test.expect(first == contents_of(*other), "another object of the same data has other documents");
  if (const IndexedDocuments* indexed = dataset->indexed()) {
    Document document;
    for (size_t i = first.size(); i-- > 0;) {
      indexed->read(static_cast<int64_t>(i), document);
      test.expect(content_of(document) == first[i], "document ", i,
                  " differs when the documents are read from the last to the first");
    }
  }
}

void threads(TestContext& test) {
  const auto dataset = opened(test);
  const std::vector<std::string> expected = contents_of(*dataset);
  std::atomic<int> num_wrong = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      try {
        for (int pass = 0; pass < 4; ++pass)
          if (contents_of(*dataset) != expected) ++num_wrong;
      } catch (...) {
        ++num_wrong;
      }
    });
  for (std::thread& reader : readers) reader.join();
  test.expect(num_wrong == 0, "4 threads that read at once get wrong documents or errors");
}

void places(TestContext& test) {
  const auto dataset = opened(test);
  if (const IndexedDocuments* indexed = dataset->indexed()) {
    test.expect(indexed->size() > 0, "it has no document");
    std::map<std::string, int64_t> seen;
    const int64_t size = indexed->size();
    for (int64_t i = 0; i < std::min(size, kMostRead); ++i) {
      const int64_t index = i + 1 == kMostRead ? size - 1 : i;  // the last one, too
      const std::string place = indexed->place(index);
      test.expect(!place.empty(), "place(", index, ") is empty");
      const auto [found, is_new] = seen.emplace(place, index);
      test.expect(is_new, "the documents ", found->second, " and ", index, " have the same place '",
                  place, "'");
    }
    return;
  }
  const auto stream = dataset->streamed()->open(0);
  Document document;
  test.expect(stream->next(document), "shard 0 has no document");
  const std::string first = stream->place();
  test.expect(!first.empty(), "place() is empty");
  test.expect(!stream->next(document) || stream->place() != first,
              "the first two documents have the same place '", first, "'");
}

void fingerprint(TestContext& test) {
  const auto one = opened(test), other = opened(test);
  test.expect(!one->fingerprint().empty(), "fingerprint() is empty");
  test.expect(one->fingerprint() == other->fingerprint(),
              "two objects of the same data have the fingerprints '", one->fingerprint(), "' and '",
              other->fingerprint(), "'");
  const std::string path = path_of(test);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  test.expect(folder.size() < 2 || one->fingerprint().find(folder) == std::string::npos,
              "the fingerprint holds the location of the data: '", one->fingerprint(), "'");
}

void seek(TestContext& test) {
  const auto dataset = opened(test);
  if (!dataset->streamed()) throw NotApplicable{"its documents are read by index"};
  const StreamedDocuments& streamed = *dataset->streamed();
  Document document;
  for (int64_t shard = 0; shard < std::min<int64_t>(streamed.num_shards(), 4); ++shard) {
    const auto through = streamed.open(shard);
    std::vector<std::string> rest;
    std::vector<Value> positions;
    for (int64_t read = 0; read < 40; ++read) {
      positions.push_back(through->position());
      if (!through->next(document)) break;
      rest.push_back(content_of(document));
    }
    for (size_t from = 0; from < rest.size(); ++from) {
      const auto resumed = streamed.open(shard);
      resumed->seek(parse_json(to_json(positions[from])));
      test.expect(resumed->next(document) && content_of(document) == rest[from],
                  "a stream of shard ", shard, " that seeks to the position before document ", from,
                  " does not read that document next");
    }
    const auto skipping = streamed.open(shard);
    for (size_t i = 0; i < rest.size(); ++i)
      if (i % 2 == 1)
        test.expect(skipping->next(document) && content_of(document) == rest[i], "after skip() of ",
                    "document ", i - 1, " of shard ", shard, " the next document is another one");
      else
        test.expect(skipping->skip(), "skip() of document ", i, " of shard ", shard,
                    " reports the end of the shard");
    if (rest.size() < positions.size())  // the whole shard was read
      test.expect(!skipping->skip(), "skip() after the last document of shard ", shard,
                  " reports a document");
    if (rest.empty()) continue;
    skipping->seek(positions.front());
    test.expect(skipping->next(document) && content_of(document) == rest.front(),
                "a stream of shard ", shard, " that was read to document ", rest.size(),
                " and seeks back to the first does not read it next");
  }
}

void refuses_missing(TestContext& test) {
  const std::string missing = (test.place().folder / "no-such-folder/no-such-file").string();
  std::string message;
  try {
    const auto dataset = test.make<Dataset>({missing, test.seed()});
    contents_of(*dataset);
  } catch (const Error& error) {
    message = error.what();
  }
  if (message.empty() && test.subject().set.job.contains("training.dataset_path") &&
      test.key("training.dataset_path").empty())
    throw NotApplicable{"it makes its documents and reads no path"};
  test.expect(!message.empty(), "a path that does not exist is not an error");
  test.expect(message.find("no-such-file") != std::string::npos,
              "the error for a missing path does not name it: ", message);
}

Job data_job(TestContext& test, const std::string& name) {
  const std::string assets = write_tokenizer(test.place().folder).string();
  Job job = job_with(test, name);
  const auto dataset = opened(test);
  Document document;
  if (const IndexedDocuments* indexed = dataset->indexed())
    indexed->read(0, document);
  else
    dataset->streamed()->open(0)->next(document);
  const auto set_default = [&](const char* key, const Value& value) {
    if (!test.subject().set.job.contains(key)) job.set(key, value);
  };
  if (!document.conversations.empty()) {
    set_default("data.too_long", "truncate");
    set_default("data.packing", "best_fit");
    set_default("data.isolate_documents", true);
    set_default("chat_template.name", "jinja");
    set_default("training.seq_len", 256);
  }
  if (!document.is_tokenised) set_default("model.hf_assets_path", assets);
  if (!test.subject().set.job.contains("training.dataset_path"))
    job.set("training.dataset_path", path_of(test));
  if (test.key("training.dataset_path", "x").empty()) job.without("training.dataset_path");
  set_default("model.vocab_size", kSampleVocab);
  return job.set("debug.fingerprints", true).steps(6);
}

std::string tokens_of(const JobRun& run) {
  return read_text(run.folder() / "fingerprints.jsonl");
}

void any_ranks(TestContext& test) {
  Job job = data_job(test, "one");
  const JobRun one = job.run();
  const JobRun two = job.named("two")
                         .ranks(2)
                         .set("parallelism.data_parallel_replicate_degree", 2)
                         .set("parallelism.data_parallel_shard_degree", 1)
                         .run();
  test.expect(tokens_of(one) == tokens_of(two),
              "2 ranks train on other tokens than 1 rank in the same steps");
}

void resume(TestContext& test) {
  Job job = data_job(test, "through").saves().set("checkpoint.interval", 1);
  const JobRun through = job.run();
  for (const int step : {1, 3, 5}) {
    Job again = job.named("again" + std::to_string(step));
    std::filesystem::copy(through.folder(), again.folder(),
                          std::filesystem::copy_options::recursive);
    for (int later = step + 1; later <= 6; ++later)
      std::filesystem::remove_all(again.folder() / ("checkpoint/step-" + std::to_string(later)));
    expect_same_bits(test, again.run(), through,
                     "after a resume from step " + std::to_string(step));
  }
}

void epochs(TestContext& test) {
  const auto dataset = opened(test);
  const IndexedDocuments* indexed = dataset->indexed();
  if (indexed && indexed->size() > kMostRead)
    throw NotApplicable{"it has more documents than a test can train on"};
  Job job = data_job(test, "epochs").steps(24).set("training.global_batch_size", 8);
  const JobRun run = job.run();
  test.expect(run.losses().size() == 24, "the run of several epochs logged ", run.losses().size(),
              " of 24 steps");
}

}  // namespace
}  // namespace titan::conformance::dataset_kind

namespace titan::conformance {

std::vector<Test> dataset_tests() {
  using namespace dataset_kind;
  constexpr const char* kKind = "dataset";
  return {
      {kKind, "documents",
       "The data set offers documents by index or by shard, at least one, and none is empty.",
       documents},
      {kKind, "repeatable",
       "Every pass, every order of reading and every object of the same data gives the same "
       "documents.",
       repeatable},
      {kKind, "threads", "Four threads that read at once get the documents that one thread gets.",
       threads},
      {kKind, "places", "Each document has a place that is not empty, and two documents have two.",
       places},
      {kKind, "fingerprint",
       "The fingerprint is a text that is equal for equal data and holds no location.",
       fingerprint},
      {kKind, "seek",
       "A stream that seeks to a position continues with the document after it, and skip() passes "
       "over exactly one document.",
       seek},
      {kKind, "missing_path",
       "A path that does not exist is a titan::Error whose message holds the path.",
       refuses_missing},
      {kKind, "any_ranks", "Two ranks train on the tokens of one rank, step by step.", any_ranks},
      {kKind, "resume", "A run that resumes from step 1, 3 or 5 equals a whole run bit for bit.",
       resume},
      {kKind, "epochs", "A run of more tokens than the data set holds trains to its end.", epochs},
  };
}

}  // namespace titan::conformance
