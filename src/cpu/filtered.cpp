#include "cpu/filtered.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "cpu/backend.h"
#include "cpu/filter_kernels.h"
#include "parallel.h"
#include "tropical_gemm/error.h"

namespace tropical::cpu {
namespace {

// A pass over k: its panel of B, three times, stays in the caches, and the number of a chunk fits in 16 bits.
constexpr int64_t kPassSteps = 8192;
static_assert(kPassSteps / kFilterChunk <= 32767);
// Rows of A at a time, for all panels and threads: about so many bytes, but not so few rows that preparing B for each
// block counts. Settling reads elements of A here and there, which takes longer where they lie in memory.
constexpr int64_t kBlockBytes = int64_t{16} << 20;
constexpr int64_t kBlockRows = 1024;
constexpr int64_t kPreparedRows = 32;  // at a time by a thread
// Outputs sampled for the unit: rows by columns in each of some places.
constexpr int64_t kPlaces = 4, kSampledRows = 8, kSampledColumns = 8;

// The workspace of the calling thread is taken by its tasks; this one holds what they share.
Workspace& shared_workspace() {
  thread_local Workspace workspace;
  return workspace;
}

// The least power of two that is at least x; 0 for 0. By exponents, as a logarithm may be rounded.
double power_above(double x) {
  const double power = std::ldexp(1.0, std::ilogb(x));
  return power < x ? 2 * power : power;
}

// How much rescanning is worth while, in steps of rescan(): more than a plain product would take, and it gives up.
class Budget {
 public:
  // A step is about a cycle. Filtering an output saves about a sixteenth of k of them with float64 values, twice that
  // with argmax, and a forty-eighth with float32 (Zen 4). What is free besides is at most a percent of the product.
  Budget(int64_t outputs, int64_t k, int item, bool argmax)
      : per_output_(static_cast<double>(k) / (item == 4 ? 48 : 8 * (argmax ? 1 : 2))),
        free_(std::min(1e5, static_cast<double>(outputs) * per_output_ / 100)) {}

  // Counts; returns whether to go on.
  bool spend(int64_t work, int64_t outputs) {
    const int64_t w = work_.fetch_add(work, std::memory_order_relaxed) + work;
    const int64_t o = outputs_.fetch_add(outputs, std::memory_order_relaxed) + outputs;
    return static_cast<double>(w) <= free_ + static_cast<double>(o) * per_output_;
  }

 private:
  const double per_output_, free_;
  std::atomic<int64_t> work_{0}, outputs_{0};
};

// One pass over k: all rows and columns over its steps.
class Pass {
 public:
  Pass(const Product& product, int threads, const std::function<bool(const Product&)>& plain)
      : p_(product),
        f_(*product.filter),
        q_(*product.kernels),
        plain_(plain),
        threads_(threads),
        gives_up_(product.filtering == Filtering::automatic),
        columns_(f_.columns),
        panels_(ceil_div(p_.n, columns_)),
        steps_(round_up(p_.k, kFilterChunk)),
        a_ld_(steps_ + kFilterChunk),  // rows do not share a set of L1
        rows_(std::min(p_.m, std::max(kBlockBytes / (p_.k * q_.bytes), kBlockRows))),
        budget_(p_.m * p_.n, p_.k, q_.bytes, p_.argmax != nullptr),
        scope_(shared_workspace(), static_cast<size_t>(rows_ * a_ld_) * sizeof(int16_t) +
                                       static_cast<size_t>(rows_) * sizeof(double) + 2 * Workspace::kAlignment) {
    a_low_ = scope_.take<int16_t>(static_cast<size_t>(rows_ * a_ld_));
    row_best_ = scope_.take<double>(static_cast<size_t>(rows_));
  }

  // Returns whether all of it could be filtered, apart from what plain_ computed of it.
  bool run() {
    if (!choose_unit()) return finite_ = plain_(unfiltered(p_)), false;
    for (int64_t i = 0; i < p_.m; i += rows_) {
      const int64_t end = std::min(i + rows_, p_.m);
      if (going_ && prepare_rows(i, end)) {
        run_block(i, end);
      } else {
        going_ = false;
        rest({i, end, 0, p_.n});
      }
    }
    return going_;
  }
  bool finite() const { return finite_; }

 private:
  static Product unfiltered(Product p) {
    p.filter = nullptr;
    return p;
  }
  void check_cancelled() const {
    if (p_.cancel.raised()) throw Error(ErrorCode::cancelled, "the product was cancelled by its caller");
  }
  size_t item() const { return static_cast<size_t>(q_.bytes); }

  // Rows [i, i + count) of A, contiguous along k: in place or in `packed`.
  const char* rows_of_a(int64_t i, int64_t count, char* packed, int64_t* ld) const {
    const Source a = p_.a_source(i, count, 0, p_.k);
    *ld = p_.a_row;
    if (p_.a_col == 1) return static_cast<const char*>(a.data);
    *ld = p_.k;
    q_.pack_a(a, packed, p_.k);
    return packed;
  }

  // g: such that the sampled winners, and others a quarter further from the best of their row and column, are in range.
  bool choose_unit() {
    const WorkspaceScope scope(Workspace::local(),
                               static_cast<size_t>(p_.k) * item() * (1 + kSampledColumns) + 4 * Workspace::kAlignment);
    char* row = Workspace::local().take<char>(static_cast<size_t>(p_.k) * item());
    char* panel = Workspace::local().take<char>(static_cast<size_t>(p_.k) * kSampledColumns * item());
    double farthest = 0;
    for (int64_t place = 0; place < kPlaces; ++place) {
      const int64_t j = p_.n * (2 * place + 1) / (2 * kPlaces), cols = std::min(kSampledColumns, p_.n - j);
      double column_best[kSampledColumns], best[kSampledColumns];
      q_.pack_b(p_.b_source(0, p_.k, j, cols), panel, kSampledColumns);
      if (!f_.best_of_columns(panel, static_cast<int>(kSampledColumns), p_.k, column_best)) return false;
      for (int64_t s = 0; s < kSampledRows; ++s) {
        const int64_t i = (p_.m * (2 * s + 1) / (2 * kSampledRows) + place * 7) % p_.m;
        int64_t ld = 0;
        double row_best = 0;
        const char* a = rows_of_a(i, 1, row, &ld);
        if (!f_.best_of_line(a, p_.k, &row_best)) return false;
        f_.sample(a, 1, panel, p_.k, best);
        for (int64_t c = 0; c < cols; ++c) {
          const double distance = row_best + column_best[c] - best[c];
          if (std::isfinite(distance)) farthest = std::max(farthest, distance);
        }
      }
    }
    if (farthest > 0) unit_ = power_above(farthest / -kFilterFloor * 1.25);
    return unit_ <= kFilterRange && unit_ >= 1 / kFilterRange;
  }

  // False if an element of these rows cannot be filtered.
  bool prepare_rows(int64_t i0, int64_t i1) {
    std::atomic<bool> usable{true};
    parallel_for(ceil_div(i1 - i0, kPreparedRows), threads_, [&](int64_t task, int) {
      if (!usable) return;
      const int64_t first = i0 + task * kPreparedRows, count = std::min(kPreparedRows, i1 - first);
      const size_t bytes = p_.a_col == 1 ? 0 : static_cast<size_t>(count * p_.k) * item();
      const WorkspaceScope scope(Workspace::local(), bytes + Workspace::kAlignment);
      int64_t ld = 0;
      const char* a = rows_of_a(first, count, Workspace::local().take<char>(bytes), &ld);
      for (int64_t i = 0; i < count; ++i, a += ld * q_.bytes) {
        double& best = row_best_[first - i0 + i];
        if (!f_.best_of_line(a, p_.k, &best)) usable = false;
        f_.lower_line(a, p_.k, best, unit_, a_low_ + (first - i0 + i) * a_ld_);
      }
    });
    return usable;
  }

  // Rows [i0, i1), which are prepared: panel by panel, and in parts where there are few panels.
  void run_block(int64_t i0, int64_t i1) {
    const int64_t parts =
        threads_ == 1 ? 1
                      : std::clamp<int64_t>(ceil_div(int64_t{threads_} * 4, panels_), 1, ceil_div(i1 - i0, kPartRows));
    const auto at = [&](int64_t part) { return i0 + (i1 - i0) * part / parts; };
    std::vector<int64_t> done(static_cast<size_t>(panels_ * parts));  // the first row that is not
    std::atomic<bool> going{true};
    parallel_for(panels_ * parts, threads_, [&](int64_t task, int) {
      const int64_t panel = task / parts, part = task % parts;
      int64_t& row = done[static_cast<size_t>(task)] = at(part);
      if (!going) return;
      row = run_panel(panel, at(part), at(part + 1), i0, going);
    });
    // Whole columns that nothing was done of are one plain product, however many they are.
    int64_t whole = panels_;
    const auto untouched = [&](int64_t panel) {
      for (int64_t part = 0; part < parts; ++part)
        if (done[static_cast<size_t>(panel * parts + part)] != at(part)) return false;
      return true;
    };
    while (whole > 0 && untouched(whole - 1)) --whole;
    for (int64_t panel = 0; panel < whole; ++panel)
      for (int64_t part = 0; part < parts; ++part)
        rest({done[static_cast<size_t>(panel * parts + part)], at(part + 1), panel * columns_,
              std::min((panel + 1) * columns_, p_.n)});
    rest({i0, i1, whole * columns_, p_.n});
    if (!going) going_ = false;
  }

  // What is left of a rectangle, here of columns.
  void rest(const Rectangle& r) {
    if (r.i0 >= r.i1 || r.j0 >= r.j1) return;
    Product p = unfiltered(p_);
    p.a += r.i0 * p.a_row * q_.in_bytes;
    p.b += r.j0 * p.b_col * q_.in_bytes;
    p.c += (r.i0 * p.c_row + r.j0 * p.c_col) * q_.in_bytes;
    if (p.argmax) p.argmax += r.i0 * p.argmax_row + r.j0 * p.argmax_col;
    p.m = r.i1 - r.i0;
    p.n = r.j1 - r.j0;
    finite_ &= plain_(p);
  }

  // A panel of columns, rows [i0, i1); `base` is the first prepared row. Returns the row it reached.
  int64_t run_panel(int64_t panel, int64_t i0, int64_t i1, int64_t base, std::atomic<bool>& going) {
    const int64_t j = panel * columns_;
    const int cols = static_cast<int>(std::min(columns_, p_.n - j));
    const auto outputs = static_cast<size_t>(kFilterMaxRows * columns_);
    const auto low = static_cast<size_t>(steps_ * columns_);
    const size_t wide = static_cast<size_t>(p_.k * columns_) * item();
    WorkspaceScope w(Workspace::local(),
                     wide + 2 * low * sizeof(int16_t) + outputs * (3 * sizeof(int16_t) + 2 * sizeof(double)) +
                         static_cast<size_t>(columns_) * sizeof(double) + 9 * Workspace::kAlignment);
    char* b = w.take<char>(wide);
    int16_t* b_low = w.take<int16_t>(low);
    int16_t* b_by_column = w.take<int16_t>(low);
    int16_t* best = w.take<int16_t>(outputs);
    int16_t* second = w.take<int16_t>(outputs);
    int16_t* ids = w.take<int16_t>(outputs);
    char* values = w.take<char>(outputs * sizeof(double));
    char* index = w.take<char>(outputs * sizeof(double));
    double* column_bests = w.take<double>(static_cast<size_t>(columns_));

    q_.pack_b(p_.b_source(0, p_.k, j, cols), b, columns_);
    if (!f_.best_of_columns(b, static_cast<int>(columns_), p_.k, column_bests)) {
      going = false;
      return i0;
    }
    f_.lower_panel(b, p_.k, column_bests, unit_, b_low, b_by_column);
    const bool in_place = !p_.argmax && !p_.accumulate && p_.c_col == 1 && cols == columns_;
    int64_t i = i0;
    while (i < i1 && going) {
      check_cancelled();
      int shape = 0;
      while (f_.rows[shape] > i1 - i) ++shape;
      const int rows = f_.rows[shape];
      const int16_t* a_low = a_low_ + (i - base) * a_ld_;
      f_.tile[shape]({a_low, a_ld_, b_low, steps_ / kFilterChunk, best, second, ids});
      int64_t work = 0, unproven = 0;
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t at = row * columns_;
        const FilterRow f{p_.a_source(i + row, 1, 0, p_.k).data,
                          p_.a_col,
                          b,
                          a_low + row * a_ld_,
                          b_by_column,
                          best + at,
                          second + at,
                          ids + at,
                          row_best_[i - base + row],
                          column_bests,
                          unit_,
                          p_.k,
                          cols,
                          p_.argmax != nullptr,
                          p_.filtering != Filtering::unproven,
                          in_place ? p_.c + ((i + row) * p_.c_row + j) * q_.bytes : values + at * q_.bytes,
                          index + at * q_.bytes};
        for (uint64_t left = f_.settle(f, &work); left != 0; left &= left - 1) {
          work += f_.rescan(f, std::countr_zero(left));
          ++unproven;
        }
      }
      if (!in_place) store(i, j, rows, cols, values, index);
      i += rows;
      p_.tally->filtered.fetch_add(int64_t{rows} * cols, std::memory_order_relaxed);
      p_.tally->unproven.fetch_add(unproven, std::memory_order_relaxed);
      if (!budget_.spend(work, int64_t{rows} * cols) && gives_up_) going = false;
    }
    return i;
  }

  void store(int64_t i, int64_t j, int rows, int cols, const char* values, const char* index) const {
    StoreCall s{};
    s.tile = values;
    s.ids = index;
    s.lanes = static_cast<int>(columns_);
    s.rows = rows;
    s.cols = cols;
    s.c = p_.c + (i * p_.c_row + j * p_.c_col) * q_.in_bytes;
    s.c_row = p_.c_row;
    s.c_col = p_.c_col;
    s.combine = p_.accumulate;
    if (!p_.argmax) return q_.store(s);
    s.argmax = p_.argmax + i * p_.argmax_row + j * p_.argmax_col;
    s.argmax_row = p_.argmax_row;
    s.argmax_col = p_.argmax_col;
    s.index_offset = p_.index_offset;
    q_.store_argmax(s);
  }

  // Rows of a part: fewer would prepare their panel for too little.
  static constexpr int64_t kPartRows = 128;

  const Product& p_;
  const FilterKernels& f_;
  const Kernels& q_;
  const std::function<bool(const Product&)>& plain_;
  const int threads_;
  const bool gives_up_;
  const int64_t columns_, panels_, steps_, a_ld_, rows_;
  Budget budget_;
  WorkspaceScope scope_;
  int16_t* a_low_ = nullptr;
  double* row_best_ = nullptr;
  double unit_ = 1;
  bool going_ = true;
  bool finite_ = true;
};

}  // namespace

const FilterKernels* choose_filter(const MatmulParams& p) {
  if (p.filtering == Filtering::never) return nullptr;
  const FilterKernels* found = find_filter(p.semiring, p.dtype);
  if (!found || p.filtering != Filtering::automatic) return found;
  const int64_t least = p.argmax.data ? found->least_argmax : found->least_values;
  return p.k >= least && p.m >= least / 2 && p.n >= least / 2 ? found : nullptr;
}

std::vector<DType> filtered_types() {
  std::vector<DType> types;
  for (const DType dtype : {DType::f32, DType::f64})
    if (find_filter(Semiring::max_plus, dtype)) types.push_back(dtype);
  return types;
}

int64_t filter_passes(int64_t k) { return ceil_div(k, kPassSteps); }

bool run_filtered(const Product& product, int threads, const std::function<bool(const Product&)>& plain) {
  bool finite = true, filters = true;
  const int64_t steps = round_up(ceil_div(product.k, filter_passes(product.k)), kFilterChunk);
  for (int64_t k0 = 0; k0 < product.k;) {
    Product p = product;
    p.a += k0 * p.a_col * p.kernels->in_bytes;
    p.b += k0 * p.b_row * p.kernels->in_bytes;
    p.accumulate |= k0 > 0;
    p.index_offset += k0;
    if (!filters) {
      p.filter = nullptr;
      p.k = product.k - k0;
      return plain(p) && finite;
    }
    p.k = std::min(steps, product.k - k0);
    k0 += p.k;
    Pass pass(p, threads, plain);
    filters = pass.run();
    finite &= pass.finite();
  }
  return finite;
}

}  // namespace tropical::cpu
