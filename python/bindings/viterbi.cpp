#include "viterbi.h"

#include "arguments.h"
#include "interrupt.h"
#include "tropical_gemm/viterbi.h"

namespace tropical::python {
namespace {

nb::tuple viterbi_arrays(nb::handle emission, nb::handle transition, nb::handle initial, nb::handle final,
                         nb::handle lengths, bool paths_are_int64, nb::handle threads, nb::handle stream) {
  ViterbiOptions options;
  options.threads = threads_of(threads);
  const Stream on = stream_of(stream);
  Array e(emission, "log_emission", Access::read, on), a(transition, "log_transition", Access::read, on);
  std::optional<Array> at_start, at_end, until;
  const auto optional = [&](std::optional<Array>& array, nb::handle given, const char* name) {
    if (!given.is_none()) array.emplace(given, name, Access::read, on);
    return array ? &array->tensor() : nullptr;
  };
  const DLTensor* first = optional(at_start, initial, "log_initial");
  const DLTensor* last = optional(at_end, final, "log_final");
  const DLTensor* ends = optional(until, lengths, "lengths");
  const DLTensor& x = e.tensor();
  if (x.ndim != 3)
    throw Error(ErrorCode::invalid_value, "log_emission has " + std::to_string(x.ndim) + " dimensions, expected 3");
  const bool is_double = x.dtype.code == kDLFloat && x.dtype.bits == 64;
  const nb::bool_ made(true);
  Output paths(made, "paths", {x.shape[0], x.shape[1]},
               paths_are_int64 ? dlpack_dtype<int64_t>() : dlpack_dtype<int32_t>(), e, on);
  Output scores(made, "scores", {x.shape[0]}, is_double ? dlpack_dtype<double>() : dlpack_dtype<float>(), e, on);
  Placement place(e, on);
  options.cuda = place.options();
  // Candidates: every transition of every step.
  const double work = work_on_cpu(x, {x.shape[0], x.shape[1], x.shape[2]});
  run_interruptible(work, watched_work(x.dtype), options, [&](const ViterbiOptions& o) {
    viterbi(x, a.tensor(), first, last, ends, *paths.tensor(), *scores.tensor(), o);
  });
  for (Array* read : {&e, &a}) read->keep_until_done(options.cuda.stream);
  for (std::optional<Array>* read : {&at_start, &at_end, &until})
    if (*read) (*read)->keep_until_done(options.cuda.stream);
  paths.keep_until_done(options.cuda.stream), scores.keep_until_done(options.cuda.stream);
  return nb::make_tuple(paths.result(), scores.result());
}

}  // namespace

void bind_viterbi(nb::module_& m) {
  const nb::arg any;
  const auto none = nb::arg().none();
  m.def("viterbi", &viterbi_arrays, any, any, none, none, none, any, none, none,
        nb::sig("def viterbi(log_emission: object, log_transition: object, log_initial: object | None, "
                "log_final: object | None, lengths: object | None, paths_are_int64: bool, threads: object, "
                "stream: int | None, /) -> tuple[typing.Any, typing.Any]"));
}

}  // namespace tropical::python
