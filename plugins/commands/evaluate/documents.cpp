#include "documents.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/program/text.h>
#include <titan/shown_text.h>

#include "template.h"

namespace titan::evaluation {
namespace {

/// Replaces the parser's position by the file's: the parser saw only one line.
std::string at_column(const std::string& place, const std::string& message) {
  const std::string before = "parse error at line 1, column ";
  const size_t found = message.find(before);
  if (found == message.npos) return place + ": " + message;
  const size_t begin = found + before.size();
  const size_t end = message.find(':', begin);
  return place + ":" + message.substr(begin, end - begin) + ": malformed JSON" +
         (end == message.npos ? "" : message.substr(end));
}

/// A bare name is a field of the document, any other text a template.
class FieldText {
 public:
  explicit FieldText(const std::string& text) {
    const bool is_name = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return c == '_' || std::isalnum(static_cast<unsigned char>(c));
    });
    if (is_name &&
        !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
      field_ = text;
    else
      template_.emplace(text);
  }
  bool is_field() const { return !template_; }
  /// The field's value, or the template's text.
  Value value(const Value& document) const {
    if (template_) return template_->apply(document);
    const Value* found = document.find(field_);
    TITAN_CHECK(found, data, "there is no ", in_quotes(field_));
    return *found;
  }
  /// The same, but for a template that is a single field its value, which may be a list.
  Value whole(const Value& document) const {
    const Value* only = template_ ? template_->only_field(document) : nullptr;
    return only ? *only : value(document);
  }
  std::string text(const Value& document) const {
    Value found = value(document);
    TITAN_CHECK(found.is_string(), data, in_quotes(field_), " must be a string, it is a ",
                to_string(found.type()));
    return std::move(found).as_string();
  }

 private:
  std::string field_;
  std::optional<TextTemplate> template_;
};

/// Makes the texts of a task.
class Maker {
 public:
  explicit Maker(const TaskOptions& options)
      : options_(options), text_(options.doc_to_text), target_(options.doc_to_target) {
    for (const std::string& choice : options.doc_to_choice) choices_.emplace_back(choice);
  }

  /// The text before every document: description and examples.
  std::string examples(const std::vector<JsonLine>& shots) const {
    std::string text = options_.description;
    for (const JsonLine& shot : shots) {
      const TaskDocument document = make(shot, "");
      const bool has_choices = options_.output_type == TaskKind::multiple_choice;
      text +=
          document.context + options_.target_delimiter +
          (has_choices ? document.choices[document.gold.front()] : document.continuations.front()) +
          options_.fewshot_delimiter;
    }
    return text;
  }

  /// Throws a data Error that names the problem of the line.
  TaskDocument make(const JsonLine& line, const std::string& before) const {
    TaskDocument document{.source = line.object, .place = line.place};
    document.target = target_.value(line.object);
    if (options_.output_type == TaskKind::loglikelihood_rolling) {
      document.continuations = {target_.text(line.object)};
      TITAN_CHECK(!document.continuations.front().empty(), data, "the text is empty");
      return document;
    }
    document.context = before + text_.text(line.object);
    if (options_.output_type == TaskKind::loglikelihood) {
      document.continuations = {target_.text(line.object)};
      TITAN_CHECK(!document.continuations.front().empty(), data, "the continuation is empty");
      return document;
    }
    document.choices = choices(line.object);
    document.gold = gold(document.target, document.choices, target_.is_field());
    for (const std::string& choice : document.choices)
      document.continuations.push_back(options_.target_delimiter + choice);
    return document;
  }

 private:
  std::vector<std::string> choices(const Value& source) const {
    std::vector<std::string> texts;
    if (choices_.size() == 1) {
      const Value list = choices_.front().whole(source);
      const std::string name = in_quotes(options_.doc_to_choice.front());
      TITAN_CHECK(list.is_list(), data, name, " must be a list of strings, it is a ",
                  to_string(list.type()));
      for (const Value& item : list.as_list()) {
        TITAN_CHECK(item.is_string(), data, name, " must be a list of strings, it holds ",
                    to_json(item));
        texts.push_back(item.as_string());
      }
    } else {
      for (const FieldText& choice : choices_) texts.push_back(choice.text(source));
    }
    TITAN_CHECK(texts.size() >= 2, data, "there must be at least 2 choices, there are ",
                texts.size());
    TITAN_CHECK(std::none_of(texts.begin(), texts.end(),
                             [](const std::string& text) { return text.empty(); }),
                data, "a choice is empty");
    return texts;
  }

  static size_t gold_index(int64_t index, size_t num_choices) {
    TITAN_CHECK(index >= 0 && index < static_cast<int64_t>(num_choices), data, "the gold choice ",
                index, " is not in 0 to ", num_choices - 1);
    return static_cast<size_t>(index);
  }

  static std::vector<size_t> gold(const Value& target, const std::vector<std::string>& choices,
                                  bool is_field) {
    if (target.is_integer()) return {gold_index(target.as_integer(), choices.size())};
    if (target.is_boolean()) return {gold_index(target.as_boolean() ? 1 : 0, choices.size())};
    if (target.is_list() && !target.as_list().empty()) {
      std::vector<size_t> all;
      for (const Value& one : target.as_list()) {
        TITAN_CHECK(one.is_integer(), data, "the gold choices must be numbers of choices, one is ",
                    to_json(one));
        all.push_back(gold_index(one.as_integer(), choices.size()));
      }
      return all;
    }
    TITAN_CHECK(target.is_string(), data,
                "the gold choice must be its number, a list of numbers or its text, got ",
                to_json(target));
    const std::string& text = target.as_string();
    const bool is_number = !is_field && !text.empty() && text.size() < 10 &&
                           text.find_first_not_of("0123456789") == text.npos;
    if (is_number) return {gold_index(std::stoll(text), choices.size())};
    const auto found = std::find(choices.begin(), choices.end(), text);
    TITAN_CHECK(found != choices.end(), data, "the gold choice ", in_quotes(text),
                " is not one of the ", choices.size(), " choices");
    return {static_cast<size_t>(found - choices.begin())};
  }

  const TaskOptions& options_;
  FieldText text_, target_;
  std::vector<FieldText> choices_;
};

}  // namespace

void add_mistake(Diagnostics& wrong, std::string message) {
  wrong.error({}, std::move(message), "", kTasksHelp);
}

std::vector<JsonLine> read_json_lines(const std::filesystem::path& file, Diagnostics& wrong) {
  std::string text;
  try {
    text = read_text(file);
  } catch (const Error& e) {
    add_mistake(wrong, e.message());
    return {};
  }
  std::vector<JsonLine> lines;
  bool is_sound = true;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    const std::string place = file.string() + ":" + std::to_string(++number);
    if (trimmed(line).empty()) continue;
    try {
      Value object = parse_json(line);
      TITAN_CHECK(object.is_map(), data, "expected a JSON object, got a ",
                  to_string(object.type()));
      lines.push_back({std::move(object), place});
    } catch (const Error& e) {
      is_sound = false;
      add_mistake(wrong, at_column(place, e.message()));
    }
  }
  if (lines.empty() && is_sound) add_mistake(wrong, file.string() + " holds no document");
  return lines;
}

std::vector<TaskDocument> make_documents(const TaskOptions& options, const std::string& name,
                                         const std::vector<JsonLine>& lines,
                                         const std::vector<JsonLine>& shots, Diagnostics& wrong) {
  std::optional<Maker> maker;
  std::vector<TaskDocument> documents;
  std::string examples;
  try {
    maker.emplace(options);
  } catch (const Error& e) {
    add_mistake(wrong, name + ": a text " + e.message());
    return {};
  }
  for (const JsonLine& shot : shots) try {
      examples = maker->examples({shot});
    } catch (const Error& e) {
      add_mistake(wrong, shot.place + ": " + e.message());
      return {};
    }
  examples = maker->examples(shots);
  for (const JsonLine& line : lines) try {
      documents.push_back(maker->make(line, examples));
    } catch (const Error& e) {
      add_mistake(wrong, line.place + ": " + e.message());
    }
  return documents;
}

}  // namespace titan::evaluation
