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

// k is cut into equal passes of about this many bytes of one row. C is read and written once a pass, and argmax found
// once: half of it lost 3 % at n = 2048, and a quarter of that 5 %.
inline constexpr int64_t kPassBytes = 8192;
static_assert(kPassBytes <= kMaxChunks * int64_t{kChunkSteps<char>});
// Passes of a product of few rows whose B is read once, in place: a pass of B must still lie in L2 with all its
// columns.
inline constexpr int64_t kStreamingSteps = 32;
inline constexpr int64_t kStreamingRows = 16;
// Rows of A packed at a time: many where B is packed again for each block of them, few where B lies in place.
inline constexpr int64_t kPackedRows = 1024;
inline constexpr int64_t kPackedRowsInL2 = 64;
// Rows that lie a multiple of this apart share one set of a first-level cache, which holds about as many lines as the
// widest tiles have rows. Narrow tiles have more rows: a matrix times a few columns took 1.6 times as long.
inline constexpr int64_t kAliasBytes = 4096;
// Below this k the straight argmax kernel wins: chunks leave a recovery of constant cost per output.
inline constexpr int64_t kChunkedSteps = 96;

inline constexpr int64_t l2_budget() { return int64_t{512} << 10; }  // half of the 1 MiB that current cores have

inline int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }
inline int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }

// One rectangle of rows x lanes (lanes of compute type) over k steps.
struct Extent {
  int64_t rows, lanes, k;
  bool argmax;
  int64_t a_row;  // strides in elements
  bool a_unit, b_unit;
};

inline Blocking choose_blocking(const Kernels& kernels, const Extent& x) {
  const int64_t bytes = kernels.bytes;
  const TileFamily& widest = x.argmax ? kernels.chunked : kernels.values;
  const int64_t panel_lanes = int64_t{widest.lanes} * widest.max_vectors;
  const int64_t b_bytes = x.k * x.lanes * bytes;
  const bool in_place = kernels.native && !x.argmax;
  Blocking b{};
  const bool streams = in_place && x.b_unit && x.rows <= kStreamingRows && b_bytes > l2_budget();
  b.kc = streams ? kStreamingSteps : kPassBytes / bytes;
  if (x.k > b.kc) b.kc = round_up(ceil_div(x.k, ceil_div(x.k, b.kc)), kernels.chunk);
  if (x.k < b.kc) b.kc = x.k;
  const int64_t copies = x.argmax ? 2 : 1;  // argmax keeps a transposed panel too
  b.panels = l2_budget() / (b.kc * panel_lanes * bytes * copies);
  if (b.panels < 1) b.panels = 1;
  const bool narrow = x.rows > kMaxTileRows && x.lanes < panel_lanes;
  const bool alias = narrow && x.a_unit && x.a_row * bytes % kAliasBytes == 0;
  // Argmax looks up single lines of A, which are packed so that they are aligned.
  b.a_in_place = in_place && !alias && (x.a_unit || x.rows <= kStreamingRows);
  b.b_in_place = streams || (in_place && x.b_unit && b_bytes <= l2_budget() / 2);
  b.mc = b.b_in_place ? kPackedRowsInL2 : kPackedRows;
  return b;
}

}  // namespace tropical::cpu
