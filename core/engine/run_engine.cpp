#include "core/engine/run_engine.h"

#include <utility>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/hf_exchange.h>

#include "core/data/no_tokenizer.h"
#include "core/exchange/hf_folder.h"

namespace titan::core {

namespace fs = std::filesystem;

RunEngine::RunEngine(Run& run, const JobConfig& config, fs::path weights)
    : run_(run), config_(config), weights_(std::move(weights)) {
  if (!run.chat_template) return;
  if (const NoTokenizer* none = missing_tokenizer(*run.tokenizer)) throw none->reason();
  chat_.emplace(*run.chat_template, run.tokenizer.get(), config.tokenizer.name);
}

const Tokenizer* RunEngine::tokenizer() const {
  return missing_tokenizer(*run_.tokenizer) ? nullptr : run_.tokenizer.get();
}

/// max_position_embeddings of the folder's config.json, else of the config.json of an export.
int64_t RunEngine::context() const {
  const auto* exchange = dynamic_cast<const HfExchange*>(run_.model.get());
  Value described = exchange ? exchange->hf_config() : Value::map();
  const fs::path file = weights_ / "config.json";
  if (fs::is_regular_file(file)) described = parse_json(read_text(file));
  const Value* most = described.find("max_position_embeddings");
  return most && most->is_integer() ? most->as_integer() : config_.training.seq_len;
}

std::set<int32_t> RunEngine::end_ids() const {
  const Value eos = hf_token_ids(config_.model.hf_assets_path,
                                 tokenizer() ? tokenizer()->special_tokens() : SpecialTokens())
                        .eos;
  std::set<int32_t> ids;
  if (eos.is_integer()) ids.insert(static_cast<int32_t>(eos.as_integer()));
  if (eos.is_list())
    for (const Value& id : eos.as_list())
      if (id.is_integer()) ids.insert(static_cast<int32_t>(id.as_integer()));
  return ids;
}

std::string RunEngine::from_rank_zero(const std::string& name, const std::string& value) {
  TITAN_ASSERT(rendezvous_, "from_rank_zero before the rendezvous");
  return rendezvous_->from_rank_zero(name, value);
}

}  // namespace titan::core
