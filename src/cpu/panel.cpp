#include "cpu/panel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/panel.cpp"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target
#include "cpu/panel-inl.h"

#if HWY_ONCE
#include <algorithm>

#include "cpu/isa.h"
#include "parallel.h"
#include "tropical_gemm/error.h"
#include "workspace.h"
// clang-format on

namespace tropical::cpu {

HWY_EXPORT(FindPanelSteps);
HWY_EXPORT(ResolveRow);

namespace {

// Columns that a thread takes at a time: with their indices they stay in the second-level cache, mostly in the first.
constexpr int64_t kColumns = 128;

class Panel {
 public:
  explicit Panel(const GraphParams& p) : p_(p) {
    visit_dtype(p.dtype, [&]<class T>() {
      item_ = sizeof(T);
      index_ = sizeof(PanelIndex<T>);
    });
    start_isa();
    steps_ = HWY_DYNAMIC_DISPATCH(FindPanelSteps)(p.semiring, p.dtype, p.pred.data != nullptr);
  }

  void run() const {
    // The pivot's own columns come first: they tell what each row has to the other rows at each step.
    block(p_.first, p_.m, true);
    if (p_.report->diverged != GraphReport::kNowhere) return;
    const int64_t before = p_.first, behind = p_.n - p_.first - p_.m;
    const int64_t left = (before + kColumns - 1) / kColumns, right = (behind + kColumns - 1) / kColumns;
    parallel_for(left + right, left + right < 4 ? 1 : thread_count(p_.threads), [&](int64_t task, int) {
      if (p_.cancel.raised()) throw Error(ErrorCode::cancelled, "the closure was cancelled by its caller");
      const int64_t begin = task < left ? task * kColumns : p_.first + p_.m + (task - left) * kColumns;
      block(begin, std::min(kColumns, (task < left ? before : p_.n) - begin), false);
    });
  }

 private:
  // Columns [j, j + cols) in a compact copy, whose rows are whole vectors.
  void block(int64_t j, int64_t cols, bool records) const {
    const int64_t ld = (cols + kPanelLanes - 1) / kPanelLanes * kPanelLanes;
    const auto bytes = static_cast<size_t>(p_.m * ld);
    Workspace& workspace = Workspace::local();
    const WorkspaceScope scope(workspace, bytes * (item_ + index_) + 2 * Workspace::kAlignment);
    char* d = workspace.take<char>(bytes * item_);
    char* pred = p_.pred.data ? workspace.take<char>(bytes * index_) : nullptr;
    const PanelCall call{d,
                         pred,
                         ld,
                         p_.m,
                         p_.from.data,
                         p_.from.row,
                         records ? p_.report : nullptr,
                         p_.first,
                         p_.tolerance,
                         static_cast<char*>(p_.to.data) + j * p_.to.col * static_cast<int64_t>(item_),
                         p_.to.row,
                         p_.to.col,
                         static_cast<int32_t*>(p_.pred.data) + (p_.pred.data ? j * p_.pred.col : 0),
                         p_.pred.row,
                         p_.pred.col,
                         cols};
    steps_(call);
  }

  const GraphParams& p_;
  size_t item_ = 0, index_ = 0;
  PanelSteps steps_ = nullptr;
};

}  // namespace

void close_panel(const GraphParams& p) { Panel(p).run(); }

void resolve_row(int32_t* pred, const int32_t* from, int64_t from_row, int32_t limit, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ResolveRow)(pred, from, from_row, limit, n);
}

}  // namespace tropical::cpu
#endif
