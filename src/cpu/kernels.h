// What one instruction set offers for one row of the lowering table: plain function pointers, so that the loops
// around them are ordinary code, compiled once. All strides and counts are in elements.
#pragma once
#include <algorithm>
#include <cstdint>

#include "lowering.h"
#include "tropical_gemm/dtype.h"

namespace tropical::cpu {

// A rectangle of a strided matrix.
struct Source {
  const void* data;
  int64_t row, col;
  int64_t rows, cols;
};

// One register tile: rows x (vectors * lanes) outputs over k steps. a is read by broadcast, b by vectors.
struct TileCall {
  const void* a;
  int64_t a_row, a_k;
  const void* b;
  int64_t b_k;
  int64_t k;
  void* c;  // outputs: C itself, or a buffer
  int64_t c_row;
  void* ids;     // straight argmax: k per output, signed integers as wide as T
  void* chunks;  // chunked argmax: the chunk per output, bytes
  int valid;     // masked tiles: lanes that exist
  bool combine;  // values: take what is in c into account
  // Values: that many tiles of one shape, each so many elements after the one before.
  int64_t count = 1, a_step = 0, b_step = 0, c_step = 0;
};
using TileFn = void (*)(const TileCall&);

inline constexpr int kMaxRowShapes = 9;
inline constexpr int kMaxVectors = 3;
inline constexpr int kMaxTileRows = 16;
inline constexpr int kMaxTileLanes = 96;                   // 3 vectors of 32 lanes
inline constexpr int kMaxTileOutputs = 8 * kMaxTileLanes;  // of tiles that live in a buffer

// Chunked argmax: k steps per chunk, which are one cache line of a row, and chunks per pass over k.
template <class T>
inline constexpr int kChunkSteps = 64 / static_cast<int>(sizeof(T));
inline constexpr int kMaxChunks = 256;  // a byte holds which

// The tiles of one width; rows fall, the last is 1.
struct TileWidth {
  int lanes = 0;
  int shapes = 0;
  int rows[kMaxRowShapes] = {};
  TileFn fn[kMaxRowShapes] = {};

  // The tallest shape that fits into this many rows (at least 1).
  int shape_for(int64_t remaining) const {
    int shape = 0;
    while (rows[shape] > remaining) ++shape;
    return shape;
  }
};
// widths[v] is v vectors wide; widths[0] is half a vector, where that pays. The partial widths are as wide as their
// index says but read and write only the lanes that exist; without cheap masks they are empty.
struct TileFamily {
  int lanes = 0;
  int max_vectors = 0;
  TileWidth widths[kMaxVectors + 1];
  TileWidth partial[2];
};

// Turns chunks into k: the first k of the chunk whose candidate equals the tile's value.
struct RecoverCall {
  const void* a;  // rows of compute type, contiguous along k
  int64_t a_row;
  const void* bt;  // the panel of B, transposed: lanes of compute type, contiguous along k
  int64_t bt_row;
  int lanes;  // of the tile, the row length of best and ids
  int rows, cols;
  int64_t k;
  const void* best;
  const void* chunks;
  void* ids;
  // Rows of C, of compute type and contiguous, where only what is better than them will be stored; else null.
  const void* c = nullptr;
  int64_t c_row = 0;
};

// Writes a tile buffer to C, and the indices with it.
struct StoreCall {
  const void* tile;
  const void* ids;  // null for values
  int lanes;
  int rows, cols;  // cols counts elements of C
  void* c;
  int64_t c_row, c_col;
  int32_t* argmax;
  int64_t argmax_row, argmax_col;
  int64_t index_offset;
  bool combine;
};

// What a pass over an operand found. Integers: infinities under + are counted apart.
struct Facts {
  bool nan = false, plus_infinity = false, minus_infinity = false, zero = false;
  int64_t low = 0, high = 0;

  Facts& operator|=(const Facts& o) {
    nan |= o.nan, plus_infinity |= o.plus_infinity, minus_infinity |= o.minus_infinity, zero |= o.zero;
    low = std::min(low, o.low), high = std::max(high, o.high);
    return *this;
  }
};

struct Kernels {
  int in_bytes = 0, bytes = 0;  // of In and of T
  int columns_per_lane = 1;
  bool native = false;  // In is T: operands may be used in place, C written directly
  TileFamily values, chunked, straight;
  // dst[r * ld + c] = T(src[r, c]); returns whether all elements are finite (true for integers).
  bool (*pack_a)(const Source&, void* dst, int64_t ld) = nullptr;
  // The same for a panel of B; lanes beyond src.cols become 0.
  bool (*pack_b)(const Source&, void* dst, int64_t ld) = nullptr;
  int chunk = 0;  // kChunkSteps<T>
  // dst[lane * ld + r] = panel[r * lanes + lane] for a packed panel of k rows.
  void (*transpose_panel)(const void* panel, int lanes, int64_t k, void* dst, int64_t ld) = nullptr;
  bool (*finite)(const Source&) = nullptr;
  Facts (*facts)(const Source&) = nullptr;
  void (*recover)(const RecoverCall&) = nullptr;
  void (*store)(const StoreCall&) = nullptr;
  void (*store_argmax)(const StoreCall&) = nullptr;
};

// Of one element type, for each in a file that CMake makes of kernels.cpp.in.
template <class In>
const Kernels* find_kernels_of(Semiring semiring, Path path, bool argmax);

// The kernels of the instruction set in use; null where the table has no such row.
const Kernels* find_kernels(Semiring semiring, DType dtype, Path path, bool argmax);

}  // namespace tropical::cpu
