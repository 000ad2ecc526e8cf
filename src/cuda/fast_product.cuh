// From params to launches of the fast kernels: which operands are copied, what follows.
#pragma once
#include "fast.cuh"
#include "generic.cuh"
#include "heuristics.h"
#include "launch.cuh"
#include "side.h"
#include "small.cuh"
#include "tile_choice.cuh"

namespace tropical::cuda {

template <class S, class In, bool kArgmax>
class FastProduct {
  using Tiles = FastTiles<S, In, kArgmax>;
  using Core = typename Tiles::Core;
  static constexpr bool kPlusFloat = Tiles::kPlusFloat;

 public:
  // Returns whether it took the product. With `facts` set the generic kernel has to follow, for data that the fast one
  // leaves alone.
  static bool run(const ProductArgs& args, Call& call, const int*& facts) {
    if constexpr (Tiles::kExists) {
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
                                                            nullptr, call.done);
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
      const auto lie = [&](const Side& side) {
        const bool lines = kDirect && narrow_pitch(side.k) && side.lines_contiguous(p.batch, kVector, sizeof(In));
        return Lie{lines,
                   kDirect && narrow_pitch(side.line) && !lines && side.k_contiguous(p.batch, kVector, sizeof(In))};
      };
      Lie lie_a = lie(a), lie_b = lie(b);
      const TileName tile = Tiles::choose(p, lie_a, lie_b, *call.target.facts);
      if (tile == TileName::none) return false;
      if (!Tiles::takes_k(tile)) lie_a.k = lie_b.k = false;
      int* flags = nullptr;
      if constexpr (Core::kFlagged) {
        flags = call.scratch.template take<int>(2);
        if (!call.target.dry) TG_CUDA_CHECK(cudaMemsetAsync(flags, 0, 2 * sizeof(int), call.target.stream));
      }
      q.k = static_cast<int>(ceil_div(p.k, Core::kSteps));
      place(a, lie_a, flags, q.a, q.a_pitch, q.a_lines);
      place(b, lie_b, flags ? flags + 1 : nullptr, q.b, q.b_pitch, q.b_lines);
      q.facts = flags;
      q.done = call.done;
      q.vectors = !p.accumulate && p.c_col == 1 && vectors_fit(p.c, p.c_row, 2, sizeof(In)) &&
                  (!kArgmax || (p.argmax_col == 1 && vectors_fit(p.argmax, p.argmax_row, 3, sizeof(int32_t))));
      if (kArgmax && Tiles::most_kept_k(tile) == 0) {
        const int64_t count = p.batch.count * p.m * p.n;
        q.found.values = call.scratch.template take<float>(count);
        q.found.ids = call.scratch.template take<uint16_t>(count);
      }
      Tiles::with(tile, lie_a.k, lie_b.k, [&]<class C, class Tile, Contiguous kA, Contiguous kB, Track kTrack>() {
        enqueue<C, Tile, kA, kB, kTrack>();
      });
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
      const auto with = [&]<bool kPlain>() {
        launch<&small_product<FloatCore<S, false>, Tile, kArgmax, kPlain>>(
            call.target, ceil_div(p.batch.count, Tile::kMatrices), Tile::kWarps * 32, Tile::kSharedBytes, s);
      };
      if (s.vectors_a && s.vectors_b && s.vectors_c && p.batch.ndim <= 1)
        with.template operator()<true>();
      else
        with.template operator()<false>();
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
    void place(const Side& side, Lie lie, int* facts, const void*& data, int& pitch, int& lines) {
      if (lie.lines || lie.k) {
        data = side.data;
        pitch = static_cast<int>(lie.lines ? side.k : side.line);
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
      args.done = call.done;
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

    template <class C, class Tile, Contiguous kA, Contiguous kB, Track kTrack>
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
        launch<&recover<Core, kChunk, true>>(call.target, blocks, 256, 0, r, q.found, call.done);
      else
        launch<&recover<Core, kChunk, false>>(call.target, blocks, 256, 0, r, q.found, call.done);
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
