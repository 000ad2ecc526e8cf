#include "cpu/small.h"

namespace tropical::cpu {

SmallPlan::SmallPlan(const Product& p) {
  const Kernels& q = *p.kernels;
  if (p.argmax || !q.native || q.columns_per_lane != 1 || p.c_col != 1 || p.b_col != 1 || p.k * q.bytes > kPassBytes)
    return;
  PanelRun runs[kMaxRuns];
  const int run_count = split_lanes(q.values, p.n, runs);
  int count = 0;
  for (int r = 0; r < run_count; ++r) {
    const PanelRun& run = runs[r];
    if (run.padded()) return;
    for (int64_t panel = 0; panel < run.panels; ++panel) {
      const int64_t j = run.lane + panel * run.width->lanes;
      for (int64_t i = 0; i < p.m;) {
        if (count == kMaxTiles) return;
        const int shape = run.width->shape_for(p.m - i);
        steps_[static_cast<size_t>(count++)] = {run.width->fn[shape], i * p.a_row * q.bytes, j * q.bytes,
                                                (i * p.c_row + j) * q.bytes, run.valid};
        i += run.width->rows[shape];
      }
    }
  }
  count_ = count;
  call_.a_row = p.a_row;
  call_.a_k = p.a_col;
  call_.b_k = p.b_row;
  call_.k = p.k;
  call_.c_row = p.c_row;
  call_.combine = p.accumulate;
}

void SmallPlan::run(const char* a, const char* b, char* c, int64_t count, int64_t a_step, int64_t b_step,
                    int64_t c_step) const {
  TileCall t = call_;
  t.count = count;
  t.a_step = a_step, t.b_step = b_step, t.c_step = c_step;
  for (int s = 0; s < count_; ++s) {
    const Step& step = steps_[static_cast<size_t>(s)];
    t.a = a + step.a;
    t.b = b + step.b;
    t.c = c + step.c;
    t.valid = step.valid;
    step.fn(t);
  }
}

}  // namespace tropical::cpu
