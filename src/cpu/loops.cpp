#include "cpu/loops.h"

#include <algorithm>

#include "tropical_gemm/error.h"

namespace tropical::cpu {
namespace {

// The loops over one rectangle: passes over k, blocks of rows, runs of panels, then row tiles by panels.
class RectangleLoops {
 public:
  RectangleLoops(const Product& product, const Rectangle& r)
      : p_(product),
        q_(*product.kernels),
        r_(r),
        argmax_(product.argmax != nullptr),
        blocking_(choose_blocking(q_, {.rows = r.i1 - r.i0,
                                       .lanes = r.j1 - r.j0,
                                       .k = product.k,
                                       .argmax = argmax_,
                                       .a_row = product.a_row,
                                       .a_unit = product.a_col == 1,
                                       .b_unit = product.b_col == 1})),
        scope_(Workspace::local(), bytes_needed()) {
    const size_t kc = static_cast<size_t>(blocking_.kc);
    if (!blocking_.a_in_place) a_pack_ = scope_.take<char>(static_cast<size_t>(packed_rows() * k_ld()) * q_bytes());
    b_pack_ = scope_.take<char>(static_cast<size_t>(group_lanes()) * kc * q_bytes());
    if (argmax_) bt_ = scope_.take<char>(static_cast<size_t>(group_lanes()) * static_cast<size_t>(k_ld()) * q_bytes());
    tile_ = scope_.take<char>(kTileBytes);
    if (argmax_) {
      ids_ = scope_.take<char>(kTileBytes);
      chunks_ = scope_.take<char>(kMaxTileOutputs);
    }
  }

  bool run() {
    for (int64_t k0 = 0; k0 < p_.k; k0 += blocking_.kc) {
      k0_ = k0;
      ks_ = std::min(blocking_.kc, p_.k - k0);
      chunked_ = argmax_ && ks_ >= kChunkedSteps;
      const TileFamily& family = !argmax_ ? q_.values : chunked_ ? q_.chunked : q_.straight;
      PanelRun runs[kMaxRuns];
      const int count = split_lanes(family, r_.j1 - r_.j0, runs);
      for (int64_t i = r_.i0; i < r_.i1; i += row_block()) {
        const int64_t end = std::min(i + row_block(), r_.i1);
        if (!blocking_.a_in_place) note(q_.pack_a(p_.a_source(i, end - i, k0_, ks_), a_pack_, k_ld()));
        check_a_ = p_.check_finite && blocking_.a_in_place;
        for (int run = 0; run < count; ++run) panels(runs[run], i, end);
      }
    }
    return finite_;
  }

 private:
  static constexpr size_t kTileBytes = size_t{kMaxTileOutputs} * 8;

  size_t q_bytes() const { return static_cast<size_t>(q_.bytes); }
  int64_t row_block() const { return blocking_.a_in_place ? std::max<int64_t>(r_.i1 - r_.i0, 1) : blocking_.mc; }
  int64_t packed_rows() const { return std::min(blocking_.mc, r_.i1 - r_.i0); }
  // Rows along k, of packed A and of transposed B, are a line apart from a power of two, so that they do not share a
  // cache set.
  int64_t k_ld() const { return round_up(blocking_.kc, q_.chunk) + q_.chunk; }
  int64_t group_lanes() const {
    const TileFamily& f = argmax_ ? q_.chunked : q_.values;
    const int64_t width = int64_t{f.lanes} * f.max_vectors;
    return std::min(blocking_.panels * width, round_up(r_.j1 - r_.j0, width));
  }
  size_t bytes_needed() const {
    const size_t a = blocking_.a_in_place ? 0 : static_cast<size_t>(packed_rows() * k_ld()) * q_bytes();
    const size_t b = static_cast<size_t>(group_lanes() * (blocking_.kc + (argmax_ ? k_ld() : 0))) * q_bytes();
    return a + b + 2 * kTileBytes + kMaxTileOutputs + 6 * Workspace::kAlignment;
  }

  void note(bool finite) {
    if (p_.check_finite && !finite) finite_ = false;
  }

  // All rows [i0, i1) of one run, a group of panels at a time.
  void panels(const PanelRun& run, int64_t i0, int64_t i1) {
    const int64_t width = run.width->lanes;
    const bool in_place = blocking_.b_in_place && !run.padded();
    // A group is limited by what was reserved and by L2; B in place has no such limit.
    const int64_t group = in_place ? run.panels : std::max<int64_t>(1, group_lanes() / width);
    for (int64_t first = 0; first < run.panels; first += group) {
      const int64_t last = std::min(first + group, run.panels);
      for (int64_t panel = first; panel < last; ++panel) provide_b(run, panel, panel - first, in_place);
      for (int64_t i = i0; i < i1;) {
        if (p_.cancel.raised()) throw Error(ErrorCode::cancelled, "the product was cancelled by its caller");
        const int shape = run.width->shape_for(i1 - i);
        const int rows = run.width->rows[shape];
        if (check_a_) note(q_.finite(p_.a_source(i, rows, k0_, ks_)));
        for (int64_t panel = first; panel < last; ++panel)
          tile(run, panel, panel - first, in_place, i, i - i0, rows, run.width->fn[shape]);
        i += rows;
      }
      check_a_ = false;  // every row has been seen
    }
  }

  int64_t lane_of(const PanelRun& run, int64_t panel) const { return r_.j0 + run.lane + panel * run.width->lanes; }
  // Columns of C in a panel.
  int cols_of(const PanelRun& run, int64_t panel) const {
    const int64_t j = lane_of(run, panel) * q_.columns_per_lane;
    const int64_t end = std::min(r_.j1 * q_.columns_per_lane, p_.n);
    return static_cast<int>(std::min<int64_t>(int64_t{run.width->lanes} * q_.columns_per_lane, end - j));
  }
  char* b_panel(const PanelRun& run, int64_t slot) const { return b_pack_ + slot * run.width->lanes * ks_ * q_.bytes; }
  char* bt_panel(const PanelRun& run, int64_t slot) const { return bt_ + slot * run.width->lanes * k_ld() * q_.bytes; }

  void provide_b(const PanelRun& run, int64_t panel, int64_t slot, bool in_place) {
    const int64_t j = lane_of(run, panel) * q_.columns_per_lane;
    const Source b = p_.b_source(k0_, ks_, j, cols_of(run, panel));
    if (in_place) {
      if (p_.check_finite) note(q_.finite(b));
      return;
    }
    note(q_.pack_b(b, b_panel(run, slot), run.width->lanes));
    if (chunked_) q_.transpose_panel(b_panel(run, slot), run.width->lanes, ks_, bt_panel(run, slot), k_ld());
  }

  void tile(const PanelRun& run, int64_t panel, int64_t slot, bool in_place, int64_t i, int64_t packed_row, int rows,
            TileFn fn) {
    const int64_t j = lane_of(run, panel) * q_.columns_per_lane;
    const int cols = cols_of(run, panel);
    const bool combine = p_.accumulate || k0_ > 0;
    char* c = p_.c + (i * p_.c_row + j * p_.c_col) * q_.in_bytes;
    TileCall t{};
    if (blocking_.a_in_place) {
      t.a = p_.a_source(i, rows, k0_, ks_).data;
      t.a_row = p_.a_row;
      t.a_k = p_.a_col;
    } else {
      t.a = a_pack_ + packed_row * k_ld() * q_.bytes;
      t.a_row = k_ld();
      t.a_k = 1;
    }
    t.b = in_place ? p_.b_source(k0_, ks_, j, cols).data : b_panel(run, slot);
    t.b_k = in_place ? p_.b_row : run.width->lanes;
    t.k = ks_;
    t.valid = run.valid;
    if (!argmax_ && q_.native && p_.c_col == 1 && !run.padded()) {
      t.c = c;
      t.c_row = p_.c_row;
      t.combine = combine;
      fn(t);
      return;
    }
    t.c = tile_;
    t.ids = ids_;
    t.chunks = chunks_;
    t.c_row = run.width->lanes;
    fn(t);
    StoreCall s{};
    s.tile = tile_;
    s.ids = ids_;
    s.lanes = run.width->lanes;
    s.rows = rows;
    s.cols = cols;
    s.c = c;
    s.c_row = p_.c_row;
    s.c_col = p_.c_col;
    s.combine = combine;
    if (!argmax_) return q_.store(s);
    if (chunked_) {
      RecoverCall r{t.a, t.a_row, bt_panel(run, slot), k_ld(), run.width->lanes, rows, cols, ks_, tile_, chunks_, ids_};
      if (combine && q_.native && p_.c_col == 1) r.c = c, r.c_row = p_.c_row;
      q_.recover(r);
    }
    s.argmax = p_.argmax + i * p_.argmax_row + j * p_.argmax_col;
    s.argmax_row = p_.argmax_row;
    s.argmax_col = p_.argmax_col;
    s.index_offset = p_.index_offset + k0_;
    q_.store_argmax(s);
  }

  const Product& p_;
  const Kernels& q_;
  const Rectangle r_;
  const bool argmax_;
  const Blocking blocking_;
  WorkspaceScope scope_;
  char* a_pack_ = nullptr;
  char* b_pack_ = nullptr;
  char* bt_ = nullptr;
  char* tile_ = nullptr;
  char* ids_ = nullptr;
  char* chunks_ = nullptr;
  // Of the current pass over k.
  int64_t k0_ = 0, ks_ = 0;
  bool chunked_ = false;
  bool check_a_ = false;
  bool finite_ = true;
};

}  // namespace

int split_lanes(const TileFamily& family, int64_t lanes, PanelRun (&runs)[kMaxRuns]) {
  const int vector = family.lanes;
  const int64_t panel = int64_t{vector} * family.max_vectors;
  int count = 0;
  int64_t lane = 0;
  const auto add = [&](const TileWidth& width, int64_t panels, int valid, bool masked) {
    runs[count++] = {&width, lane, panels, valid, masked};
    lane += panels * width.lanes;
  };
  const auto whole = [&](int vectors, int64_t panels) {
    const TileWidth& width = family.widths[vectors];
    add(width, panels, width.lanes, false);
  };
  if (lanes >= panel) whole(family.max_vectors, lanes / panel);
  const int rest = static_cast<int>(lanes - lane);
  const int left = rest % vector;
  const bool masks = family.partial[1].shapes > 0;
  if (left == 0 || masks) {
    // Whole vectors, then what is left in half a vector or a masked one.
    if (rest >= vector) whole(rest / vector, 1);
    if (left == 0) return count;
    const TileWidth& half = family.widths[0];
    if (half.shapes && left == half.lanes) {
      whole(0, 1);
    } else {
      const bool fits_half = half.shapes && left < half.lanes;
      add(family.partial[fits_half ? 0 : 1], 1, left, true);
    }
  } else {
    add(family.widths[rest / vector + 1], 1, rest, false);  // padded
  }
  return count;
}

bool run_rectangle(const Product& product, const Rectangle& rectangle) {
  return RectangleLoops(product, rectangle).run();
}

}  // namespace tropical::cpu
