// The entry of the Viterbi recurrence: its shape rules, then the backend of the device.
#include "tropical_gemm/viterbi.h"

#include <algorithm>

#include "checks.h"
#include "execute.h"
#include "filter.h"
#include "params.h"
#include "tensor.h"
#include "tropical_gemm/matmul.h"

namespace tropical {
namespace {

class Validation {
 public:
  explicit Validation(const DLTensor& emission) : emission_(emission) {
    p.dtype = dtype_of(emission.dtype, "log_emission");
    check_float(p.dtype, "log_emission");
    if (emission.ndim != 3)
      bad_value("log_emission has shape " + shape_text(emission) + ", expected (batch, steps, states)");
    check(emission, "log_emission");
    p.batch = emission.shape[0], p.steps = emission.shape[1], p.states = emission.shape[2];
    if (p.states == 0) bad_value("log_emission has shape " + shape_text(emission) + ", expected at least one state");
    if (p.states > kMaxStates)
      bad_value("log_emission has shape " + shape_text(emission) + ", with more states than int32 can number");
    p.emission = strided(emission);
    p.filtering = filtering();
  }

  void transition(const DLTensor& x) {
    const char* name = "log_transition";
    like_emission(x, name);
    if (x.ndim == 2) {
      check_shape(x, name, {p.states, p.states});
      const Strided s = strided(x);
      p.transition = {s.data, {0, 0, s.stride[0], s.stride[1]}};
      return;
    }
    const int64_t between = std::max<int64_t>(p.steps - 1, 0);
    const bool fits = x.ndim == 4 && one_or(x.shape[0], p.batch) && one_or(x.shape[1], between) &&
                      x.shape[2] == p.states && x.shape[3] == p.states;
    if (!fits)
      bad_value(std::string(name) + " has shape " + shape_text(x) + ", expected " +
                shape_text(std::vector<int64_t>{p.states, p.states}.data(), 2) + " or " +
                shape_text(std::vector<int64_t>{p.batch, between, p.states, p.states}.data(), 4));
    p.transition = strided(x);
  }

  Strided ends(const DLTensor* x, const char* name) {
    if (!x) return {};
    like_emission(*x, name);
    if (x->ndim != 2 || !one_or(x->shape[0], p.batch) || x->shape[1] != p.states)
      bad_value(std::string(name) + " has shape " + shape_text(*x) + ", expected " +
                shape_text(std::vector<int64_t>{p.batch, p.states}.data(), 2));
    return strided(*x);
  }

  Strided integers(const DLTensor& x, const char* name, const std::vector<int64_t>& shape, bool& wide) {
    return strided_integers(x, name, shape, emission_, "log_emission", wide);
  }

  Strided scores(const DLTensor& x) {
    const char* name = "scores";
    const bool wide = p.dtype == DType::f64;
    check_dtype(x, name, wide ? DType::f64 : DType::f32, "");
    check_shape(x, name, {p.batch});
    check(x, name);
    return strided(x);
  }

  ViterbiParams p;

 private:
  static constexpr int64_t kMaxStates = 0x7fffffff;
  static bool one_or(int64_t size, int64_t full) { return size == 1 || size == full; }
  void check(const DLTensor& x, const char* name) { check_tensor(x, name, emission_, "log_emission"); }
  void like_emission(const DLTensor& x, const char* name) {
    check_dtype(x, name, p.dtype, " like log_emission");
    check(x, name);
  }
  const DLTensor& emission_;
};

}  // namespace

void viterbi(const DLTensor& emission, const DLTensor& transition, const DLTensor* initial, const DLTensor* final,
             const DLTensor* lengths, const DLTensor& paths, const DLTensor& scores, const TrellisOptions& options) {
  check_forms({{&emission, "log_emission"},
               {&transition, "log_transition"},
               {initial, "log_initial"},
               {final, "log_final"},
               {lengths, "lengths"},
               {&paths, "paths"},
               {&scores, "scores"}});
  Validation v(emission);
  v.transition(transition);
  ViterbiParams& p = v.p;
  p.initial = v.ends(initial, "log_initial");
  p.final = v.ends(final, "log_final");
  if (lengths) p.lengths = v.integers(*lengths, "lengths", {p.batch}, p.lengths_are_int64);
  p.paths = v.integers(paths, "paths", {p.batch, p.steps}, p.paths_are_int64);
  p.scores = v.scores(scores);
  const DLTensor* read[] = {&emission, &transition, initial, final, lengths};
  const char* names[] = {"log_emission", "log_transition", "log_initial", "log_final", "lengths"};
  check_outputs({&paths, &scores}, {"paths", "scores"}, read, names);
  check_threads(options.threads);
  p.scan = options.scan;
  p.threads = options.threads;
  p.cancel.flag = options.cancel;
  execute(p, emission, options.cuda);
}

}  // namespace tropical
