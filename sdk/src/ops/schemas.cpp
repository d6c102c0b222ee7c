// Defines the operations of titan/ops in the dispatcher, once for all devices. A device plugin adds
// its implementations with TORCH_LIBRARY_IMPL(titan, <device>, m).
#include <torch/library.h>

TORCH_LIBRARY(titan, m) {
  m.def("rms_norm_forward(Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)");
  m.def("rms_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor rstd) -> (Tensor, Tensor)");
  m.def("swiglu_forward(Tensor gate, Tensor up) -> Tensor");
  m.def("swiglu_backward(Tensor dout, Tensor gate, Tensor up) -> (Tensor, Tensor)");
  m.def(
      "rope_rotate(Tensor q, Tensor k, Tensor cos, Tensor sin, Tensor? positions, bool inverse)"
      " -> (Tensor, Tensor)");
  m.def(
      "attention_forward(Tensor q, Tensor k, Tensor v, bool causal, float scale)"
      " -> (Tensor, Tensor)");
  m.def(
      "attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor logsumexp,"
      " bool causal, float scale) -> (Tensor, Tensor, Tensor)");
  m.def(
      "packed_attention_forward(Tensor q, Tensor k, Tensor v, int[] lengths, bool causal,"
      " float scale) -> (Tensor, Tensor)");
  m.def(
      "packed_attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out,"
      " Tensor logsumexp, int[] lengths, bool causal, float scale) -> (Tensor, Tensor, Tensor)");
  m.def(
      "linear_cross_entropy(Tensor x, Tensor weight, Tensor labels, bool needs_dx,"
      " bool needs_dweight) -> (Tensor, Tensor, Tensor)");
  m.def("embedding_forward(Tensor weight, Tensor tokens) -> Tensor");
  m.def(
      "add_rms_norm_forward(Tensor x, Tensor delta, Tensor weight, float eps)"
      " -> (Tensor, Tensor, Tensor)");
  m.def(
      "add_rms_norm_backward(Tensor dy, Tensor dsum, Tensor sum, Tensor weight, Tensor rstd)"
      " -> (Tensor, Tensor)");
  m.def("swiglu_backward_in_place(Tensor(a!) dout, Tensor(b!) gate, Tensor(c!) up) -> ()");
  m.def(
      "rope_into(Tensor q, Tensor k, Tensor cos, Tensor sin, Tensor? positions, bool inverse,"
      " Tensor(a!) q_out, Tensor(b!) k_out) -> ()");
  m.def("embedding_backward(Tensor dout, Tensor tokens, int num_rows) -> Tensor");
  m.def(
      "adamw_step_(Tensor(a!) weight, Tensor gradient, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq,"
      " Tensor step, float lr, float beta1, float beta2, float eps, float weight_decay,"
      " int? rounding_key, int first, int columns, int whole_columns) -> bool");
  m.def(
      "scaled_adamw_step_(Tensor(a!) weight, Tensor gradient, Tensor gradient_scale,"
      " Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, Tensor step, float lr, float beta1,"
      " float beta2, float eps, float weight_decay, int? rounding_key, int first, int columns,"
      " int whole_columns) -> bool");
  m.def("grouped_mm(Tensor x, Tensor weight, int[] rows) -> Tensor");
  m.def("grouped_mm_weight_grad(Tensor grad, Tensor x, int[] rows) -> Tensor");
  m.def("float8_of_tensor(Tensor x, ScalarType format, bool to_power_of_two) -> (Tensor, Tensor)");
  m.def("float8_of_rows(Tensor x, bool to_power_of_two) -> (Tensor, Tensor)");
  m.def("float8_by_scale(Tensor x, Tensor scale, ScalarType format) -> Tensor");
}
