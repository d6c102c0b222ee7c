// Every mistake in a SentencePiece model is a data Error that names the file and the byte.
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "plugins/tokenizers/sentencepiece/sentencepiece_tokenizer.h"
#include "sentencepiece_model.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::sentencepiece {
namespace {

using testing::holds;

/// The error of reading the model; empty when it is valid.
std::string error_of(const std::string& model) {
  try {
    const SentencepieceTokenizer tokenizer(model, "bad.model");
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    EXPECT_TRUE(holds(error.what(), "bad.model: byte ")) << error.what();
    return error.what();
  }
}

/// Expects the model to be refused at byte `offset` with `part` in the message.
void expect_refused(const WireText& model, size_t offset, const std::string& part) {
  const std::string message = error_of(model.text());
  EXPECT_TRUE(holds(message, "bad.model: byte " + std::to_string(offset) + ": "));
  EXPECT_TRUE(holds(message, part));
}

/// small_pieces() and one more piece, whose first byte the error names.
void expect_piece_refused(const WireText& bad, const std::string& part) {
  expect_refused(small_pieces().message(1, bad).message(2, trainer(2)), small_pieces().size(),
                 part);
}

/// A trainer or normalizer spec (field 2 or 3) of less than 128 bytes, refused at its byte
/// `offset`.
void expect_spec_refused(uint32_t field, const WireText& spec, size_t offset,
                         const std::string& part) {
  expect_refused(small_pieces().message(field, spec), small_pieces().size() + 2 + offset, part);
}

TEST(BadSentencepiece, GoodModelsAreRead) {
  EXPECT_EQ(error_of(small_model(1).text()), "");
  EXPECT_EQ(error_of(small_model(2).text()), "");
  EXPECT_EQ(error_of(small_byte_model().text()), "");
}

TEST(BadSentencepiece, RefusesAPipeInsteadOfWaitingForIt) {
  const testing::TestFolder folder;
  ASSERT_EQ(::mkfifo(folder.at("tokenizer.model").c_str(), 0600), 0);
  const Error error = testing::error_of(
      [&] { SentencepieceTokenizer(SentencepieceOptions{}, {.assets_path = folder.at("")}); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "tokenizer.model: it is not a regular file"));
}

TEST(BadSentencepiece, RefusesEveryTruncation) {
  const std::string good = small_byte_model().text();
  size_t num_read = 0;
  for (size_t size = 0; size < good.size(); ++size)
    if (error_of(good.substr(0, size)).empty()) ++num_read;
  // truncated after one of the first 11 pieces or after the trainer's spec, a model is a different
  // valid model
  EXPECT_EQ(num_read, 12);
}

TEST(BadSentencepiece, RefusesWhatIsNoModel) {
  expect_refused(WireText(), 0, "has no pieces");
  expect_refused(WireText().varint(9, 1), 0, "has no pieces");
  expect_refused(WireText().raw("IQ== 0\nIg== 1\n"), 0, "choose the tokenizer \"tiktoken\"");
  expect_refused(WireText().raw(std::string_view("\0\1", 2)), 0, "field number of 0");
  expect_refused(WireText().raw("{\"version\": \"1.0\"}"), 0, "wire type 3 (a group)");
}

TEST(BadSentencepiece, RefusesLengthsBeyondTheEnd) {
  expect_refused(small_pieces().raw("\x0A\x7F"
                                    "ab"),
                 small_pieces().size(), "has 127 bytes");
  expect_refused(small_pieces().raw("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"),
                 small_pieces().size(), "has 18446744073709551615 bytes");
  expect_refused(small_pieces().raw("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"),
                 small_pieces().size(), "more than 64 bits");
  expect_refused(small_pieces().raw("\x0A\x80"), small_pieces().size(), "is cut short");
  // within a piece: the message ends, the file does not
  expect_refused(WireText()
                     .message(1, WireText().raw("\x0A\x05"
                                                "ab"))
                     .message(1, piece("b", 0)),
                 2, "beyond the end of the message at byte 6");
}

TEST(BadSentencepiece, RefusesOtherWireTypes) {
  expect_refused(WireText().varint(1, 5), 0, "pieces (field 1) must be a length with bytes");
  expect_refused(WireText().message(1, WireText().varint(1, 5)), 2, "piece (field 1) must be");
  expect_refused(WireText().message(1, WireText().varint(2, 5)), 2, "score (field 2) must be 4");
  expect_refused(WireText().message(1, WireText().bytes(3, "x")), 2, "type (field 3) must be a");
  expect_spec_refused(2, WireText().bytes(3, "x"), 0, "model_type (field 3) must be a varint");
  expect_spec_refused(3, WireText().varint(2, 1), 0, "precompiled_charsmap (field 2) must be");
}

TEST(BadSentencepiece, RefusesBadPieces) {
  expect_piece_refused(piece("", 0), "piece 11 is empty");
  expect_piece_refused(piece("ab", 0), "piece 11 is \"ab\", as piece 7 at byte ");
  expect_piece_refused(piece("<oov>", 0, 2), "as piece 0 has already");
  expect_piece_refused(piece("<0x41>", 0, 6), "byte_fallback is not set");
  const size_t inside = small_pieces().size() + 2;
  const auto refused_inside = [&](const WireText& bad, size_t offset, const std::string& part) {
    expect_refused(small_pieces().message(1, bad), inside + offset, part);
  };
  refused_inside(piece("a\xFF", 0), 0, "must be UTF-8; byte " + std::to_string(inside + 3));
  refused_inside(piece(std::string_view("a\0b", 3), 0), 0, "holds a NUL");
  refused_inside(piece("x", std::numeric_limits<float>::quiet_NaN()), 3, "must be a finite number");
  refused_inside(piece("x", 0, 7), 8, "must be 1 to 6, got 7");
  refused_inside(piece("x", 0, uint64_t{0} - 1), 8, "must be 1 to 6, got -1");
  refused_inside(piece("x", 0, uint64_t{1} << 40), 8, "must fit into 32 bits");
  expect_refused(small_pieces().message(1, piece(std::string(8000, 'x'), 0)),
                 small_pieces().size() + 3, "has 8000 bytes; the limit is 7999");
}

TEST(BadSentencepiece, RefusesPiecesThatAreMissing) {
  expect_refused(WireText().message(1, piece("a", 0)), 0, "has type 2 (unknown)");
  const std::string message = error_of(small_pieces().message(2, trainer(2).varint(35, 1)).text());
  EXPECT_TRUE(holds(message, "none of the pieces up to here stands for byte 0"));
  expect_refused(
      small_pieces().message(1, piece("<0x4g>", 0, 6)).message(2, trainer(2).varint(35, 1)),
      small_pieces().size(), "not of the form <0x0A>");
}

TEST(BadSentencepiece, RefusesBadSpecs) {
  expect_spec_refused(2, trainer(0), 0, "must be 1 (unigram) to 4 (char), got 0");
  expect_spec_refused(2, trainer(3), 0, "models of type word are not supported");
  expect_spec_refused(2, trainer(4), 0, "models of type char are not supported");
  expect_spec_refused(2, trainer(2).varint(41, uint64_t{0} - 2), 2, "bos_id must be from -1 to 10");
  expect_spec_refused(2, trainer(2).varint(42, 11), 2, "eos_id must be from -1 to 10, got 11");
  expect_spec_refused(2, trainer(2).varint(40, uint64_t{0} - 1), 2, "unk_id must be from 0 to 10");
  expect_spec_refused(2, trainer(2).bytes(44, "\xFF"), 2, "unk_surface must be UTF-8");
  expect_spec_refused(3, WireText().varint(3, 2), 0, "add_dummy_prefix must be 0 or 1, got 2");
}

TEST(BadSentencepiece, RefusesBadCharsmaps) {
  const auto with = [](const std::string& map) {
    return small_pieces().message(2, trainer(2)).message(3, WireText().bytes(2, map));
  };
  const std::string good = charsmap("x", "a");
  EXPECT_EQ(error_of(with(good).text()), "");
  const auto refused = [&](const std::string& map, size_t offset, const std::string& part) {
    // shorter maps have shorter length prefixes
    const size_t here = with(map).size() - map.size();
    expect_refused(with(map), here + offset, part);
  };
  refused("abc", 0, "has 3 bytes, too few");
  refused(good.substr(0, 4 + 4 * 3), 0, "says that its array has 12");
  refused(good.substr(0, good.size() - 1), good.size() - 2, "not ended by NUL");
  std::string bad = good;
  bad[bad.size() - 2] = '\x80';
  refused(bad, bad.size() - 2, "is not UTF-8");
  const auto with_unit = [&](size_t unit, size_t byte, char value) {
    std::string changed = good;
    changed[4 + 4 * unit + byte] = value;
    return changed;
  };
  // the node of "x" leads out of the map, to a node, or to a value after the replacements
  refused(with_unit(1, 2, '\x7F'), 4 + 4 * 1, "unit 1 of precompiled_charsmap leads to unit");
  refused(with_unit(1, 1, '\x01'), 4 + 4 * 1, "leads to unit 1, which is no value");
  refused(with_unit(2, 0, '\x02'), 4 + 4 * 1, "replacement at 2; the replacements have 2 bytes");
}

}  // namespace
}  // namespace titan::sentencepiece
