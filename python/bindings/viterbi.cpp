#include "viterbi.h"

#include <list>
#include <string>

#include "arguments.h"
#include "interrupt.h"
#include "tropical_gemm/viterbi.h"

namespace tropical::python {
namespace {

// The arrays that a call reads, some of which may be None.
class Operands {
 public:
  explicit Operands(const Stream& stream) : stream_(stream) {}
  const DLTensor* read(nb::handle given, const char* name) {
    if (given.is_none()) return nullptr;
    return &arrays_.emplace_back(given, name, Access::read, stream_).tensor();
  }
  const Array& first() const { return arrays_.front(); }
  void keep_until_done(void* stream) {
    for (Array& array : arrays_) array.keep_until_done(stream);
  }

 private:
  const Stream& stream_;
  std::list<Array> arrays_;  // arrays cannot be moved
};

const DLTensor& three_axes(const DLTensor& x, const char* name) {
  if (x.ndim != 3)
    throw Error(ErrorCode::invalid_value,
                std::string(name) + " has " + std::to_string(x.ndim) + " dimensions, expected 3");
  return x;
}

DLDataType integer_type(bool is_int64) { return is_int64 ? dlpack_dtype<int64_t>() : dlpack_dtype<int32_t>(); }

// Runs call(options) where the operands are, with two results; each step has so many states, each of so many
// candidates.
template <class Call>
nb::tuple run_trellis(Operands& operands, const Stream& on, nb::handle threads, Output& one, Output& two,
                      int64_t states, int64_t candidates, const Call& call) {
  TrellisOptions options;
  options.threads = threads_of(threads, operands.first());
  Placement place(operands.first(), on);
  options.cuda = place.options();
  const DLTensor& x = operands.first().tensor();
  run_interruptible(work_on_cpu(x, {x.shape[0], x.shape[1], states}, static_cast<double>(candidates)),
                    watched_work(x.dtype), options, call);
  operands.keep_until_done(options.cuda.stream);
  one.keep_until_done(options.cuda.stream), two.keep_until_done(options.cuda.stream);
  return nb::make_tuple(one.result(), two.result());
}

nb::tuple viterbi_arrays(nb::handle emission, nb::handle transition, nb::handle initial, nb::handle final,
                         nb::handle lengths, bool paths_are_int64, bool scan, nb::handle threads, nb::handle stream) {
  const Stream on = stream_of(stream);
  Operands operands(on);
  const DLTensor& e = three_axes(*operands.read(emission, "log_emission"), "log_emission");
  const DLTensor& a = *operands.read(transition, "log_transition");
  const DLTensor* first = operands.read(initial, "log_initial");
  const DLTensor* last = operands.read(final, "log_final");
  const DLTensor* ends = operands.read(lengths, "lengths");
  const bool is_double = e.dtype.code == kDLFloat && e.dtype.bits == 64;
  const nb::bool_ made(true);
  Output paths(made, "paths", {e.shape[0], e.shape[1]}, integer_type(paths_are_int64), operands.first(), on);
  Output scores(made, "scores", {e.shape[0]}, is_double ? dlpack_dtype<double>() : dlpack_dtype<float>(),
                operands.first(), on);
  return run_trellis(operands, on, threads, paths, scores, e.shape[2], e.shape[2], [&](TrellisOptions o) {
    o.scan = scan;
    viterbi(e, a, first, last, ends, *paths.tensor(), *scores.tensor(), o);
  });
}

nb::tuple forced_align_arrays(nb::handle log_probs, nb::handle targets, nb::handle input_lengths,
                              nb::handle target_lengths, nb::handle blank, nb::handle threads, nb::handle stream) {
  const Stream on = stream_of(stream);
  Operands operands(on);
  const DLTensor& x = three_axes(*operands.read(log_probs, "log_probs"), "log_probs");
  const DLTensor& y = *operands.read(targets, "targets");
  const DLTensor* inputs = operands.read(input_lengths, "input_lengths");
  const DLTensor* lengths = operands.read(target_lengths, "target_lengths");
  const int64_t none = integer_of(blank, "blank", "an int");
  const nb::bool_ made(true);
  Output labels(made, "labels", {x.shape[0], x.shape[1]}, integer_type(y.dtype.bits == 64), operands.first(), on);
  Output scores(made, "scores", {x.shape[0], x.shape[1]}, x.dtype, operands.first(), on);
  const int64_t states = y.ndim > 0 ? 2 * y.shape[y.ndim - 1] + 1 : 1;
  return run_trellis(operands, on, threads, labels, scores, states, 3, [&](const TrellisOptions& o) {
    forced_align(x, y, inputs, lengths, none, *labels.tensor(), *scores.tensor(), o);
  });
}

}  // namespace

void bind_viterbi(nb::module_& m) {
  const nb::arg any;
  const auto none = nb::arg().none();
  m.def("viterbi", &viterbi_arrays, any, any, none, none, none, any, any, none, none,
        nb::sig("def viterbi(log_emission: object, log_transition: object, log_initial: object | None, "
                "log_final: object | None, lengths: object | None, paths_are_int64: bool, scan: bool, threads: object, "
                "stream: int | None, /) -> tuple[typing.Any, typing.Any]"));
  m.def("forced_align", &forced_align_arrays, any, any, none, none, any, none, none,
        nb::sig("def forced_align(log_probs: object, targets: object, input_lengths: object | None, "
                "target_lengths: object | None, blank: object, threads: object, stream: int | None, /) -> "
                "tuple[typing.Any, typing.Any]"));
}

}  // namespace tropical::python
