// Lists the kernels and dtypes that are instantiated, by nvcc for the plugin and by the host's
// compiler for the emulator.
#pragma once

#include "adamw.h"
#include "cross_entropy.h"
#include "embedding.h"
#include "float8.h"
#include "rms_norm.h"
#include "rope.h"
#include "swiglu.h"

// X is variadic: its argument may contain commas.
#define TITAN_CUDA_NORM_KERNELS(X)       \
  X(RmsNormForward<float, float>)        \
  X(RmsNormForward<BFloat16, BFloat16>)  \
  X(RmsNormForward<BFloat16, float>)     \
  X(RmsNormForward<Half, Half>)          \
  X(RmsNormForward<Half, float>)         \
  X(RmsNormBackward<float, float>)       \
  X(RmsNormBackward<BFloat16, BFloat16>) \
  X(RmsNormBackward<BFloat16, float>)    \
  X(RmsNormBackward<Half, Half>)         \
  X(RmsNormBackward<Half, float>)        \
  X(SumRows<float>)                      \
  X(SumRows<BFloat16>)                   \
  X(SumRows<Half>)

#define TITAN_CUDA_LAYER_KERNELS(X) \
  X(SwigluForward<float>)           \
  X(SwigluForward<BFloat16>)        \
  X(SwigluForward<Half>)            \
  X(SwigluBackward<float>)          \
  X(SwigluBackward<BFloat16>)       \
  X(SwigluBackward<Half>)           \
  X(RopeRotate<float>)              \
  X(RopeRotate<BFloat16>)           \
  X(RopeRotate<Half>)               \
  X(CrossEntropy<float>)            \
  X(CrossEntropy<BFloat16>)         \
  X(CrossEntropy<Half>)             \
  X(EmbeddingBackward<float>)       \
  X(EmbeddingBackward<BFloat16>)    \
  X(EmbeddingBackward<Half>)

#define TITAN_CUDA_STEP_KERNELS(X)        \
  X(AdamW<BFloat16, BFloat16, float>)     \
  X(AdamW<BFloat16, BFloat16, BFloat16>)  \
  X(AdamW<BFloat16, float, float>)        \
  X(AdamW<BFloat16, float, BFloat16>)     \
  X(AdamW<float, float, float>)           \
  X(AdamW<float, float, BFloat16>)        \
  X(LargestOfBlocks<float>)               \
  X(LargestOfBlocks<BFloat16>)            \
  X(QuantizeTensor<float, Float8E4m3>)    \
  X(QuantizeTensor<float, Float8E5m2>)    \
  X(QuantizeTensor<BFloat16, Float8E4m3>) \
  X(QuantizeTensor<BFloat16, Float8E5m2>) \
  X(QuantizeRows<float, Float8E4m3>)      \
  X(QuantizeRows<BFloat16, Float8E4m3>)   \
  X(LargestOfColumns<float>)              \
  X(LargestOfColumns<BFloat16>)           \
  X(ScaleOfColumns<Float8E4m3>)           \
  X(QuantizeTurned<float, Float8E4m3>)    \
  X(QuantizeTurned<float, Float8E5m2>)    \
  X(QuantizeTurned<BFloat16, Float8E4m3>) \
  X(QuantizeTurned<BFloat16, Float8E5m2>)
