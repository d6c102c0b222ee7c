// Dataset maintainers/chat: conversations as text. One JSON object per line, as chat services export
// them: {"messages": [{"role": "user", "content": "..."}, ...]}.
#include <fstream>
#include <string>
#include <vector>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/plugin.h>

namespace {

struct ChatOptions {
  std::string before_role = "<|", before_content = "|>\n", after_content = "\n";
};

class Chat final : public titan::IndexedDataset {
 public:
  Chat(const ChatOptions& options, titan::DatasetContext context)
      : options_(options), path_(context.path) {
    std::ifstream in(path_, std::ios::binary);
    TITAN_CHECK(in, io, "cannot open '", path_, "'; name a file in training.dataset_path");
    starts_.push_back(0);
    for (std::string line; std::getline(in, line);)
      starts_.push_back(starts_.back() + static_cast<int64_t>(line.size()) + 1);
    TITAN_CHECK(size() > 0, data, "'", path_, "' holds no conversation");
  }

  int64_t size() const override { return static_cast<int64_t>(starts_.size()) - 1; }

  // Opens its own stream in each call, so any number of threads may read.
  void read(int64_t index, titan::Document& document) const override {
    std::string line, text;
    std::ifstream in(path_, std::ios::binary);
    in.seekg(starts_[static_cast<size_t>(index)]);
    TITAN_CHECK(std::getline(in, line), io, "cannot read ", place(index));
    try {
      const titan::Value chat = titan::parse_json(line);
      for (const titan::Value& message : chat.at("messages").as_list()) {
        text += options_.before_role + message.at("role").as_string() + options_.before_content;
        text += message.at("content").as_string() + options_.after_content;
      }
    } catch (const titan::Error& error) {
      titan::fail(titan::ErrorKind::data, place(index), ": ", error.message());
    }
    document.set_text(text);
  }

  std::string place(int64_t index) const override {
    return path_ + ":" + std::to_string(index + 1);
  }
  std::string fingerprint() const override {
    return options_.before_role + options_.before_content + options_.after_content + ":" +
           std::to_string(size()) + ":" + std::to_string(starts_.back());
  }

 private:
  ChatOptions options_;
  std::string path_;
  std::vector<int64_t> starts_;  // offsets of the lines, and of the end
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Chat>("maintainers/chat", "Conversations, one JSON object per line, as text.")
      .option("before_role", &ChatOptions::before_role, "Text before the role of a message")
      .option("before_content", &ChatOptions::before_content, "Text between role and content")
      .option("after_content", &ChatOptions::after_content, "Text after each message");
}
