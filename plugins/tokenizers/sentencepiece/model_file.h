// Reads and checks a SentencePiece model file. Used by the tokenizer and its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace titan::sentencepiece {

enum class PieceType { normal = 1, unknown, control, user_defined, unused, byte };
enum class ModelType { unigram = 1, bpe, word, character };

struct Piece {
  std::string text;  ///< valid UTF-8, never empty, without NUL
  float score = 0;
  PieceType type = PieceType::normal;
};

/// How text is normalised; the defaults are those of the format.
struct NormalizerSpec {
  std::string charsmap;        ///< compiled rules; empty: characters stay unchanged
  size_t charsmap_offset = 0;  ///< in the file, for messages
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;  ///< spaces become U+2581
};

/// Pieces by id, and the trainer's settings.
struct ModelFile {
  std::string name;  ///< of the file, for messages
  std::vector<Piece> pieces;
  ModelType type = ModelType::unigram;
  bool treat_whitespace_as_suffix = false;
  bool byte_fallback = false;
  int32_t unknown_id = -1;        ///< of the one piece of type unknown
  std::vector<int32_t> byte_ids;  ///< with byte_fallback: the id of each of the 256 bytes
  std::string unknown_surface = " \xE2\x81\x87 ";  ///< decoded text of the unknown piece
  std::optional<int32_t> bos, eos, pad;
  NormalizerSpec normalizer;
  NormalizerSpec denormalizer;  ///< used if its charsmap is not empty
};

/// Reads the bytes of a model file (a protocol buffer ModelProto). Throws a data Error that names
/// the file and the byte if it is malformed, inconsistent or not supported (models of type word and
/// char).
ModelFile parse_model(std::string_view bytes, const std::string& name);

}  // namespace titan::sentencepiece
