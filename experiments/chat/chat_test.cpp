// Tests the data set through its plugin entry point, as the program uses it.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/plugin.h>

extern "C" const titan::PluginEntry* titan_plugin_entry_v1();

namespace {

class ChatTest : public ::testing::Test {
 protected:
  ChatTest() {
    std::string pattern = ::testing::TempDir() + "/chat_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    titan_plugin_entry_v1()->register_plugin(&plugin_);
  }
  ~ChatTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<titan::Dataset> open(const std::string& content,
                                       const titan::Value& options = titan::Value::map()) {
    const std::string path = folder_ / "chats.jsonl";
    std::ofstream(path, std::ios::binary) << content;
    const titan::DatasetContext context{.path = path};
    const titan::Component& component = plugin_.components().front();
    const auto made = component.schema.make(options);
    return std::unique_ptr<titan::Dataset>(
        static_cast<titan::Dataset*>(component.make(made.get(), &context)));
  }
  static std::string text_of(const titan::Dataset& dataset, int64_t index) {
    titan::Document document;
    dataset.indexed()->read(index, document);
    return document.text;
  }

  std::filesystem::path folder_;
  titan::Plugin plugin_;
};

constexpr const char* kTwo =
    R"({"id": 7, "messages": [{"role": "user", "content": "h\u00e4?"}, {"role": "assistant", "content": "yes"}]}
{"messages": [{"role": "system", "content": "be brief"}]})";

TEST_F(ChatTest, TurnsConversationsIntoText) {
  const auto dataset = open(kTwo);
  ASSERT_EQ(dataset->indexed()->size(), 2);
  EXPECT_EQ(text_of(*dataset, 1), "<|system|>\nbe brief\n");
  EXPECT_EQ(text_of(*dataset, 0), "<|user|>\nh\u00e4?\n<|assistant|>\nyes\n");
}

TEST_F(ChatTest, FramesMessagesAsAsked) {
  const auto options =
      titan::Value::map({{"before_role", "["}, {"before_content", "] "}, {"after_content", " ~ "}});
  EXPECT_EQ(text_of(*open(kTwo, options), 0), "[user] h\u00e4? ~ [assistant] yes ~ ");
  EXPECT_NE(open(kTwo, options)->fingerprint(), open(kTwo)->fingerprint());
}

TEST_F(ChatTest, NamesTheLineThatIsNoConversation) {
  for (const char* bad : {"{\"messages\": 3}", "{\"text\": \"x\"}",
                          "{\"messages\": [{\"role\": 1}]}", "not json", ""}) {
    const auto dataset = open(std::string(kTwo) + "\n" + bad + "\n");
    try {
      text_of(*dataset, 2);
      ADD_FAILURE() << "was read: " << bad;
    } catch (const titan::Error& error) {
      EXPECT_EQ(error.kind(), titan::ErrorKind::data);
      EXPECT_NE(std::string(error.what()).find("chats.jsonl:3: "), std::string::npos);
    }
  }
}

TEST_F(ChatTest, IsReadBySeveralThreads) {
  const auto dataset = open(kTwo);
  std::atomic<int> num_good = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) num_good += text_of(*dataset, 1) == "<|system|>\nbe brief\n";
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_good, 800);
}

}  // namespace
