// From params to rectangles: orientation, paths, and the division of work among threads.
#include "cpu/backend.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cpu/filtered.h"
#include "cpu/loops.h"
#include "cpu/scan.h"
#include "cpu/small.h"
#include "parallel.h"
#include "rearrange.h"
#include "tropical_gemm/error.h"
#include "visit.h"

namespace tropical::cpu {
namespace {

// As many candidates a task should hold.
constexpr double kTaskWork = 1 << 21;
constexpr int kTasksPerThread = 4;
// Many parts of few panels, so that threads end together: with 4 a thread, two threads were 1.8 times as fast as one.
constexpr int kColumnPartsPerThread = 16;
// Small products that are computed and looked at together: their elements stay in L1.
constexpr int64_t kGroupElements = 4096;

// Where the members of a batch lie, one after the other.
class BatchCursor {
 public:
  BatchCursor(const MatmulParams& p, int64_t first) : p_(p) {
    for (int d = p.batch.ndim - 1; d >= 0; --d) {
      index_[d] = first % p.batch.size[d];
      first /= p.batch.size[d];
      for (int o = 0; o < 4; ++o) offset_[o] += index_[d] * operand(o).batch[d];
    }
  }
  // Moves on by `steps` members, at most run().
  void next(int64_t steps = 1) {
    for (int d = p_.batch.ndim - 1; d >= 0; --d) {
      index_[d] += steps;
      const bool carry = index_[d] == p_.batch.size[d];
      if (carry) steps -= p_.batch.size[d];
      for (int o = 0; o < 4; ++o) offset_[o] += steps * operand(o).batch[d];
      if (!carry) return;
      index_[d] = 0;
      steps = 1;
    }
  }
  // How many members from here on lie step() apart.
  int64_t run() const {
    const int d = p_.batch.ndim - 1;
    return d < 0 ? 1 : p_.batch.size[d] - index_[d];
  }
  static int64_t step(const MatmulParams& p, const Operand& x) { return p.batch.ndim ? x.batch[p.batch.ndim - 1] : 0; }
  int64_t a() const { return offset_[0]; }
  int64_t b() const { return offset_[1]; }
  int64_t c() const { return offset_[2]; }
  int64_t argmax() const { return offset_[3]; }

 private:
  const Operand& operand(int o) const { return o == 0 ? p_.a : o == 1 ? p_.b : o == 2 ? p_.c : p_.argmax; }
  const MatmulParams& p_;
  int64_t index_[kMaxBatchDims] = {};
  int64_t offset_[4] = {};
};

// One product of a batch from its data to its result. `run` computes a Product and tells whether it saw only finite
// elements: on one thread or on many.
class Member {
 public:
  Member(const MatmulParams& p, FilterTally& tally) : p_(p), item_(0) {
    visit_dtype(p.dtype, [&]<class In>() {
      item_ = sizeof(In);
      is_float_ = is_float_v<In>;
    });
    new_values_ = false;
    visit_semiring(p.semiring, [&]<class S>() { new_values_ = makes_new_values_v<S>; });
    base_.m = p.m, base_.n = p.n, base_.k = p.k;
    base_.a_row = p.a.row, base_.a_col = p.a.col;
    base_.b_row = p.b.row, base_.b_col = p.b.col;
    base_.c_row = p.c.row, base_.c_col = p.c.col;
    base_.argmax_row = p.argmax.row, base_.argmax_col = p.argmax.col;
    base_.accumulate = p.accumulate;
    base_.index_offset = p.argmax_offset;
    base_.cancel = p.cancel;
    // Columns of one element are contiguous whatever their stride.
    if (base_.n == 1) base_.b_col = base_.c_col = base_.argmax_col = 1;
    if (base_.k == 1) base_.a_col = 1;
    base_.kernels = kernels(Path::plain);
    base_.filter = choose_filter(p);
    base_.filtering = p.filtering;
    base_.tally = &tally;
    if (base_.filter) tally.passes = filter_passes(p.k);
  }

  Product at(const BatchCursor& cursor) const {
    Product q = base_;
    q.a = static_cast<const char*>(p_.a.data) + cursor.a() * item_;
    q.b = static_cast<const char*>(p_.b.data) + cursor.b() * item_;
    q.c = static_cast<char*>(p_.c.data) + cursor.c() * item_;
    if (p_.argmax.data) q.argmax = static_cast<int32_t*>(p_.argmax.data) + cursor.argmax();
    return q;
  }

  bool is_float() const { return is_float_; }
  bool filters() const { return base_.filter; }
  // Integers under + and *, and floats whose indices must not be touched twice, are looked at before the first write.
  bool looks_first() const { return is_float_ ? p_.accumulate && p_.argmax.data : new_values_; }

  template <class Run>
  void compute(Product q, Run run) const {
    if (looks_first()) {
      const auto [a, b] = facts(q);
      const Path path = !is_float_                                       ? integer_path(p_.semiring, p_.dtype, a, b)
                        : a.nan || b.nan || makes_nan(p_.semiring, a, b) ? Path::careful
                                                                         : Path::plain;
      q.kernels = kernels(path);
      if (path != Path::plain) q.filter = nullptr;
      run(q);
      return;
    }
    q.check_finite = is_float_;
    if (!run(q)) mend(q, run);
  }

  // After a plain product that met infinities or NaN: nothing to do, a few rows and columns to set, or all anew.
  template <class Run>
  void mend(Product q, Run run) const {
    const auto [a, b] = facts(q);
    q.check_finite = false;
    q.filter = nullptr;
    if (makes_nan(p_.semiring, a, b)) {
      q.kernels = kernels(Path::careful);
      run(q);
    } else if (a.nan || b.nan) {
      spread_nan(q, p_.dtype);
    }
  }

 private:
  const Kernels* kernels(Path path) const {
    const Kernels* q = find_kernels(p_.semiring, p_.dtype, path, p_.argmax.data != nullptr);
    return q ? q : find_kernels(p_.semiring, p_.dtype, Path::wide, p_.argmax.data != nullptr);
  }
  std::pair<Facts, Facts> facts(const Product& q) const {
    return {facts(q, q.a_source(0, q.m, 0, q.k)), facts(q, q.b_source(0, q.k, 0, q.n))};
  }
  // By parts, between which a cancellation is heard; lines that repeat are looked at once.
  static Facts facts(const Product& q, Source x) {
    constexpr int64_t kPart = 1 << 24;
    if (x.row == 0) x.rows = 1;
    if (x.col == 0) x.cols = 1;
    const int64_t step = std::max<int64_t>(1, kPart / x.cols);
    Facts all;
    for (; x.rows > 0; x.rows -= step) {
      if (q.cancel.raised()) throw Error(ErrorCode::cancelled, "the product was cancelled by its caller");
      Source part = x;
      part.rows = std::min(step, x.rows);
      all |= q.kernels->facts(part);
      x.data = static_cast<const char*>(x.data) + step * x.row * q.kernels->in_bytes;
    }
    return all;
  }

  const MatmulParams& p_;
  Product base_;
  int64_t item_;
  bool is_float_ = false;
  bool new_values_ = false;
};

bool run_plain(const Product& q) { return run_rectangle(q, {0, q.m, 0, q.lanes()}); }

bool run_serial(const Product& q) { return q.filter ? run_filtered(q, 1, run_plain) : run_plain(q); }

// Cuts C into rectangles: columns first, in whole panels, as each rectangle packs the panels of B that it needs; rows
// where there are too few panels.
bool run_parallel(const Product& q, int threads) {
  if (q.filter) return run_filtered(q, threads, [&](const Product& plain) { return run_parallel(plain, threads); });
  const TileFamily& f = q.argmax ? q.kernels->chunked : q.kernels->values;
  const int64_t panel = int64_t{f.lanes} * f.max_vectors;
  const int64_t panels = ceil_div(q.lanes(), panel);
  const double work = static_cast<double>(q.m) * static_cast<double>(q.n) * static_cast<double>(q.k);
  const auto parts = [&](int per_thread) {
    return std::clamp<int64_t>(static_cast<int64_t>(work / kTaskWork), threads, int64_t{threads} * per_thread);
  };
  const int64_t across = std::min(parts(kColumnPartsPerThread), panels);
  const int64_t down = std::min(ceil_div(parts(kTasksPerThread), across), ceil_div(q.m, kMaxTileRows));
  std::atomic<bool> finite{true};
  parallel_for(across * down, threads, [&](int64_t task, int) {
    const int64_t i = task / across, j = task % across;
    const Rectangle r{q.m * i / down, q.m * (i + 1) / down, panels * j / across * panel,
                      std::min(panels * (j + 1) / across * panel, q.lanes())};
    if (!run_rectangle(q, r)) finite = false;
  });
  return finite;
}

// Whether all elements of `count` matrices are finite that lie `step` elements apart. Matrices without gaps between
// them are looked at as one.
bool all_finite(const Product& q, Source x, int64_t count, int64_t step) {
  if (step == 0) count = 1;
  if (step == x.rows * x.row) {
    x.rows *= count;
    count = 1;
  } else if (step == x.cols * x.col) {
    x.cols *= count;
    count = 1;
  }
  bool finite = true;
  for (; count > 0; --count) {
    finite &= q.kernels->finite(x);
    x.data = static_cast<const char*>(x.data) + step * q.kernels->in_bytes;
  }
  return finite;
}

// Members [first, last) of the batch on this thread.
void run_members(const MatmulParams& p, const Member& member, int64_t first, int64_t last) {
  BatchCursor cursor(p, first);
  const SmallPlan plan(member.at(cursor));
  if (!plan || member.looks_first() || member.filters()) {
    for (int64_t g = first; g < last; ++g, cursor.next()) member.compute(member.at(cursor), run_serial);
    return;
  }
  const int64_t a_step = BatchCursor::step(p, p.a), b_step = BatchCursor::step(p, p.b);
  const int64_t group = std::max<int64_t>(1, kGroupElements / (p.m * p.k + p.k * p.n + p.m * p.n));
  for (int64_t g = first; g < last;) {
    if (p.cancel.raised()) throw Error(ErrorCode::cancelled, "the product was cancelled by its caller");
    const int64_t count = std::min({group, cursor.run(), last - g});
    const Product q = member.at(cursor);
    plan.run(q.a, q.b, q.c, count, a_step, b_step, BatchCursor::step(p, p.c));
    g += count;
    if (!member.is_float() || (all_finite(q, q.a_source(0, q.m, 0, q.k), count, a_step) &&
                               all_finite(q, q.b_source(0, q.k, 0, q.n), count, b_step))) {
      cursor.next(count);
    } else {
      for (int64_t one = 0; one < count; ++one, cursor.next()) member.mend(member.at(cursor), run_serial);
    }
  }
}

// K = 0: the zero of the semiring everywhere, nothing selected.
void fill_zero(const MatmulParams& p) {
  if (p.accumulate) return;
  visit(p.semiring, p.dtype, [&]<class S, class T>() {
    BatchCursor cursor(p, 0);
    for (int64_t g = 0; g < p.batch.count(); ++g, cursor.next())
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
          static_cast<T*>(p.c.data)[cursor.c() + i * p.c.row + j * p.c.col] = S::template zero<T>();
          if (p.argmax.data)
            static_cast<int32_t*>(p.argmax.data)[cursor.argmax() + i * p.argmax.row + j * p.argmax.col] = -1;
        }
  });
}

void run(const MatmulParams& params, FilterTally& tally) {
  const int64_t batches = params.batch.count();
  if (params.m == 0 || params.n == 0 || batches == 0) return;
  if (params.k == 0) return fill_zero(params);
  const MatmulParams p = oriented(params);
  const Member member(p, tally);
  const double each = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const double work = each * static_cast<double>(batches);
  const int threads = work < kProductThreadWork ? 1 : thread_count(p.threads);
  if (threads == 1) return run_members(p, member, 0, batches);
  if (batches < int64_t{threads} * kTasksPerThread && each > kProductThreadWork) {
    BatchCursor cursor(p, 0);
    for (int64_t g = 0; g < batches; ++g, cursor.next())
      member.compute(member.at(cursor), [&](const Product& q) { return run_parallel(q, threads); });
    return;
  }
  const int64_t tasks = std::clamp<int64_t>(static_cast<int64_t>(work / kTaskWork), threads,
                                            std::min<int64_t>(batches, int64_t{threads} * 16));
  parallel_for(tasks, threads, [&](int64_t task, int) {
    run_members(p, member, batches * task / tasks, batches * (task + 1) / tasks);
  });
}

}  // namespace

void matmul(const MatmulParams& params) {
  filter_report() = {};
  FilterTally tally;
  run(params, tally);
  // Parts of an output, in passes over k: what is not proved is not rounded away.
  const int64_t filtered = tally.filtered / tally.passes;
  filter_report() = {params.m * params.n * params.batch.count(), filtered,
                     std::min(filtered, ceil_div(tally.unproven.load(), tally.passes))};
}

}  // namespace tropical::cpu
