// From params to launches of the generic kernel, and the choice between it and the fast ones.
#pragma once
#include <cstdlib>
#include <utility>

#include "fast_product.cuh"
#include "filter.h"
#include "generic.cuh"
#include "heuristics.h"
#include "launch.cuh"
#include "product.h"
#include "rearrange.h"
#include "thin.cuh"

namespace tropical::cuda {

inline ProductArgs product_args(const MatmulParams& p) {
  ProductArgs q{};
  q.a = p.a.data, q.b = p.b.data, q.c = p.c.data;
  q.argmax = static_cast<int32_t*>(p.argmax.data);
  q.m = p.m, q.n = p.n, q.k = p.k;
  q.a_row = p.a.row, q.a_col = p.a.col;
  q.b_row = p.b.row, q.b_col = p.b.col;
  q.c_row = p.c.row, q.c_col = p.c.col;
  q.argmax_row = p.argmax.row, q.argmax_col = p.argmax.col;
  q.batch = collapse<4>(p.batch, {&p.a, &p.b, &p.c, &p.argmax});
  q.argmax_offset = static_cast<int32_t>(p.argmax_offset);
  q.accumulate = p.accumulate;
  return q;
}

// `facts`: see generic_product.
template <class S, class In, bool kArgmax>
void generic(const ProductArgs& args, Call& call, const int* facts) {
  using L = Generic<S, In, kArgmax>;
  using Tile = GenericTile;
  const int64_t tiles = ceil_div(args.m, Tile::kM) * ceil_div(args.n, Tile::kN) * args.batch.count;
  Partial<typename L::T> partial;
  partial.splits = split_count(tiles, args.k, *call.target.facts);
  if (partial.splits > 1) {
    const int64_t count = partial.splits * args.batch.count * args.m * args.n;
    partial.values = call.scratch.template take<typename L::T>(count);
    if (kArgmax) partial.index = call.scratch.template take<int32_t>(count);
  }
  launch<&generic_product<L, kArgmax, Tile>>(call.target, tiles * partial.splits, Tile::kThreads, 0, args, partial,
                                             facts, call.done);
  if (partial.splits > 1)
    launch<&merge_splits<L, kArgmax>>(call.target, ceil_div(args.batch.count * args.m * args.n, 32), 256, 0, args,
                                      partial, facts, call.done);
}

// C = A B is Ct = Bt At.
inline ProductArgs turned(const ProductArgs& p) {
  ProductArgs q = p;
  q.a = p.b, q.b = p.a, q.m = p.n, q.n = p.m;
  q.a_row = p.b_col, q.a_col = p.b_row, q.b_row = p.a_col, q.b_col = p.a_row;
  std::swap(q.c_row, q.c_col), std::swap(q.argmax_row, q.argmax_col);
  for (int d = 0; d < p.batch.ndim; ++d) std::swap(q.batch.stride[d][0], q.batch.stride[d][1]);
  return q;
}

// Few rows or few columns of enough work each: true if it ran.
template <class S, class In, bool kArgmax>
bool thin(const ProductArgs& args, Call& call) {
  using L = Generic<S, In, kArgmax>;
  constexpr int64_t kFew = 7, kMany = 128;
  if (std::min(args.m, args.n) > kFew || args.k < 32 || std::max({args.m, args.n, args.k}) < kMany) return false;
  const ProductArgs p = args.m <= args.n ? args : turned(args);
  const bool along_k = p.n < 32 || std::abs(p.b_row) < std::abs(p.b_col);
  const int64_t tiles = ceil_div(p.n, ThinTile::columns(along_k)) * ceil_div(p.m, ThinTile::kRows) * p.batch.count;
  constexpr int64_t kBlocks = 8;  // on a multiprocessor, so that enough of B is on its way
  Partial<typename L::T> partial;
  partial.splits = std::clamp<int64_t>(kBlocks * call.target.facts->multiprocessors / tiles, 1,
                                       ceil_div(p.k, along_k ? 4 * ThinTile::kK : ThinTile::kK));
  if (partial.splits > 1) {
    const int64_t count = partial.splits * p.batch.count * p.m * p.n;
    partial.values = call.scratch.template take<typename L::T>(count);
    if (kArgmax) partial.index = call.scratch.template take<int32_t>(count);
  }
  launch<&thin_product<L, kArgmax>>(call.target, tiles * partial.splits, ThinTile::kThreads, 0, p, partial, along_k);
  if (partial.splits > 1)
    launch<&merge_splits<L, kArgmax>>(call.target, ceil_div(p.batch.count * p.m * p.n, 32), 256, 0, p, partial, nullptr,
                                      call.done);
  return true;
}

template <class S, class In, bool kArgmax>
void fast_or_generic(const ProductArgs& args, Call& call) {
  const int* facts = nullptr;
  if (FastProduct<S, In, kArgmax>::run(args, call, facts) && !facts) return;
  generic<S, In, kArgmax>(args, call, facts);
}

// Through cheap bounds, one member of the batch after the other, all with the same scratch memory from `start` on. The
// plain kernels follow for data that it leaves to them.
template <class S, class In, bool kArgmax>
void filtered(const ProductArgs& args, const MatmulParams& p, const Scratch& start, Call& call) {
  for (int64_t member = 0; member < args.batch.count; ++member) {
    int64_t offset[4];
    args.batch.offsets(member, offset);
    ProductArgs one = args;
    one.batch = {};
    one.a = static_cast<const In*>(args.a) + offset[0], one.b = static_cast<const In*>(args.b) + offset[1];
    one.c = static_cast<In*>(args.c) + offset[2];
    if (kArgmax) one.argmax += offset[3];
    Call own{call.target, start};
    Scratch bounds = start;
    own.done = filter_product<S, In, kArgmax>(one, p.filtering, p.filter_counts, own, bounds);
    fast_or_generic<S, In, kArgmax>(one, own);
    call.scratch.reach(std::max(bounds.used(), own.scratch.used()));
  }
}

template <class S, class In, bool kArgmax>
void product_as(const MatmulParams& p, Call& call) {
  ProductArgs args = product_args(p);
  // A few rows or columns beyond whole tiles would cost tiles, and a wave of blocks more, of their own.
  constexpr int64_t kTile = 128, kFew = 8, kLarge = 1024;
  const bool worth = args.batch.count == 1 && std::min({args.m, args.n, args.k}) >= kLarge;
  const int64_t rows = worth && args.m % kTile <= kFew ? args.m % kTile : 0;
  const int64_t cols = worth && args.n % kTile <= kFew ? args.n % kTile : 0;
  const Scratch start = call.scratch;
  const auto part = [&](const auto& self, int64_t i, int64_t m, int64_t j, int64_t n) -> void {
    ProductArgs q = args;
    q.m = m, q.n = n;
    q.a = static_cast<const Stored<In>*>(args.a) + i * args.a_row;
    q.b = static_cast<const Stored<In>*>(args.b) + j * args.b_col;
    q.c = static_cast<Stored<In>*>(args.c) + i * args.c_row + j * args.c_col;
    if (kArgmax) q.argmax = args.argmax + i * args.argmax_row + j * args.argmax_col;
    if constexpr (is_filtered_v<S, In>) {
      if (filter_applies<In>(q, p.filtering, call.target)) {
        constexpr int64_t kLeastHalved = 8192;
        if (p.filtering != Filtering::automatic || filter_fits<In>(q, call.target))
          return filtered<S, In, kArgmax>(q, p, start, call);
        // Bounds that take too much memory are made for a part of the product at a time.
        const auto half = [](int64_t size) { return ceil_div(size / 2, kTile) * kTile; };
        if (m >= n && m >= kLeastHalved)
          return self(self, i, half(m), j, n), self(self, i + half(m), m - half(m), j, n);
        if (n >= kLeastHalved) return self(self, i, m, j, half(n)), self(self, i, m, j + half(n), n - half(n));
      }
    }
    if (!thin<S, In, kArgmax>(q, call)) fast_or_generic<S, In, kArgmax>(q, call);
  };
  part(part, 0, args.m - rows, 0, args.n - cols);
  if (rows) part(part, args.m - rows, rows, 0, args.n);
  if (cols) part(part, 0, args.m - rows, args.n - cols, cols);
}

template <class S, class In>
void product(const MatmulParams& params, Call& call) {
  if (params.m == 0 || params.n == 0 || params.batch.count() == 0) return;
  if (params.k == 0 && params.accumulate) return;
  const MatmulParams p = oriented(params);
  if (p.argmax.data)
    product_as<S, In, true>(p, call);
  else
    product_as<S, In, false>(p, call);
}

}  // namespace tropical::cuda
