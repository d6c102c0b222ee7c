#include "outside_signals.h"

#include <algorithm>
#include <csignal>

#include <titan/program/child.h>
#include <titan/program/exit_codes.h>
#include <titan/program/stop_request.h>

#include "failure_text.h"

namespace titan::launching {

OutsideSignals::Response OutsideSignals::take(int signal, Screen& screen) {
  if (asks_for_the_end(signal) && asked_for_the_end()) {
    killed_by_ = signal;
    screen.say(signal_name(signal) + " once more: killing every rank");
    return Response::kill;
  }
  const bool is_new = std::find(passed_on_.begin(), passed_on_.end(), signal) == passed_on_.end();
  if (!is_new && signal != SIGUSR2) return Response::ignore;  // SIGUSR2 requests a report
  if (is_new) passed_on_.push_back(signal);
  screen.say(signal_name(signal) + " passed on to the ranks" +
             (asks_for_the_end(signal) ? "; once more kills them" : ""));
  return Response::pass_on;
}

bool OutsideSignals::asked_for_the_end() const {
  return std::any_of(passed_on_.begin(), passed_on_.end(), asks_for_the_end);
}

bool OutsideSignals::asked_to_stop() const {
  return std::any_of(passed_on_.begin(), passed_on_.end(),
                     [](int signal) { return signal != SIGUSR2; });
}

bool OutsideSignals::is_requested_stop(int status) const {
  const int code = exit_code_of(status);
  if (code == kExitRequeue || code == kExitFaultyDevice) return true;
  return std::any_of(passed_on_.begin(), passed_on_.end(), [&](int signal) {
    return code == 128 + signal || (signal == SIGUSR1 && code == kExitTerminated);
  });
}

}  // namespace titan::launching
