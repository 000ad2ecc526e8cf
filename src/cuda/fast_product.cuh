// From params to launches of the fast kernels: which tile, which operands are copied, what follows.
#pragma once
#include "fast.cuh"
#include "generic.cuh"
#include "heuristics.h"
#include "launch.cuh"
#include "side.h"
#include "small.cuh"

namespace tropical::cuda {

template <class S, class In, bool kArgmax>
class FastProduct {
  using Core = typename CoreFor<S, In>::type;
  static constexpr bool kExists = [] {
    if constexpr (std::is_void_v<Core> || (kFewInstances && !std::is_same_v<S, MaxPlus>))
      return false;
    else
      return !kArgmax || (is_plus_v<S> && std::is_same_v<In, float>);
  }();
  static constexpr bool kPlusFloat = is_plus_v<S> && std::is_same_v<In, float>;

 public:
  // Returns whether it took the product. With `facts` set the generic kernel has to follow, for data that the fast one
  // leaves alone.
  static bool run(const ProductArgs& args, Call& call, const int*& facts) {
    if constexpr (kExists) {
      if constexpr (kPlusFloat) {
        if (split(args, call)) return true;
      }
      return args.batch.ndim <= kSlimDims && Plan(slim(args), call).run(facts);
    } else {
      return false;
    }
  }

 private:
  // Few outputs and a long K: the parts of K become members of a batch. The last part overlaps the one before it,
  // which changes nothing, as the earlier index wins.
  static bool split(const ProductArgs& p, Call& call) {
    const int64_t multiprocessors = call.target.facts->multiprocessors;
    const int64_t tiles = ceil_div(p.m, 64) * ceil_div(p.n, 64) * p.batch.count;
    if (call.target.facts->compute < 80 || p.k < 1024 || 2 * tiles > multiprocessors || std::min(p.m, p.n) < 8 ||
        p.batch.ndim >= kSlimDims)
      return false;
    const int64_t wanted = std::min(4 * multiprocessors / tiles, p.k / 256);
    const int64_t part = ceil_div(ceil_div(p.k, wanted), 64) * 64, whole = p.k / part;
    if (whole < 2 || part * whole > p.k) return false;
    const int64_t outputs = p.batch.count * p.m * p.n;
    Partial<float> partial;
    partial.splits = ceil_div(p.k, part);
    partial.index_step = part, partial.index_last = p.k - part;
    partial.values = call.scratch.template take<float>(partial.splits * outputs);
    if (kArgmax) partial.index = call.scratch.template take<int32_t>(partial.splits * outputs);

    ProductArgs q = p;
    q.c = partial.values, q.argmax = partial.index;
    q.k = part;
    q.c_row = q.argmax_row = p.n, q.c_col = q.argmax_col = 1;
    q.accumulate = false, q.argmax_offset = 0;
    int64_t step = p.m * p.n;
    for (int d = p.batch.ndim - 1; d >= 0; --d) {
      q.batch.stride[d][2] = q.batch.stride[d][3] = step;
      step *= p.batch.size[d];
    }
    ProductArgs all = q;  // the whole parts, along a first axis of the batch
    all.batch.ndim = p.batch.ndim + 1;
    all.batch.count = whole * p.batch.count;
    for (int d = 0; d < p.batch.ndim; ++d) {
      all.batch.size[d + 1] = q.batch.size[d];
      for (int o = 0; o < 4; ++o) all.batch.stride[d + 1][o] = q.batch.stride[d][o];
    }
    all.batch.size[0] = whole;
    all.batch.stride[0][0] = part * p.a_col, all.batch.stride[0][1] = part * p.b_row;
    all.batch.stride[0][2] = all.batch.stride[0][3] = outputs;
    const int* facts = nullptr;
    if (!Plan(slim(all), call).run(facts)) return false;
    if (partial.splits > whole) {
      q.a = static_cast<const float*>(p.a) + partial.index_last * p.a_col;
      q.b = static_cast<const float*>(p.b) + partial.index_last * p.b_row;
      q.c = partial.values + whole * outputs;
      if (kArgmax) q.argmax = partial.index + whole * outputs;
      Plan(slim(q), call).run(facts);
    }
    launch<&merge_splits<Generic<S, In, kArgmax>, kArgmax>>(call.target, ceil_div(outputs, 32), 256, 0, p, partial,
                                                            nullptr);
    return true;
  }

  struct Plan {
    Plan(const SlimArgs& args, Call& c) : original(args), call(c) { q.p = args; }

    bool run(const int*& facts) {
      using T = typename Core::T;
      const SlimArgs& p = q.p;
      if (call.target.facts->compute < 80 || p.k == 0 || !fits()) return false;
      if constexpr (kPlusFloat) {
        if (run_small()) return true;
      }
      constexpr int kVector = 16 / sizeof(T);
      const Side a = side_a(), b = side_b();
      constexpr bool kDirect = std::is_same_v<In, float>;
      const bool a_lines = kDirect && narrow_pitch(a.k) && a.lines_contiguous(p.batch, kVector, sizeof(In));
      const bool b_lines = kDirect && narrow_pitch(b.k) && b.lines_contiguous(p.batch, kVector, sizeof(In));
      bool a_k = kDirect && narrow_pitch(a.line) && !a_lines && a.k_contiguous(p.batch, kVector, sizeof(In));
      bool b_k = kDirect && narrow_pitch(b.line) && !b_lines && b.k_contiguous(p.batch, kVector, sizeof(In));
      const TileName tile = choose(a_lines || a_k, b_lines || b_k, a_lines, b_lines);
      if (tile == TileName::none) return false;
      // The two largest take only contiguous lines.
      if (tile == TileName::huge || tile == TileName::large || !kPlusFloat || kFewInstances) a_k = b_k = false;
      int* flags = nullptr;
      if constexpr (Core::kFlagged) {
        flags = call.scratch.template take<int>(2);
        if (!call.target.dry) TG_CUDA_CHECK(cudaMemsetAsync(flags, 0, 2 * sizeof(int), call.target.stream));
      }
      q.k = static_cast<int>(ceil_div(p.k, Core::kSteps));
      place(a, a_lines, a_k, flags, q.a, q.a_pitch, q.a_lines);
      place(b, b_lines, b_k, flags ? flags + 1 : nullptr, q.b, q.b_pitch, q.b_lines);
      q.facts = flags;
      q.vectors = !p.accumulate && p.c_col == 1 && vectors_fit(p.c, p.c_row, 2, sizeof(In)) &&
                  (!kArgmax || (p.argmax_col == 1 && vectors_fit(p.argmax, p.argmax_row, 3, sizeof(int32_t))));
      if (kArgmax && !keeps_k(tile)) {
        const int64_t count = p.batch.count * p.m * p.n;
        q.found.values = call.scratch.template take<float>(count);
        q.found.ids = call.scratch.template take<uint16_t>(count);
      }
      start(tile, a_k, b_k);
      facts = flags;
      return true;
    }

    // A warp for each matrix, where they are small enough.
    bool run_small() {
      const SlimArgs& p = q.p;
      const int64_t size = std::max({p.m, p.n, p.k});
      if (p.batch.count >= int64_t{1} << 32) return false;
      if (size <= 8)
        enqueue_small<8>();
      else if (size <= 16)
        enqueue_small<16>();
      else if (size <= 32)
        enqueue_small<32>();
      return size <= 32;
    }
    template <int kSize>
    void enqueue_small() {
      const SlimArgs& p = q.p;
      const auto rows_fit = [&](const void* data, int64_t row, int64_t col, int64_t rows, int64_t cols, int operand) {
        return rows == kSize && cols == kSize &&
               Side{data, col, row, kSize, kSize, operand}.lines_contiguous(p.batch, 4, 4);
      };
      SmallArgs s{
          p, rows_fit(p.a, p.a_row, p.a_col, p.m, p.k, 0), rows_fit(p.b, p.b_row, p.b_col, p.k, p.n, 1),
          !p.accumulate && Side{p.c, p.c_col, p.c_row, p.n, 1, 2}.lines_contiguous(p.batch, 4, 4) &&
              (!kArgmax || Side{p.argmax, p.argmax_col, p.argmax_row, p.n, 1, 3}.lines_contiguous(p.batch, 4, 4))};
      using Tile = SmallTile<kSize>;
      launch<&small_product<FloatCore<S, false>, kSize, kArgmax>>(call.target, ceil_div(p.batch.count, Tile::kMatrices),
                                                                  Tile::kWarps * 32, Tile::kSharedBytes, s);
    }

    // The kernels count in 32 bits within a member of the batch, and blocks too.
    bool fits() const {
      constexpr int64_t kLimit = int64_t{1} << 28;
      const SlimArgs& p = q.p;
      return std::max({p.m, p.n, p.k}) < kLimit && p.m * p.n / 256 < kLimit && p.m * p.k / 256 < kLimit &&
             p.k * p.n / 256 < kLimit &&
             static_cast<double>(std::max({p.m, int64_t{64}})) * static_cast<double>(std::max(p.n, int64_t{64})) / 256 *
                     static_cast<double>(p.batch.count) <
                 0x1p31 &&
             static_cast<double>(std::max({p.m, p.n, int64_t{64}})) * static_cast<double>(std::max(p.k, int64_t{32})) /
                     2048 * static_cast<double>(p.batch.count) <
                 0x1p31;
    }
    static bool narrow_pitch(int64_t pitch) { return pitch < (int64_t{1} << 31) && pitch > -(int64_t{1} << 31); }

    // The tile that is expected to take least time.
    TileName choose(bool a_direct, bool b_direct, bool a_lines, bool b_lines) const {
      const SlimArgs& p = q.p;
      TileName best = TileName::none;
      double least = 0;
      // What the generic kernel does instead is far slower, but starts at once.
      if (!kPlusFloat && static_cast<double>(p.m) * p.n * p.k * p.batch.count < 0x1p22) return best;
      if (!kPlusFloat && (p.m < 32 || p.n < 32)) return best;
      if (std::min(p.m, p.n) < 8 || p.k < 8) return best;
      for (const TileCost& cost : kTileCosts) {
        if (!exists(cost.name) || shared_bytes(cost.name) > call.target.facts->shared_bytes) continue;
        if (kArgmax && (p.k / 16 >= 0xffff || (keeps_k(cost.name) && p.k > most_kept_k(cost.name)))) continue;
        double clocks =
            tile_clocks(cost, p.m, p.n, p.k / Core::kSteps, p.batch.count, call.target.facts->multiprocessors);
        if (!(cost.packed ? a_lines : a_direct)) clocks += pack_clocks(static_cast<double>(p.m) * p.k * members(0));
        if (!(cost.packed ? b_lines : b_direct)) clocks += pack_clocks(static_cast<double>(p.n) * p.k * members(1));
        // Chunk ids take a pass of their own, which reads a copy of one operand at least.
        if (kArgmax && !keeps_k(cost.name))
          clocks += 9000 + .03 * static_cast<double>(p.m) * p.n * p.batch.count +
                    (a_lines ? pack_clocks(static_cast<double>(p.m) * p.k * members(0)) : 0) +
                    (b_lines ? pack_clocks(static_cast<double>(p.n) * p.k * members(1)) : 0);
        if (best == TileName::none || clocks < least) best = cost.name, least = clocks;
      }
      return best;
    }
    // Tiles that keep all of K in shared memory to find indices there.
    static constexpr bool keeps_k(TileName name) { return name == TileName::batch || name == TileName::tiny; }
    static constexpr int most_kept_k(TileName name) {
      return name == TileName::batch ? TileArgBatch::kStages * TileArgBatch::kK
                                     : TileArgTiny::kStages * TileArgTiny::kK;
    }
    static constexpr bool exists(TileName name) {
      if (kPlusFloat) return !(kArgmax && (name == TileName::huge || name == TileName::square));
      if (std::is_same_v<In, double>) return name == TileName::large;
      return name == TileName::huge || name == TileName::large || name == TileName::medium;
    }

    // Shared memory that a tile may take, whatever the layouts; many devices have less than half of what others have.
    template <class Tile>
    int64_t bytes_of() const {
      using T = typename Core::T;
      constexpr int64_t kPad = std::is_same_v<In, double> ? 0 : 16 / sizeof(T);  // of rows along k
      constexpr int64_t kStage = int64_t{Tile::kM + Tile::kN} * (Tile::kK + kPad) * sizeof(T);
      constexpr int64_t kMerge = Tile::kGroups / 2 * Tile::kM * Tile::kN * int64_t{sizeof(T) + 2};
      const int64_t stages =
          kStage * std::min<int64_t>(ceil_div(ceil_div(q.p.k, Core::kSteps), Tile::kK), Tile::kStages);
      return Tile::kChunk < Tile::kGroupSlots ? stages + kMerge : std::max(stages, kMerge);  // side by side, or in turn
    }
    int64_t shared_bytes(TileName name) const {
      if constexpr (std::is_same_v<In, double>) return bytes_of<TileDouble>();
      switch (name) {
        case TileName::huge:
          return bytes_of<TileHuge>();
        case TileName::large:
          return kArgmax ? bytes_of<TileArgLarge>() : bytes_of<TileLarge>();
        case TileName::square:
          return bytes_of<TileSquare>();
        case TileName::medium:
          return kArgmax ? bytes_of<TileArgMedium>() : bytes_of<TileMedium>();
        case TileName::small:
          return kArgmax ? bytes_of<TileArgSmall>() : bytes_of<TileSmall>();
        case TileName::batch:
          return kArgmax ? bytes_of<TileArgBatch>() : bytes_of<TileBatch>();
        case TileName::tiny:
          return kArgmax ? bytes_of<TileArgTiny>() : bytes_of<TileTiny>();
        case TileName::none:
          break;
      }
      return 0;
    }

    double members(int operand) const {
      double count = 1;
      for (int d = 0; d < q.p.batch.ndim; ++d)
        if (q.p.batch.stride[d][operand] != 0) count *= static_cast<double>(q.p.batch.size[d]);
      return count;
    }

    bool vectors_fit(const void* data, int64_t row, int operand, size_t bytes) const {
      constexpr int64_t kVector = 16 / sizeof(typename Core::T);
      const SlimArgs& p = q.p;
      if (reinterpret_cast<uintptr_t>(data) % (kVector * bytes) != 0 || p.n % kVector != 0 || row % kVector != 0)
        return false;
      for (int d = 0; d < p.batch.ndim; ++d)
        if (p.batch.stride[d][operand] % kVector != 0) return false;
      return true;
    }

    // Where the kernel reads an operand: in place, or a copy made for it.
    void place(const Side& side, bool by_lines, bool by_k, int* facts, const void*& data, int& pitch, int& lines) {
      if (by_lines || by_k) {
        data = side.data;
        pitch = static_cast<int>(by_lines ? side.k : side.line);
        lines = static_cast<int>(side.lines);
      } else {
        int64_t copy_pitch;
        data = copy(side, q.p, facts, copy_pitch);
        lines = pitch = static_cast<int>(copy_pitch);
        copied[side.operand] = true;
      }
    }

    // Copies an operand so that its lines are contiguous; `p` gets the batch strides of the copy.
    const void* copy(const Side& side, SlimArgs& p, int* facts, int64_t& pitch) {
      using T = typename Core::T;
      constexpr int64_t kVector = 16 / sizeof(T);
      PackArgs args{};
      args.from = side.data;
      args.line = side.line, args.k_step = side.k;
      args.lines = side.lines, args.k = side.steps;
      args.line_pitch = ceil_div(side.lines, kVector) * kVector;
      const int64_t slots = ceil_div(side.steps, Core::kSteps);
      args.member_pitch = args.line_pitch * slots;
      args.facts = facts;
      args.batch.count = 1;
      for (int d = p.batch.ndim - 1; d >= 0; --d) {
        int64_t& stride = p.batch.stride[d][side.operand];
        if (stride == 0) continue;
        const int at = args.batch.ndim++;
        args.batch.size[at] = p.batch.size[d];
        args.batch.stride[at][0] = original.batch.stride[d][side.operand];
        stride = args.batch.count * args.member_pitch;
        args.batch.count *= p.batch.size[d];
      }
      // The innermost axis comes last there.
      std::reverse(args.batch.size, args.batch.size + args.batch.ndim);
      std::reverse(args.batch.stride[0], args.batch.stride[0] + args.batch.ndim);
      T* to = call.scratch.template take<T>(args.batch.count * args.member_pitch);
      args.to = to;
      launch<&pack<Core>>(call.target,
                          ceil_div(args.line_pitch, kPackLines) * ceil_div(slots, kPackSlots) * args.batch.count,
                          kPackThreads, 0, args);
      pitch = args.line_pitch;
      return to;
    }

    void start(TileName tile, bool a_k, bool b_k) {
      constexpr auto kLines = Contiguous::lines;
      if constexpr (kPlusFloat) {
        using Steady = FloatCore<S, false>;  // by value: too few stages to change modes
        if constexpr (kArgmax) {
          if (tile == TileName::large) enqueue<Core, TileArgLarge, kLines, kLines>();
          if (tile == TileName::medium) with_layouts<Core, TileArgMedium>(a_k, b_k);
          if (tile == TileName::small) with_layouts<Core, TileArgSmall>(a_k, b_k);
          if (tile == TileName::batch) with_layouts<Steady, TileArgBatch, Track::indices>(a_k, b_k);
          if (tile == TileName::tiny) with_layouts<Steady, TileArgTiny, Track::indices>(a_k, b_k);
        } else {
          if (tile == TileName::huge) enqueue<Core, TileHuge, kLines, kLines>();
          if (tile == TileName::large) enqueue<Core, TileLarge, kLines, kLines>();
          if (tile == TileName::medium) with_layouts<Core, TileMedium>(a_k, b_k);
          if (tile == TileName::small) with_layouts<Core, TileSmall>(a_k, b_k);
          if (tile == TileName::tiny) with_layouts<Steady, TileTiny>(a_k, b_k);
          if (tile == TileName::batch) with_layouts<Steady, TileBatch>(a_k, b_k);
          if (tile == TileName::square) with_layouts<Steady, TileSquare>(a_k, b_k);
        }
      } else if constexpr (std::is_same_v<In, double>) {
        enqueue<Core, TileDouble, kLines, kLines>();
      } else {
        if (tile == TileName::huge) enqueue<Core, TileHuge, kLines, kLines>();
        if (tile == TileName::large) enqueue<Core, TileLarge, kLines, kLines>();
        if (tile == TileName::medium) enqueue<Core, TileMedium, kLines, kLines>();
      }
    }

    template <class C, class Tile, Track kTrack = kArgmax ? Track::chunks : Track::values>
    void with_layouts([[maybe_unused]] bool a_k, [[maybe_unused]] bool b_k) {
      if constexpr (kFewInstances)
        enqueue<C, Tile, Contiguous::lines, Contiguous::lines, kTrack>();
      else if (a_k && b_k)
        enqueue<C, Tile, Contiguous::k, Contiguous::k, kTrack>();
      else if (a_k)
        enqueue<C, Tile, Contiguous::k, Contiguous::lines, kTrack>();
      else if (b_k)
        enqueue<C, Tile, Contiguous::lines, Contiguous::k, kTrack>();
      else
        enqueue<C, Tile, Contiguous::lines, Contiguous::lines, kTrack>();
    }

    template <class C, class Tile, Contiguous kA, Contiguous kB, Track kTrack = kArgmax ? Track::chunks : Track::values>
    void enqueue() {
      const SlimArgs& p = q.p;
      using Loop = Mainloop<C, Tile, kA, kB, kTrack>;
      launch<&fast_product<C, Tile, kA, kB, kTrack>>(call.target,
                                                     ceil_div(p.m, Tile::kM) * ceil_div(p.n, Tile::kN) * p.batch.count,
                                                     Tile::kThreads, Loop::shared_bytes(q.k), q);
      if constexpr (kTrack == Track::chunks) finish<Tile::kChunk>();
    }

    // The recovery pass reads both operands along k: in place, or a copy where the loop made none.
    template <int kChunk>
    void finish() {
      SlimArgs r = original;
      const auto along_k = [&](const Side& side, const void*& data, int64_t& line, int64_t& k) {
        if (side.k == 1 || copied[side.operand]) return;
        const Side turned{side.data, side.k, side.line, side.steps, side.lines, side.operand};
        data = copy(turned, r, nullptr, line);
        k = 1;
      };
      const Side a = side_a(), b = side_b();
      along_k(a, r.a, r.a_row, r.a_col);
      along_k(b, r.b, r.b_col, r.b_row);
      const Side ra{r.a, r.a_row, r.a_col, r.m, r.k, 0}, rb{r.b, r.b_col, r.b_row, r.n, r.k, 1};
      const bool vectors = ra.k_contiguous(r.batch, 4, sizeof(float)) && rb.k_contiguous(r.batch, 4, sizeof(float));
      const int64_t blocks = ceil_div(r.m, 8) * ceil_div(r.n, 32) * r.batch.count;
      if (vectors)
        launch<&recover<Core, kChunk, true>>(call.target, blocks, 256, 0, r, q.found);
      else
        launch<&recover<Core, kChunk, false>>(call.target, blocks, 256, 0, r, q.found);
    }

    Side side_a() const { return {original.a, original.a_row, original.a_col, original.m, original.k, 0}; }
    Side side_b() const { return {original.b, original.b_col, original.b_row, original.n, original.k, 1}; }

    const SlimArgs original;
    FastArgs q;
    Call& call;
    bool copied[2] = {};
  };
};

}  // namespace tropical::cuda
