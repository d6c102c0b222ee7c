#include "refusal.h"

#include <titan/error.h>
#include <titan/shown_text.h>

#include "paths.h"
#include "retries.h"

namespace titan::download {
namespace {

std::string token_note(const HttpAnswer& answer) {
  return answer.token_was_sent ? "a token was sent" : "no token was sent";
}

/// Advice by the hub's own error code: RepoNotFound, RevisionNotFound, EntryNotFound, GatedRepo.
std::string advice(const HttpAnswer& answer, const RepoUrls& urls, const std::string& revision) {
  const std::string code = answer.header("x-error-code");
  const bool is_dataset = urls.kind() == RepoKind::dataset;
  const std::string kind = is_dataset ? "dataset" : "model";
  const std::string other = is_dataset ? "titan download model" : "titan download dataset";
  if (code == "GatedRepo")
    return "the repo is gated (" + token_note(answer) + "): accept its terms at " + urls.page() +
           " and give the token of that account by --token or HF_TOKEN";
  if (code == "RevisionNotFound")
    return "there is no revision '" + revision + "'; see " + urls.page() +
           "/tree/main for branches and tags";
  if (code == "EntryNotFound") return "the file is not in this revision";
  if (answer.status == 401)
    return "there is no " + kind + " '" + urls.name() +
           "', or it is private or gated, or the token is wrong (" + token_note(answer) +
           "): check the name, look at " + urls.page() +
           ", and give a token by --token or HF_TOKEN";
  if (answer.status == 403)
    return "this account may not read it (" + token_note(answer) +
           "): ask for access and accept the terms at " + urls.page() +
           ", and give the token of that account by --token or HF_TOKEN";
  if (code == "RepoNotFound" || answer.status == 404)
    return "there is no " + kind + " '" + urls.name() + "'" +
           (code.empty() ? " or it has no revision '" + revision + "'" : "") +
           "; check the name; other kinds are fetched by: " + other;
  return "no local remedy is known; see whether " + urls.page() + " can be read in a browser";
}

}  // namespace

void fail_refused(const std::string& what, const std::string& url, const HttpAnswer& answer,
                  const RepoUrls& urls, const std::string& revision) {
  const std::string said = answer.header("x-error-message");
  const bool is_missing_file =
      answer.status == 404 && answer.header("x-error-code") == "EntryNotFound";
  fail(is_missing_file ? ErrorKind::data : ErrorKind::io, "cannot ", what, ": ", url, ": ",
       reason_of(answer), said.empty() ? "" : " (" + printable(said) + ")", "; ",
       answer.status ? advice(answer, urls, revision)
                     : "check the address, or choose another by --base-url");
}

}  // namespace titan::download
