// Registers the CPU implementations of titan/ops with the dispatcher.
#include <torch/library.h>

#include "../signatures.h"

TORCH_LIBRARY_IMPL(titan, CPU, m) {
  namespace cpu = titan::ops::cpu;
  m.impl("rms_norm_forward", TORCH_FN(cpu::rms_norm_forward));
  m.impl("rms_norm_backward", TORCH_FN(cpu::rms_norm_backward));
  m.impl("swiglu_forward", TORCH_FN(cpu::swiglu_forward));
  m.impl("swiglu_backward", TORCH_FN(cpu::swiglu_backward));
  m.impl("rope_rotate", TORCH_FN(cpu::rope_rotate));
  m.impl("attention_forward", TORCH_FN(cpu::attention_forward));
  m.impl("attention_backward", TORCH_FN(cpu::attention_backward));
  m.impl("linear_cross_entropy", TORCH_FN(cpu::linear_cross_entropy));
  m.impl("embedding_forward", TORCH_FN(cpu::embedding_forward));
  m.impl("add_rms_norm_forward", TORCH_FN(cpu::add_rms_norm_forward));
  m.impl("add_rms_norm_backward", TORCH_FN(cpu::add_rms_norm_backward));
  m.impl("swiglu_backward_in_place", TORCH_FN(cpu::swiglu_backward_in_place));
  m.impl("rope_into", TORCH_FN(cpu::rope_into));
  m.impl("embedding_backward", TORCH_FN(cpu::embedding_backward));
  m.impl("grouped_mm", TORCH_FN(cpu::grouped_mm));
  m.impl("grouped_mm_weight_grad", TORCH_FN(cpu::grouped_mm_weight_grad));
}
