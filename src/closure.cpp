// The blocked loops of closures, once for both backends: products, and between them steps on the rows of a pivot.
//
// For each pivot, a run K of nodes:
//   D[K, :] is closed over K: by the same loops over smaller pivots within these rows, the smallest by a kernel
//   D[i, :] <- D[i, :] add D[i, K] D[K, :] for the rows i outside K, with the D[i, K] from before
// The product offers a row all candidates at once, in the columns of K too, and takes the lowest k of the best. Hence
// predecessors never form a cycle on exact weights that allow shortest paths, nor on floats that are not negative: with
// p the predecessor of j in row i, D[i, p] <= D[i, j] holds rounded or not; if the nodes of a cycle in row i changed in
// the same product, they are equal, so that the k of j is among the best for p; the k are then all the same, and the
// cycle is there in row k already. (Closing the columns of K first, as is usual, mixes old and new D[i, K].)
#include "tropical_gemm/closure.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "checks.h"
#include "execute.h"
#include "filter.h"
#include "scratch.h"
#include "tensor.h"
#include "validate.h"
#include "visit.h"

namespace tropical {
namespace {

// Rows that one kernel closes. More are halved: most of the work is then in products with a large K, which write C and
// look for predecessors least often.
constexpr int64_t kBase = 64;
// Steps of one product, or between two looks at the device, at most: half a second on an H200.
constexpr double kMostSteps = 6e12;

struct View {
  Operand at;
  int64_t m = 0, n = 0;
};

// Memory, products and steps of one call. A rehearsal computes nothing and finds out how much memory is needed.
class Stage {
 public:
  Stage(Semiring semiring, DType dtype, const DLTensor& on, const ClosureOptions& options)
      : semiring_(semiring), dtype_(dtype), on_(on), options_(options), item_(item_bytes(on)) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  bool runs_ahead() const { return on_cuda(on_); }
  bool tolerates() const { return options_.tolerance > 0; }
  bool rehearses() const { return !base_; }
  size_t bytes() const { return kFirst + product_bytes_ + peak_; }
  // After a rehearsal: the memory that it found.
  void equip() {
    const size_t size = bytes();
    if (!on_cuda(on_)) {
      host_.reset(static_cast<char*>(std::aligned_alloc(kFirst, round_up(size))));
      if (!host_)
        throw Error(ErrorCode::out_of_memory, "no memory for a workspace of " + std::to_string(size) + " bytes");
      base_ = host_.get();
    } else {
      device_.emplace(size, options_.cuda, cuda::Queue{on_.device.device_id, options_.cuda.stream});
      base_ = static_cast<char*>(device_->memory());
    }
    used_ = 0;
    write_report({});
  }

  View part(const View& x, int64_t i, int64_t m, int64_t j, int64_t n, int64_t item) const {
    View y = x;
    y.at.data = static_cast<char*>(x.at.data) + (i * x.at.row + j * x.at.col) * item;
    y.m = m, y.n = n;
    return y;
  }
  View part(const View& x, int64_t i, int64_t m, int64_t j, int64_t n) const { return part(x, i, m, j, n, item_); }
  // Predecessors: empty where there are none.
  View rows(const View& pred, int64_t i, int64_t m) const {
    return pred.at.data ? part(pred, i, m, 0, pred.n, sizeof(int32_t)) : View{};
  }

  // The scratch memory of one block of code.
  class Scope {
   public:
    explicit Scope(Stage& stage) : stage_(stage), used_(stage.used_) {}
    ~Scope() { stage_.used_ = used_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    View take(int64_t m, int64_t n) { return stage_.take(m, n); }

   private:
    Stage& stage_;
    size_t used_;
  };

  // c <- c add a b; where that is strictly better, pred becomes k + offset.
  void product(const View& a, const View& b, const View& c, const View& pred, int64_t offset) {
    if (c.m == 0 || c.n == 0) return;
    MatmulParams p;
    p.semiring = semiring_, p.dtype = dtype_;
    p.m = c.m, p.n = c.n, p.k = a.n;
    p.a = a.at, p.b = b.at, p.c = c.at, p.argmax = pred.at;
    p.accumulate = true;
    p.argmax_offset = offset;
    p.threads = options_.threads;
    p.cancel.flag = options_.cancel;
    p.filtering = filtering_;
    if (rehearses()) {
      product_bytes_ = std::max(product_bytes_, round_up(scratch_bytes(p, on_)));
      return;
    }
    CudaOptions cuda;
    cuda.stream = options_.cuda.stream;
    cuda.allocate = [](void* self, size_t bytes) -> void* {
      const auto* stage = static_cast<const Stage*>(self);
      return bytes <= stage->product_bytes_ ? stage->base_ + kFirst : nullptr;
    };
    cuda.context = this;
    execute(p, on_, cuda);
  }

  void copy(const View& from, const View& to) { step(GraphStep::copy, dtype_, to, from, {}, {}, 0); }
  // Rows first, ... of the matrix; `multipliers` is scratch memory.
  void panel(const View& rows, const View& pred, const View& multipliers, int64_t first) {
    step(GraphStep::panel, dtype_, rows, multipliers, pred, {}, first);
  }
  void diagonal(const View& x, const View& pred, int64_t first) {
    step(GraphStep::diagonal, dtype_, x, {}, pred, {}, first);
  }
  void differs(const View& x, const View& y) { step(GraphStep::differs, dtype_, x, y, {}, {}, 0); }
  // pred[i, j] = limit + k becomes from[k, j].
  void resolve(const View& pred, const View& from, int64_t limit) {
    if (pred.at.data && pred.m > 0)
      step(GraphStep::resolve, DType::i32, pred, {}, pred, from, 0, static_cast<int32_t>(limit));
  }

  GraphReport read_report() {
    GraphReport report;
    if (on_cuda(on_))
      cuda_copy(&report, base_, sizeof report, on_.device.device_id, options_.cuda.stream);
    else
      std::memcpy(&report, base_, sizeof report);
    return report;
  }
  void write_report(const GraphReport& report) {
    if (on_cuda(on_))
      cuda_copy(base_, &report, sizeof report, on_.device.device_id, options_.cuda.stream);
    else
      std::memcpy(base_, &report, sizeof report);
  }

  void check_cancelled() const {
    if (options_.cancel && options_.cancel->load(std::memory_order_relaxed))
      throw Error(ErrorCode::cancelled, "the closure was cancelled by its caller");
  }
  void progress(int64_t done, int64_t total) const {
    if (options_.progress) options_.progress(options_.context, done, total);
  }

 private:
  static constexpr size_t kFirst = 256;  // holds the report; what follows is aligned
  static_assert(sizeof(GraphReport) <= kFirst);
  static size_t round_up(size_t bytes) { return (bytes + kFirst - 1) / kFirst * kFirst; }

  View take(int64_t m, int64_t n) {
    View x;
    // In a rehearsal any aligned place will do: nothing is read or written.
    alignas(kFirst) static char nowhere[kFirst];
    x.at.data = base_ ? base_ + kFirst + product_bytes_ + used_ : nowhere;
    x.at.row = n, x.at.col = 1;
    x.m = m, x.n = n;
    used_ += round_up(static_cast<size_t>(m * n * item_));
    peak_ = std::max(peak_, used_);
    return x;
  }

  void step(GraphStep step, DType dtype, const View& to, const View& from, const View& pred, const View& pred_from,
            int64_t first, int32_t limit = 0) {
    if (rehearses() || to.m == 0 || to.n == 0) return;
    GraphParams p;
    p.step = step;
    p.semiring = semiring_, p.dtype = dtype;
    p.m = to.m, p.n = to.n;
    p.to = to.at, p.from = from.at, p.pred = pred.at, p.pred_from = pred_from.at;
    p.report = reinterpret_cast<GraphReport*>(base_);
    p.tolerance = options_.tolerance;
    p.first = first;
    p.limit = limit;
    p.threads = options_.threads;
    p.cancel.flag = options_.cancel;
    execute(p, on_, options_.cuda);
  }

  const Semiring semiring_;
  const DType dtype_;
  const DLTensor& on_;
  const ClosureOptions& options_;
  const int64_t item_;
  const Filtering filtering_ = filtering();  // one for all: the workspace depends on it
  std::unique_ptr<char, void (*)(void*)> host_{nullptr, std::free};
  std::optional<Scratch> device_;
  char* base_ = nullptr;
  size_t used_ = 0, peak_ = 0, product_bytes_ = 0;
};

class Closure {
 public:
  Closure(Stage& stage, const View& d, const View& pred) : stage_(stage), d_(d), pred_(pred) {}

  // Returns a node with a closed walk better than `one`, if there is one.
  std::optional<int64_t> run() {
    try {
      close(0, d_.n);
      diagonal(0, d_.n);
      if (!stage_.rehearses()) look();
    } catch (const Diverged& walk) {
      return walk.node;
    }
    return std::nullopt;
  }

 private:
  struct Diverged {
    int64_t node;
  };

  // Closes rows [i, i + rows) over themselves.
  void close(int64_t i, int64_t rows) {
    if (rows <= kBase) {
      Stage::Scope scope(stage_);
      stage_.panel(stage_.part(d_, i, rows, 0, d_.n), stage_.rows(pred_, i, rows), scope.take(rows, rows), i);
      return did(rows, rows);
    }
    const auto most = static_cast<int64_t>(kMostSteps / (static_cast<double>(rows) * static_cast<double>(d_.n)));
    const int64_t wanted = std::max(std::min((rows + 1) / 2, most), kBase), size = (wanted + kBase - 1) / kBase * kBase;
    for (int64_t k = i; k < i + rows; k += size) pivot(i, rows, k, std::min(size, i + rows - k));
  }

  // The pivot [k, k + size) in the rows [i, i + rows).
  void pivot(int64_t i, int64_t rows, int64_t k, int64_t size) {
    close(k, size);
    diagonal(k, size);
    update(i, k - i, k, size);
    update(k + size, i + rows - k - size, k, size);
  }

  void update(int64_t i, int64_t rows, int64_t k, int64_t size) {
    if (rows == 0) return;
    Stage::Scope scope(stage_);
    const View to_pivot = scope.take(rows, size), pred = stage_.rows(pred_, i, rows);
    stage_.copy(stage_.part(d_, i, rows, k, size), to_pivot);
    // Marks, from n on, tell new indices from old ones.
    stage_.product(to_pivot, stage_.part(d_, k, size, 0, d_.n), stage_.part(d_, i, rows, 0, d_.n), pred, d_.n);
    stage_.resolve(pred, stage_.rows(pred_, k, size), d_.n);
    did(rows, size);
  }

  // Closed walks that rounding made better than `one` count as `one` again. Exact ones were reported by their pivot.
  void diagonal(int64_t k, int64_t size) {
    if (!stage_.tolerates()) return;
    const View pred = pred_.at.data ? stage_.part(pred_, k, size, k, size, sizeof(int32_t)) : View{};
    stage_.diagonal(stage_.part(d_, k, size, k, size), pred, k);
  }

  // The host runs ahead of a GPU, and waits for it now and then.
  void did(int64_t rows, int64_t size) {
    if (stage_.rehearses()) return;
    const double steps = static_cast<double>(rows) * static_cast<double>(size) * static_cast<double>(d_.n);
    done_ += steps, unseen_ += steps;
    if (!stage_.runs_ahead() || unseen_ > kMostSteps / 4) look();
  }
  void look() {
    unseen_ = 0;
    const GraphReport report = stage_.read_report();
    if (report.diverged != GraphReport::kNowhere) throw Diverged{report.diverged};
    stage_.check_cancelled();
    const double all = static_cast<double>(d_.n) * static_cast<double>(d_.n) * static_cast<double>(d_.n);
    const auto part = static_cast<int64_t>(kProgress * std::min(done_ / all, 1.0));
    if (part > told_) stage_.progress(told_ = part, kProgress);
  }

  static constexpr int64_t kProgress = 1000;
  Stage& stage_;
  const View d_, pred_;
  double done_ = 0, unseen_ = 0;
  int64_t told_ = 0;
};

class Relaxation {
 public:
  Relaxation(Stage& stage, const View& w) : stage_(stage), w_(w) {}

  bool run(const View& d, const View& pred, int64_t limit) {
    Stage::Scope scope(stage_);
    const View old = scope.take(d.m, d.n);
    if (stage_.rehearses()) limit = 1;
    for (int64_t k = 0; k < limit; ++k) {
      stage_.copy(d, old);
      stage_.product(old, w_, d, pred, 0);
      stage_.differs(d, old);
      if (stage_.rehearses()) break;
      if (!stage_.read_report().differs) return true;
      stage_.write_report({});
      stage_.check_cancelled();
      stage_.progress(k + 1, limit);
    }
    return false;
  }

 private:
  Stage& stage_;
  const View w_;
};

View view_of(const Operand& x, int64_t m, int64_t n) { return {x, m, n}; }

GraphReport facts_of(const DLTensor& source, const GraphParams& params, const GraphOptions& options) {
  GraphParams p = params;
  GraphReport report;
  if (!on_cuda(source)) {
    p.report = &report;
    execute(p, source, options.cuda);
    return report;
  }
  // Not by the caller's allocator, which is asked once, for the closure that follows.
  const int device = source.device.device_id;
  const Scratch there(sizeof report, {}, {device, options.cuda.stream});
  p.report = static_cast<GraphReport*>(there.memory());
  cuda_copy(there.memory(), &report, sizeof report, device, options.cuda.stream);
  execute(p, source, options.cuda);
  cuda_copy(&report, there.memory(), sizeof report, device, options.cuda.stream);
  return report;
}

}  // namespace

GraphFacts load_graph(Semiring semiring, const DLTensor& source, const DLTensor* to, const DLTensor* pred,
                      const GraphOptions& options) {
  GraphParams p = validate_graph(semiring, source, to, pred);
  check_threads(options.threads);
  p.step = GraphStep::load;
  p.has_no_edge = options.no_edge != nullptr;
  if (p.has_no_edge) std::memcpy(&p.no_edge, options.no_edge, static_cast<size_t>(item_bytes(source)));
  p.undirected = options.undirected;
  p.unweighted = options.unweighted;
  p.reflexive = options.reflexive;
  p.threads = options.threads;
  p.cancel.flag = options.cancel;
  if (p.n == 0) return {};
  const GraphReport report = facts_of(source, p, options);
  const auto at = [](int64_t where) {
    return where == GraphReport::kNowhere ? std::nullopt : std::optional<int64_t>(where);
  };
  return {at(report.nan_at), at(report.infinite_at), at(report.negative_at),
          report.zeros,      report.absent,          report.magnitude};
}

std::optional<int64_t> closure(Semiring semiring, const DLTensor& d, const DLTensor* pred,
                               const ClosureOptions& options) {
  const GraphParams p = validate_closure(semiring, d, pred);
  check_threads(options.threads);
  if (p.n == 0) return std::nullopt;
  Stage stage(semiring, p.dtype, d, options);
  Closure loops(stage, view_of(p.to, p.n, p.n), view_of(p.pred, p.n, p.n));
  loops.run();
  stage.equip();
  return loops.run();
}

void start_paths(Semiring semiring, const std::vector<int64_t>& sources, const DLTensor& d, const DLTensor* pred,
                 const CudaOptions& cuda) {
  GraphParams p = validate_paths(semiring, sources, d, pred);
  p.step = GraphStep::start;
  p.m = 1;
  for (const int64_t source : sources) {
    p.first = source;
    if (p.n > 0) execute(p, d, cuda);
    p.to.data = static_cast<char*>(p.to.data) + p.to.row * item_bytes(d);
    if (pred) p.pred.data = static_cast<int32_t*>(p.pred.data) + p.pred.row;
  }
}

bool relax(Semiring semiring, const DLTensor& w, const DLTensor& d, const DLTensor* pred, int64_t limit,
           const ClosureOptions& options) {
  const GraphParams p = validate_relax(semiring, w, d, pred);
  check_threads(options.threads);
  if (limit < 0) bad_value("limit is " + std::to_string(limit) + ", expected at least 0");
  if (p.m == 0 || p.n == 0) return true;
  Stage stage(semiring, p.dtype, d, options);
  Relaxation loop(stage, view_of(p.from, p.n, p.n));
  loop.run(view_of(p.to, p.m, p.n), view_of(p.pred, p.m, p.n), limit);
  stage.equip();
  return loop.run(view_of(p.to, p.m, p.n), view_of(p.pred, p.m, p.n), limit);
}

size_t closure_scratch(Semiring semiring, const DLTensor& d, bool tracks) {
  const GraphParams p = validate_closure(semiring, d, nullptr);
  if (p.n == 0) return 0;
  const ClosureOptions options;
  Stage stage(semiring, p.dtype, d, options);
  View pred = view_of(p.to, p.n, p.n);  // any memory: nothing is computed
  if (!tracks) pred.at.data = nullptr;
  Closure(stage, view_of(p.to, p.n, p.n), pred).run();
  return stage.bytes();
}

size_t relax_scratch(Semiring semiring, const DLTensor& w, const DLTensor& d, bool tracks) {
  const GraphParams p = validate_relax(semiring, w, d, nullptr);
  if (p.m == 0 || p.n == 0) return 0;
  const ClosureOptions options;
  Stage stage(semiring, p.dtype, d, options);
  View pred = view_of(p.to, p.m, p.n);
  if (!tracks) pred.at.data = nullptr;
  Relaxation(stage, view_of(p.from, p.n, p.n)).run(view_of(p.to, p.m, p.n), pred, 1);
  return stage.bytes();
}

}  // namespace tropical
