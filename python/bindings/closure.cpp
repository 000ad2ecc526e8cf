#include "closure.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "arguments.h"
#include "gil.h"
#include "interrupt.h"
#include "parallel.h"
#include "tropical_gemm/closure.h"

namespace tropical::python {
namespace {

// Work below which nobody waits for long, and nobody asks for progress.
constexpr double kWatchedOnCuda = 1LL << 36;

nb::object where(const std::optional<int64_t>& at) { return at ? nb::object(nb::int_(*at)) : nb::none(); }

// (to, pred, facts). `options` is (no_edge, undirected, unweighted, reflexive); no_edge is None or a NumPy scalar's
// bytes.
nb::tuple load(nb::handle source, nb::handle outputs, nb::handle semiring, nb::handle options, nb::handle threads,
               nb::handle stream) {
  const Semiring s = semiring_of(semiring);
  const Stream on = stream_of(stream);
  Array x(source, "csgraph", Access::read, on);
  const DLTensor& t = x.tensor();
  const std::vector<int64_t> shape(t.shape, t.shape + t.ndim);
  Output to(outputs[0], "out", shape, t.dtype, x, on);
  Output pred(outputs[1], "predecessors", shape, dlpack_dtype<int32_t>(), x, on);
  GraphOptions graph;
  uint64_t no_edge = 0;
  if (!options[0].is_none()) {
    const nb::bytes bytes = nb::cast<nb::bytes>(options[0]);
    std::memcpy(&no_edge, bytes.c_str(), std::min(bytes.size(), sizeof no_edge));
    graph.no_edge = &no_edge;
  }
  graph.undirected = nb::cast<bool>(options[1]);
  graph.unweighted = nb::cast<bool>(options[2]);
  graph.reflexive = nb::cast<bool>(options[3]);
  graph.threads = threads_of(threads, x);
  Placement place(x, on);
  graph.cuda = place.options();
  GraphFacts facts;
  run_interruptible(work_on_cpu(t, {t.shape, t.shape + t.ndim}, 0), watched_work(t.dtype), graph,
                    [&](const GraphOptions& o) { facts = load_graph(s, t, to.tensor(), pred.tensor(), o); });
  for (Output* output : {&to, &pred}) output->keep_until_done(graph.cuda.stream);
  x.keep_until_done(graph.cuda.stream);
  nb::dict found;
  found["nan_at"] = where(facts.nan_at);
  found["infinite_at"] = where(facts.infinite_at);
  found["negative_at"] = where(facts.negative_at);
  found["zeros"] = facts.zeros;
  found["absent"] = facts.absent;
  found["magnitude"] = facts.magnitude;
  return nb::make_tuple(to.result(), pred.result(), found);
}

// Options of a long call: memory, threads, and how far it has come. Made on the caller's thread, whose libraries the
// memory comes from.
class LongCall {
 public:
  LongCall(const Array& like, const Stream& on, nb::handle progress, nb::handle threads, double work)
      : place_(like, on), progress_(progress) {
    options.cuda = place_.options();
    options.threads = threads_of(threads, like);
    const bool on_cuda = like.on_cuda();
    watched_ = !progress.is_none() || work >= (on_cuda ? kWatchedOnCuda : watched_work(like.tensor().dtype));
  }
  LongCall(const LongCall&) = delete;
  LongCall& operator=(const LongCall&) = delete;

  void provide(size_t bytes) {
    if (!options.cuda.allocate) return;
    memory_ = options.cuda.allocate(options.cuda.context, bytes);
    options.cuda.allocate = [](void* memory, size_t) { return memory; };
    options.cuda.context = memory_;
  }

  template <class Call>
  auto run(const Call& call) {
    if (!watched_) {
      const WithoutGil without;
      return call(options);
    }
    options.cancel = &cancel_;
    if (options.threads == 0) options.threads = thread_count(0);
    options.context = this;
    options.progress = [](void* self, int64_t done, int64_t total) {
      static_cast<LongCall*>(self)->total_ = total;
      static_cast<LongCall*>(self)->done_ = done;
    };
    auto result = run_watched(
        cancel_, [&] { return call(options); }, [&] { tell(); });
    tell();
    return result;
  }

  ClosureOptions options;

 private:
  void tell() {
    const int64_t done = done_;
    if (progress_.is_none() || done == told_) return;
    told_ = done;
    progress_(done, total_.load());
  }

  Placement place_;
  nb::handle progress_;
  bool watched_ = false;
  void* memory_ = nullptr;
  std::atomic<bool> cancel_{false};
  std::atomic<int64_t> done_{0}, total_{0};
  int64_t told_ = 0;
};

double cube(const DLTensor& t) {
  double work = t.ndim == 2 ? static_cast<double>(t.shape[1]) : 0;
  for (int d = 0; d < t.ndim; ++d) work *= static_cast<double>(t.shape[d]);
  return work;
}

// None, or a node with a closed walk that is too good.
nb::object close(nb::handle d, nb::handle pred, nb::handle semiring, double tolerance, nb::handle progress,
                 nb::handle threads, nb::handle stream) {
  const Semiring s = semiring_of(semiring);
  const Stream on = stream_of(stream);
  Array x(d, "d", Access::write, on);
  Output p(pred.is_none() ? nb::handle(Py_False) : pred, "pred", {}, {}, x, on);
  LongCall call(x, on, progress, threads, cube(x.tensor()));
  call.options.tolerance = tolerance;
  if (x.on_cuda()) call.provide(closure_scratch(s, x.tensor(), p.tensor() != nullptr));
  const auto node = call.run([&](const ClosureOptions& o) { return closure(s, x.tensor(), p.tensor(), o); });
  x.keep_until_done(call.options.cuda.stream);
  p.keep_until_done(call.options.cuda.stream);
  return where(node);
}

// (d, pred, whether nothing changes any more)
nb::tuple paths(nb::handle w, const std::vector<int64_t>& sources, bool tracks, nb::handle semiring, int64_t limit,
                nb::handle progress, nb::handle threads, nb::handle stream) {
  const Semiring s = semiring_of(semiring);
  const Stream on = stream_of(stream);
  Array x(w, "csgraph", Access::read, on);
  const std::vector<int64_t> shape{static_cast<int64_t>(sources.size()), x.tensor().ndim ? x.tensor().shape[0] : 0};
  Array d(shape, x.tensor().dtype, x, on);
  Output p(tracks ? Py_True : Py_False, "pred", shape, dlpack_dtype<int32_t>(), x, on);
  const DLTensor* pred = p.tensor();
  LongCall call(x, on, progress, threads, cube(x.tensor()));
  start_paths(s, sources, d.tensor(), pred, call.options.cuda);
  if (x.on_cuda()) call.provide(relax_scratch(s, x.tensor(), d.tensor(), tracks));
  const bool settled =
      call.run([&](const ClosureOptions& o) { return relax(s, x.tensor(), d.tensor(), pred, limit, o); });
  for (Array* array : {&x, &d}) array->keep_until_done(call.options.cuda.stream);
  p.keep_until_done(call.options.cuda.stream);
  return nb::make_tuple(nb::borrow(d.object()), p.result(), settled);
}

}  // namespace

void bind_closure(nb::module_& m) {
  const nb::arg any;
  const auto none = nb::arg().none();
  m.def("load_graph", &load, any, any, any, any, none, none,
        nb::sig("def load_graph(source: object, outputs: tuple[object, object], semiring: object, "
                "options: tuple[bytes | None, bool, bool, bool], threads: object, stream: int | None, /) -> "
                "tuple[typing.Any, typing.Any, dict[str, typing.Any]]"));
  m.def("closure", &close, any, none, any, any, none, none, none,
        nb::sig("def closure(d: object, pred: object | None, semiring: object, tolerance: float, progress: object, "
                "threads: object, stream: int | None, /) -> int | None"));
  m.def("paths_from", &paths, any, any, any, any, any, none, none, none,
        nb::sig("def paths_from(w: object, sources: typing.Sequence[int], tracks: bool, semiring: object, limit: int, "
                "progress: object, threads: object, stream: int | None, /) -> "
                "tuple[typing.Any, typing.Any, bool]"));
}

}  // namespace tropical::python
