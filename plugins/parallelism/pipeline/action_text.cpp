#include "action_text.h"

namespace titan::pipeline {
namespace {

const char* words_for(PipelineAction::Kind kind) {
  using Kind = PipelineAction::Kind;
  switch (kind) {
    case Kind::forward:
      return "forward of stage ";
    case Kind::backward:
      return "backward of stage ";
    case Kind::input_grad:
      return "input gradient of stage ";
    case Kind::weight_grad:
      return "weight gradients of stage ";
    case Kind::send_output:
      return "sending the output of stage ";
    case Kind::receive_input:
      return "receiving the input of stage ";
    case Kind::send_grad:
      return "sending the input gradient of stage ";
    case Kind::receive_grad:
      return "receiving the output gradient of stage ";
  }
  return "stage ";
}

}  // namespace

std::string action_text(const PipelineAction& action) {
  return words_for(action.kind) + std::to_string(action.stage) + ", microbatch " +
         std::to_string(action.microbatch) + " (" + to_string(action) + ")";
}

}  // namespace titan::pipeline
