// Tile shapes of the fast kernels. Times are of an H200 (132 multiprocessors), f32 max_plus unless said.
#pragma once

namespace tropical::cuda {

// Builds that only have to compile and be right leave out most fast kernels.
#ifdef TG_INSTANCES_FEW
inline constexpr bool kFewInstances = true;
#else
inline constexpr bool kFewInstances = false;
#endif

// kM x kN outputs of a block, kK slots of k in a stage; kRows x kCols outputs of a thread; warps are 4 x 8 threads.
// kGroups warps share the outputs and divide the slots of each stage. kBlocks: blocks that fit on a multiprocessor.
// kUnroll*: slots unrolled in each mode of f32; loops that outgrow the instruction cache fall to half the speed when
// neighbouring warps are in different modes.
template <int M, int N, int K, int Rows, int Cols, int Stages, int Groups, int Blocks, int UnrollValue = 8,
          int UnrollPositive = 8, int UnrollNegative = 8, int Chunk = K / Groups>
struct FastTile {
  static constexpr int kM = M, kN = N, kK = K, kRows = Rows, kCols = Cols, kStages = Stages, kGroups = Groups,
                       kBlocks = Blocks;
  static constexpr int kUnrollValue = UnrollValue, kUnrollPositive = UnrollPositive, kUnrollNegative = UnrollNegative;
  static constexpr int kGroupThreads = (M / Rows) * (N / Cols), kThreads = kGroupThreads * Groups;
  static constexpr int kGroupSlots = K / Groups;  // of a stage
  static constexpr int kChunk = Chunk;            // slots after which argmax looks for what has improved
  static_assert(kGroupThreads % 32 == 0 && N % (8 * Cols) == 0 && M % (4 * Rows) == 0 && K % Groups == 0);
};

// One-word types, large products.
using TileHuge = FastTile<256, 128, 32, 16, 8, 3, 1, 1, 4, 8, 4>;
using TileLarge = FastTile<128, 128, 16, 8, 8, 3, 1, 2, 8, 8, 8>;
// A few hundred to a thousand rows and columns: groups fill the multiprocessors that tiles alone cannot.
using TileMedium = FastTile<64, 128, 64, 8, 8, 3, 2, 1>;
// f32 plus, where shared memory allows: fewer barriers (n = 1024, mixed signs: 92.5 us instead of 93.8).
using TileWide = FastTile<64, 128, 128, 8, 8, 2, 2, 1, 16, 8, 8>;
using TileSmall = FastTile<32, 64, 64, 4, 4, 3, 2, 2, 32, 32, 32>;
using TileTiny = FastTile<16, 32, 128, 4, 4, 3, 8, 1, 16>;
// Batches of 64 x 64 and 128 x 128.
using TileBatch = FastTile<64, 64, 16, 8, 4, 4, 1, 4, 16>;
using TileSquare = FastTile<128, 128, 16, 8, 8, 3, 1, 2>;
// f64.
using TileDouble = FastTile<128, 128, 16, 8, 8, 3, 1, 1>;
// argmax: a register copy of the results besides them.
using TileArgLarge = FastTile<128, 128, 32, 8, 8, 3, 1, 1, 4, 16, 4>;
using TileArgMedium = FastTile<64, 128, 32, 8, 8, 3, 2, 1, 8, 16, 8>;
using TileArgTiny = FastTile<16, 32, 128, 4, 4, 3, 8, 1, 8, 8, 8, 4>;
using TileArgSmall = FastTile<32, 64, 64, 4, 4, 3, 4, 1>;
// All of K in shared memory (up to kStages * kK), where the index is then looked for: one kernel instead of three.
using TileArgKept = FastTile<32, 64, 64, 4, 4, 8, 2, 1, 16, 8, 8, 16>;
// The same for batches; small chunks win there.
using TileArgBatch = FastTile<64, 64, 16, 8, 4, 8, 1, 3, 8, 8, 8, 4>;

}  // namespace tropical::cuda
