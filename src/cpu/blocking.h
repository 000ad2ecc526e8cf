// Block sizes, in one place, with what decided them.
#pragma once
#include <cstdint>

#include "cpu/kernels.h"

namespace tropical::cpu {

struct Blocking {
  int64_t kc;      // k steps per pass: C is read and written once per pass
  int64_t mc;      // rows packed at a time, where A has to be packed
  int64_t panels;  // panels of B that stay in L2 while the rows stream past
  bool a_in_place;
  bool b_in_place;
};

// k is cut into equal passes of about this many bytes of one row: 1024 f32 steps measured best, 256 lost 5 %.
inline constexpr int64_t kPassBytes = 4096;
// Passes of a product of few rows whose B is read once, in place: a pass of B must still lie in L2 with all its
// columns.
inline constexpr int64_t kStreamingSteps = 32;
inline constexpr int64_t kStreamingRows = 16;
inline constexpr int64_t kPackedRows = 512;
// Below this k the straight argmax kernel wins: chunks leave a recovery of constant cost per output.
inline constexpr int64_t kChunkedSteps = 96;

inline constexpr int64_t l2_budget() { return int64_t{512} << 10; }  // half of the 1 MiB that current cores have

inline int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }
inline int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }

// For one rectangle of rows x lanes (lanes of compute type) over k steps.
inline Blocking choose_blocking(const Kernels& kernels, bool argmax, int64_t rows, int64_t lanes, int64_t k,
                                bool a_unit, bool b_unit) {
  const int64_t bytes = kernels.bytes;
  const TileFamily& widest = argmax ? kernels.chunked : kernels.values;
  const int64_t panel_lanes = int64_t{widest.lanes} * widest.max_vectors;
  Blocking b{};
  b.kc = kPassBytes / bytes;
  const bool streams = !argmax && kernels.native && b_unit && rows <= kStreamingRows && k * lanes * bytes > l2_budget();
  if (streams) b.kc = kStreamingSteps;
  if (k > b.kc) b.kc = round_up(ceil_div(k, ceil_div(k, b.kc)), kChunk);
  if (k < b.kc) b.kc = k;
  b.mc = kPackedRows;
  const int64_t copies = argmax ? 2 : 1;  // chunked argmax keeps a transposed panel too
  b.panels = l2_budget() / (b.kc * panel_lanes * bytes * copies);
  if (b.panels < 1) b.panels = 1;
  b.a_in_place = kernels.native && (a_unit || (!argmax && rows <= kStreamingRows));
  b.b_in_place = streams || (!argmax && kernels.native && b_unit && k * lanes * bytes <= l2_budget() / 2);
  return b;
}

}  // namespace tropical::cpu
