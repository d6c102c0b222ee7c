#include <titan/pipeline_schedule.h>

#include <titan/error.h>

namespace titan {
namespace {

const char* word(PipelineAction::Kind kind) {
  using Kind = PipelineAction::Kind;
  switch (kind) {
    case Kind::forward:
      return "F";
    case Kind::backward:
      return "B";
    case Kind::input_grad:
      return "I";
    case Kind::weight_grad:
      return "W";
    case Kind::send_output:
      return "SEND_F";
    case Kind::receive_input:
      return "RECV_F";
    case Kind::send_grad:
      return "SEND_B";
    case Kind::receive_grad:
      return "RECV_B";
  }
  fail(ErrorKind::internal, "pipeline action ", static_cast<int>(kind));
}

}  // namespace

std::string to_string(const PipelineAction& action) {
  return std::to_string(action.stage) + word(action.kind) + std::to_string(action.microbatch);
}

}  // namespace titan
