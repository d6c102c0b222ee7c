#include "model_file.h"

#include <charconv>
#include <cmath>
#include <unordered_map>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "../common/unicode.h"
#include "wire_message.h"

namespace titan::sentencepiece {
namespace {

using bpe::valid_utf8_prefix;

// The reference library refuses longer pieces, too.
constexpr size_t kMaxPieceBytes = 7999;

/// Fields of TrainerSpec that are checked after the pieces have been read.
struct TrainerSpec {
  struct Special {
    const char* field;
    int32_t id;
    std::string piece;
    size_t offset = 0;  // of the id; 0: it has its default
  };
  Special unknown{"unk_id", 0, "<unk>"};
  Special bos{"bos_id", 1, "<s>"};
  Special eos{"eos_id", 2, "</s>"};
  Special pad{"pad_id", -1, "<pad>"};
};

Piece read_piece(WireMessage message) {
  Piece piece;
  size_t start = 0;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        piece.text = message.bytes("piece");
        start = message.value_offset();
        if (const size_t valid = valid_utf8_prefix(piece.text); valid != piece.text.size())
          message.fail("a piece must be UTF-8; byte ", start + valid, " is not");
        if (piece.text.find('\0') != std::string::npos) message.fail("a piece holds a NUL");
        if (piece.text.size() > kMaxPieceBytes)
          message.fail("a piece has ", piece.text.size(), " bytes; the limit is ", kMaxPieceBytes);
        break;
      case 2:
        piece.score = message.number("score");
        if (!std::isfinite(piece.score))
          message.fail("a score must be a finite number, got ", piece.score);
        break;
      case 3: {
        const int32_t type = message.integer("type");
        if (type < 1 || type > 6) message.fail("the type of a piece must be 1 to 6, got ", type);
        piece.type = static_cast<PieceType>(type);
        break;
      }
      default:
        break;
    }
  }
  return piece;
}

void read_special(const WireMessage& message, TrainerSpec::Special& special) {
  special.id = message.integer(special.field);
  special.offset = message.offset();
}

void read_trainer(WireMessage message, ModelFile& model, TrainerSpec& trainer) {
  while (message.next()) {
    switch (message.field()) {
      case 3: {
        const int32_t type = message.integer("model_type");
        if (type < 1 || type > 4)
          message.fail("model_type must be 1 (unigram) to 4 (char), got ", type);
        model.type = static_cast<ModelType>(type);
        if (model.type == ModelType::word || model.type == ModelType::character)
          message.fail("models of type ", type == 3 ? "word" : "char",
                       " are not supported; supported: bpe, unigram");
        break;
      }
      case 24:
        model.treat_whitespace_as_suffix = message.flag("treat_whitespace_as_suffix");
        break;
      case 35:
        model.byte_fallback = message.flag("byte_fallback");
        break;
      case 40:
        read_special(message, trainer.unknown);
        break;
      case 41:
        read_special(message, trainer.bos);
        break;
      case 42:
        read_special(message, trainer.eos);
        break;
      case 43:
        read_special(message, trainer.pad);
        break;
      case 44:
        model.unknown_surface = message.bytes("unk_surface");
        if (valid_utf8_prefix(model.unknown_surface) != model.unknown_surface.size())
          message.fail("unk_surface must be UTF-8");
        break;
      case 46:
        trainer.bos.piece = message.bytes("bos_piece");
        break;
      case 47:
        trainer.eos.piece = message.bytes("eos_piece");
        break;
      case 48:
        trainer.pad.piece = message.bytes("pad_piece");
        break;
      default:
        break;
    }
  }
}

void read_normalizer(WireMessage message, NormalizerSpec& spec) {
  while (message.next()) {
    switch (message.field()) {
      case 2:
        spec.charsmap = message.bytes("precompiled_charsmap");
        spec.charsmap_offset = message.value_offset();
        break;
      case 3:
        spec.add_dummy_prefix = message.flag("add_dummy_prefix");
        break;
      case 4:
        spec.remove_extra_whitespaces = message.flag("remove_extra_whitespaces");
        break;
      case 5:
        spec.escape_whitespaces = message.flag("escape_whitespaces");
        break;
      default:
        break;
    }
  }
}

/// The byte of a piece "<0x0A>"; -1 for any other text.
int byte_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const size_t high = kDigits.find(text[3]);
  const size_t low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(high * 16 + low);
}

/// Checks the pieces as a whole. `offsets`: of each piece in the file.
class PieceCheck {
 public:
  PieceCheck(ModelFile& model, const std::vector<size_t>& offsets)
      : model_(model), offsets_(offsets) {}

  void run(const TrainerSpec& trainer) {
    TITAN_CHECK(!model_.pieces.empty(), data, model_.name,
                ": byte 0: the model has no pieces; is this a SentencePiece model?");
    if (model_.byte_fallback) model_.byte_ids.assign(256, -1);
    for (size_t i = 0; i < model_.pieces.size(); ++i) check(static_cast<int32_t>(i));
    TITAN_CHECK(model_.unknown_id >= 0, data, model_.name, ": byte ", offsets_.back(),
                ": none of the ", model_.pieces.size(),
                " pieces up to here has type 2 (unknown); a model has exactly one");
    for (size_t byte = 0; byte < model_.byte_ids.size(); ++byte)
      TITAN_CHECK(model_.byte_ids[byte] >= 0, data, model_.name, ": byte ", offsets_.back(),
                  ": byte_fallback is set, but none of the pieces up to here stands for byte ",
                  byte);
    check_range(trainer.unknown, 0);
    for (const TrainerSpec::Special* special : {&trainer.bos, &trainer.eos, &trainer.pad})
      check_range(*special, -1);
    model_.bos = control(trainer.bos);
    model_.eos = control(trainer.eos);
    model_.pad = control(trainer.pad);
  }

 private:
  void check(int32_t id) {
    const Piece& piece = model_.pieces[static_cast<size_t>(id)];
    if (piece.text.empty()) fail(id, "piece ", id, " is empty");
    const auto [place, is_new] = ids_.emplace(piece.text, id);
    if (!is_new)
      fail(id, "piece ", id, " is \"", printable(piece.text), "\", as piece ", place->second,
           " at byte ", offsets_[static_cast<size_t>(place->second)], " is already");
    if (piece.type == PieceType::unknown) {
      if (model_.unknown_id >= 0)
        fail(id, "piece ", id, " has type 2 (unknown), as piece ", model_.unknown_id,
             " has already; a model has exactly one");
      model_.unknown_id = id;
    }
    if (piece.type != PieceType::byte) return;
    if (!model_.byte_fallback)
      fail(id, "piece ", id, " has type 6 (byte), but byte_fallback is not set");
    const int byte = byte_of(piece.text);
    if (byte < 0)
      fail(id, "piece ", id, " has type 6 (byte), but \"", printable(piece.text),
           "\" is not of the form <0x0A>");
    model_.byte_ids[static_cast<size_t>(byte)] = id;
  }

  void check_range(const TrainerSpec::Special& special, int32_t lowest) const {
    if (special.offset == 0) return;
    const auto limit = static_cast<int64_t>(model_.pieces.size());
    TITAN_CHECK(special.id >= lowest && special.id < limit, data, model_.name, ": byte ",
                special.offset, ": ", special.field, " must be from ", lowest, " to ", limit - 1,
                ", got ", special.id);
  }

  // Found by its text, as in the reference library: the ids are only requests to the trainer.
  std::optional<int32_t> control(const TrainerSpec::Special& special) const {
    const auto found = ids_.find(special.piece);
    if (found == ids_.end()) return std::nullopt;
    if (model_.pieces[static_cast<size_t>(found->second)].type != PieceType::control)
      return std::nullopt;
    return found->second;
  }

  template <class... Parts>
  [[noreturn]] void fail(int32_t id, const Parts&... parts) const {
    titan::fail(ErrorKind::data, model_.name, ": byte ", offsets_[static_cast<size_t>(id)], ": ",
                parts...);
  }

  ModelFile& model_;
  const std::vector<size_t>& offsets_;
  std::unordered_map<std::string_view, int32_t> ids_;
};

/// Whether the file is a table of tiktoken: lines of base64, a space and a number.
bool looks_like_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const size_t space = line.find(' ');
  if (line.size() > 256 || space == std::string_view::npos || space == 0) return false;
  const std::string_view number = line.substr(space + 1);
  int64_t rank = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  return error == std::errc() && end == number.data() + number.size() &&
         line.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == space;
}

}  // namespace

ModelFile parse_model(std::string_view bytes, const std::string& name) {
  TITAN_CHECK(
      !looks_like_tiktoken(bytes), data, name,
      ": byte 0: this is a file of tiktoken, not a SentencePiece model; choose the tokenizer "
      "\"tiktoken\"");
  ModelFile model;
  model.name = name;
  TrainerSpec trainer;
  std::vector<size_t> offsets;
  WireMessage message(bytes, name);
  while (message.next()) {
    switch (message.field()) {
      case 1:
        model.pieces.push_back(read_piece(message.message("pieces")));
        offsets.push_back(message.offset());
        break;
      case 2:
        read_trainer(message.message("trainer_spec"), model, trainer);
        break;
      case 3:
        read_normalizer(message.message("normalizer_spec"), model.normalizer);
        break;
      case 5:
        read_normalizer(message.message("denormalizer_spec"), model.denormalizer);
        break;
      default:
        break;
    }
  }
  PieceCheck(model, offsets).run(trainer);
  return model;
}

}  // namespace titan::sentencepiece
