// One call of one operation for the bytes of a fuzzer. Whatever they say, the call returns a code, nothing outside the
// memory that its arguments describe is touched (the sanitizers see to that), a refused call writes nothing, and what
// is computed is right. Anything else ends the process.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "oracle.h"
#include "tropical_gemm/c_api.h"
#include "tropical_gemm/closure.h"
#include "tropical_gemm/permute.h"
#include "tropical_gemm/viterbi.h"

namespace tropical::fuzz {
namespace {

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s; last error: \"%s\"\n", what, tg_last_error());
  std::abort();
}

// The tensors of a call, and how it may end.
class Call {
 public:
  explicit Call(Bytes& from) : bytes(from) {}

  Tensor* add(DType dtype, std::vector<int64_t> shape, bool written = false) {
    const Tensor* other = tensors_.empty()
                              ? nullptr
                              : tensors_[static_cast<size_t>(bytes.below(static_cast<int>(tensors_.size())))].get();
    tensors_.push_back(std::make_unique<Tensor>(bytes, dtype, std::move(shape), other));
    written_.push_back(written);
    return tensors_.back().get();
  }
  Tensor* output(DType dtype, std::vector<int64_t> shape) { return add(dtype, std::move(shape), true); }
  Tensor* maybe(bool wanted, DType dtype, std::vector<int64_t> shape, bool written = false) {
    return wanted ? add(dtype, std::move(shape), written) : nullptr;
  }

  // Whether it may be let loose: all memory is there, and the work is bounded; or one tensor must be refused anyway.
  bool runnable() const {
    bool backed = true, absurd = false;
    int128 work = 1;
    for (const auto& x : tensors_) {
      backed = backed && x->backed();
      absurd = absurd || x->absurd();
      if (x == tensors_.front() || x == tensors_[std::min<size_t>(1, tensors_.size() - 1)]) work *= x->count();
    }
    return absurd || (backed && work < 1 << 20);
  }
  // The number of threads, or one that makes the call fail where it may not run.
  int threads() { return runnable() ? 1 + bytes.below(2) : -1; }

  // Runs it; `right` looks at the outcome of a call that went well.
  void run(
      const std::function<tg_status()>& body, const std::function<bool()>& right = [] { return true; }) const {
    const bool may = runnable();
    const tg_status status = body();
    bool absurd = false;
    for (const auto& x : tensors_) absurd = absurd || x->absurd();
    expect(status >= TG_OK && status <= TG_OVERFLOW && status != TG_INTERNAL, "no code of the interface's");
    expect(status != TG_OK || (may && !absurd), "what cannot be was taken");
    // Refused calls write nothing. Tensors may lie in one another's gaps; then only the result tells whether all is
    // well.
    const bool wrote = status == TG_OK || status == TG_CANCELLED || status == TG_OVERFLOW;
    const bool shared = std::any_of(tensors_.begin(), tensors_.end(), [](const auto& x) { return x->borrows(); });
    for (size_t i = 0; i < tensors_.size() && !(wrote && shared); ++i) {
      const Tensor& x = *tensors_[i];
      if (wrote && written_[i])
        expect(x.only_entries_changed(), "something between an output's entries has changed");
      else
        expect(x.same(), "a tensor that is not written has changed");
    }
    if (status == TG_OK) expect(right(), "a wrong result");
  }

  Bytes& bytes;

 private:
  std::vector<std::unique_ptr<Tensor>> tensors_;
  std::vector<bool> written_;
};

const DLTensor* of(const Tensor* x) { return x ? &x->dlpack() : nullptr; }

// What the C interface would make of an entry that it does not have.
tg_status code_of(const std::function<void()>& body) {
  try {
    body();
    return TG_OK;
  } catch (const Error& e) {
    expect(e.what()[0] != 0, "no message");
    return static_cast<tg_status>(e.code());
  } catch (const std::bad_alloc&) {
    return TG_OUT_OF_MEMORY;
  }
}

DType any_dtype(Bytes& bytes) { return static_cast<DType>(bytes.below(static_cast<int>(DType::boolean) + 1)); }
// Of a pair that exists, mostly.
Semiring semiring_for(Bytes& bytes, DType dtype) {
  if (bytes.one_in(16)) return static_cast<Semiring>(static_cast<int>(bytes.word()));
  return dtype == DType::boolean ? Semiring::or_and : static_cast<Semiring>(bytes.below(TG_OR_AND));
}
DType index_dtype(Bytes& bytes) { return bytes.one_in(2) ? DType::i64 : DType::i32; }

struct Product {
  explicit Product(Bytes& bytes) {
    const int64_t m = bytes.below(20), k = bytes.below(20), n = bytes.below(20);
    const int form = bytes.below(8);
    if (form != 1) a = {m, k}, c.push_back(m);
    if (form == 1) a = {k};
    b = {k, n};
    if (form == 2) b = {k};
    if (form != 2) c.push_back(n);
    const int64_t batch = bytes.below(4);
    if (form == 3 || form == 4) a.insert(a.begin(), batch), c.insert(c.begin(), batch);
    if (form == 4) b.insert(b.begin(), bytes.one_in(2) ? batch : 1);
    if (form == 5) b.insert(b.begin(), {batch, 2}), c.insert(c.begin(), {batch, 2});
  }
  std::vector<int64_t> a, b, c;
};

// The last part of the options, which an older caller's struct lacks; and sizes that no struct has.
uint64_t struct_size(Bytes& bytes, uint64_t first, uint64_t full) {
  switch (bytes.below(8)) {
    case 0:
      return first;
    case 1:
      return full + 8;
    case 2:
      return bytes.below(256) ? first - 1 : 0;
    default:
      return full;
  }
}

void matmul_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtype = any_dtype(bytes);
  const Semiring semiring = semiring_for(bytes, dtype);
  const Product shape(bytes);
  const Tensor *a = call.add(dtype, shape.a), *b = call.add(dtype, shape.b), *c = call.output(dtype, shape.c);
  const Tensor* argmax = call.maybe(bytes.one_in(2), DType::i32, shape.c, true);
  tg_matmul_options options{};
  // The next one may be larger than this version's.
  struct {
    tg_matmul_options options;
    uint64_t more;
  } given{};
  options.struct_size = struct_size(bytes, offsetof(tg_matmul_options, cuda), sizeof options);
  options.accumulate = bytes.one_in(3);
  const int form = bytes.below(8);
  options.argmax_offset = argmax && form == 0 ? bytes.below(256) : form == 1 ? static_cast<int64_t>(bytes.word()) : 0;
  options.threads = call.threads();
  volatile int32_t stop = bytes.one_in(16);
  options.cancel = &stop;
  given.options = options;
  const bool none = !options.accumulate && call.runnable() && bytes.one_in(8);
  const bool null = bytes.one_in(32);
  call.run(
      [&] {
        return tg_matmul(static_cast<tg_semiring>(semiring), null ? nullptr : of(a), of(b), of(c), of(argmax),
                         none ? nullptr : &given.options);
      },
      [&] {
        bool right = false;
        visit(semiring, dtype, [&]<class S, class T>() {
          right = is_product<S, T>(*a, *b, *c, argmax, options.accumulate, none ? 0 : options.argmax_offset);
        });
        return right;
      });
}

void backward_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtype = static_cast<DType>(bytes.below(5));  // those with gradients, and one without
  const Semiring semiring = semiring_for(bytes, dtype);
  const Product shape(bytes);
  const Tensor *a = call.add(dtype, shape.a), *b = call.add(dtype, shape.b);
  const Tensor *grad = call.add(dtype, shape.c), *argmax = call.add(index_dtype(bytes), shape.c);
  const Tensor* grad_a = call.maybe(bytes.below(4), dtype, shape.a, true);
  const Tensor* grad_b = call.maybe(bytes.below(4), dtype, shape.b, true);
  tg_backward_options options{};
  options.struct_size = struct_size(bytes, sizeof options, sizeof options);
  options.threads = call.threads();
  struct {
    tg_backward_options options;
    uint64_t more;
  } given{options, 0};
  const bool null = bytes.one_in(32);
  call.run([&] {
    return tg_matmul_backward(static_cast<tg_semiring>(semiring), of(grad), null ? nullptr : of(argmax), of(a), of(b),
                              of(grad_a), of(grad_b), &given.options);
  });
}

void shape_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtype = any_dtype(bytes);
  const Product shape(bytes);
  const Tensor *a = call.add(dtype, shape.a), *b = call.add(dtype, shape.b);
  int32_t ndim = 0;
  int64_t sizes[64];
  const tg_status status =
      tg_matmul_shape(bytes.one_in(32) ? nullptr : of(a), of(b), bytes.one_in(32) ? nullptr : &ndim, sizes);
  expect(status != TG_INTERNAL, "no code of the interface's");
  if (status == TG_OK) expect(ndim >= 0 && ndim <= 34, "a wrong number of axes");
  std::string name;
  while (const uint8_t x = bytes.byte()) name += static_cast<char>(x);
  tg_semiring parsed = -1;
  expect(tg_parse_semiring(name.c_str(), &parsed) == TG_OK ? parsed >= 0 && parsed <= TG_OR_AND : parsed == -1,
         "a wrong semiring");
}

void count_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtypes[] = {DType::f32, DType::f64, DType::i32, DType::i64, any_dtype(bytes)};
  const DType dtype = bytes.pick(dtypes);
  const Semiring semiring = bytes.one_in(8) ? semiring_for(bytes, dtype) : static_cast<Semiring>(bytes.below(2));
  const DType count = bytes.one_in(2) ? DType::i64 : DType::f64;
  const Product shape(bytes);
  const Tensor *a = call.add(dtype, shape.a), *b = call.add(dtype, shape.b);
  const Tensor *c = call.output(dtype, shape.c), *counts = call.output(count, shape.c);
  const Tensor* a_counts = call.maybe(bytes.one_in(2), count, shape.a);
  const Tensor* b_counts = call.maybe(bytes.one_in(2), count, shape.b);
  MatmulOptions options;
  options.threads = call.threads();
  call.run([&] {
    return code_of(
        [&] { count_matmul(semiring, *of(a), of(a_counts), *of(b), of(b_counts), *of(c), *of(counts), options); });
  });
}

void load_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtype = any_dtype(bytes);
  const Semiring semiring = semiring_for(bytes, dtype);
  const int64_t n = bytes.below(12);
  const bool in_place = bytes.one_in(4);
  const Tensor* source = call.add(dtype, {n, n}, in_place);
  const Tensor* to = in_place ? source : call.maybe(bytes.below(4), dtype, {n, n}, true);
  const Tensor* pred = call.maybe(bytes.one_in(2), DType::i32, {n, n}, true);
  const uint64_t no_edge[2] = {bytes.word(), 0};
  GraphOptions options;
  if (bytes.one_in(2)) options.no_edge = no_edge;
  options.undirected = bytes.one_in(2), options.unweighted = bytes.one_in(2), options.reflexive = bytes.one_in(2);
  options.threads = call.threads();
  call.run([&] { return code_of([&] { load_graph(semiring, *of(source), of(to), of(pred), options); }); });
}

void closure_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtype = any_dtype(bytes);
  const Semiring semiring = semiring_for(bytes, dtype);
  const int64_t n = bytes.below(12);
  const Tensor* d = call.output(dtype, {n, n});
  const Tensor* pred = call.maybe(bytes.one_in(2), DType::i32, {n, n}, true);
  ClosureOptions options;
  options.threads = call.threads();
  if (bytes.one_in(4)) {
    const uint64_t bits = bytes.word();
    std::memcpy(&options.tolerance, &bits, sizeof bits);
  }
  call.run([&] { return code_of([&] { closure(semiring, *of(d), of(pred), options); }); });
}

void paths_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtype = any_dtype(bytes);
  const Semiring semiring = semiring_for(bytes, dtype);
  const int64_t n = bytes.below(12), rows = bytes.below(5);
  const Tensor* d = call.output(dtype, {rows, n});
  const bool start = bytes.one_in(2);
  const Tensor* w = call.maybe(!start, dtype, {n, n});
  const Tensor* pred = call.maybe(bytes.one_in(2), DType::i32, {rows, n}, true);
  std::vector<int64_t> sources;
  for (int64_t r = 0; r < rows; ++r)
    sources.push_back(bytes.one_in(16) ? static_cast<int64_t>(bytes.word()) : bytes.below(13) - 1);
  ClosureOptions options;
  options.threads = call.threads();
  const int64_t limit = bytes.below(6) - 1;
  if (start) {  // has no option that could make it fail
    if (call.runnable()) call.run([&] { return code_of([&] { start_paths(semiring, sources, *of(d), of(pred)); }); });
    return;
  }
  call.run([&] { return code_of([&] { relax(semiring, *of(w), *of(d), of(pred), limit, options); }); });
}

void viterbi_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtype = static_cast<DType>(bytes.below(5));
  const int64_t batch = bytes.below(4), steps = bytes.below(9), states = bytes.below(20);
  const Tensor* emission = call.add(dtype, {batch, steps, states});
  const bool one = bytes.one_in(2);
  std::vector<int64_t> between{one ? 1 : batch, bytes.one_in(2) || steps == 0 ? 1 : steps - 1, states, states};
  if (bytes.one_in(2)) between.erase(between.begin(), between.begin() + 2);
  const Tensor* transition = call.add(dtype, between);
  const Tensor* initial = call.maybe(bytes.one_in(2), dtype, {one ? 1 : batch, states});
  const Tensor* final = call.maybe(bytes.one_in(2), dtype, {batch, states});
  const Tensor* lengths = call.maybe(bytes.one_in(2), index_dtype(bytes), {batch});
  const Tensor* paths = call.output(index_dtype(bytes), {batch, steps});
  const Tensor* scores = call.output(dtype == DType::f64 ? DType::f64 : DType::f32, {batch});
  TrellisOptions options;
  options.scan = bytes.one_in(3);
  options.threads = call.threads();
  call.run([&] {
    return code_of([&] {
      viterbi(*of(emission), *of(transition), of(initial), of(final), of(lengths), *of(paths), *of(scores), options);
    });
  });
}

void align_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtype = static_cast<DType>(bytes.below(5));
  const int64_t batch = bytes.below(4), steps = bytes.below(9), classes = bytes.below(7), length = bytes.below(6);
  const Tensor *scores = call.add(dtype, {batch, steps, classes}),
               *targets = call.add(index_dtype(bytes), {batch, length});
  const Tensor* steps_of = call.maybe(bytes.one_in(2), index_dtype(bytes), {batch});
  const Tensor* length_of = call.maybe(bytes.one_in(2), index_dtype(bytes), {batch});
  const Tensor *labels = call.output(index_dtype(bytes), {batch, steps}), *out = call.output(dtype, {batch, steps});
  const int64_t blank = bytes.one_in(8) ? static_cast<int64_t>(bytes.word()) : bytes.below(4);
  TrellisOptions options;
  options.threads = call.threads();
  call.run([&] {
    return code_of([&] {
      forced_align(*of(scores), *of(targets), of(steps_of), of(length_of), blank, *of(labels), *of(out), options);
    });
  });
}

void permute_call(Call& call) {
  Bytes& bytes = call.bytes;
  const DType dtype = any_dtype(bytes);
  std::vector<int64_t> shape(static_cast<size_t>(bytes.below(5)));
  std::vector<int> axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    shape[d] = bytes.below(9);
    axes.insert(axes.begin() + bytes.below(static_cast<int>(d + 1)), static_cast<int>(d));
  }
  if (!axes.empty() && bytes.one_in(16)) axes[0] = static_cast<int>(bytes.word());
  const Tensor* x = call.add(dtype, shape);
  std::vector<int64_t> permuted;
  for (const int d : axes)
    permuted.push_back(d >= 0 && d < static_cast<int>(shape.size()) ? shape[static_cast<size_t>(d)] : 1);
  const Tensor* out = call.output(dtype, permuted);
  PermuteOptions options;
  options.threads = call.threads();
  call.run([&] { return code_of([&] { permute(*of(x), axes, *of(out), options); }); },
           [&] { return is_permutation(*x, axes, *out); });
}

constexpr void (*kCalls[])(Call&) = {matmul_call,  backward_call, shape_call,   count_call, load_call,
                                     closure_call, paths_call,    viterbi_call, align_call, permute_call};

}  // namespace
}  // namespace tropical::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tropical;
  static const std::vector<std::string> isas = build_info().isas;
  fuzz::Bytes bytes(data, size);
  set_isa(isas[static_cast<size_t>(bytes.below(static_cast<int>(isas.size())))]);
  const char* modes[] = {"auto", "always", "never"};
  set_filter(bytes.pick(modes));
  fuzz::Call call(bytes);
  bytes.pick(fuzz::kCalls)(call);
  return 0;
}
